"""Loops that stay on the accelerator from their first step to the last."""

import functools
from collections.abc import Callable

import equinox as eqx
import jax

Options = dict[str, str | int]

# By default the host launches every step of a loop and asks whether there is another,
# which takes longer than the step where the step is small. As one graph the whole loop
# is launched at once.
_WHOLE_LOOPS: Options = {
    "xla_gpu_enable_command_buffer": "FUSION,CUBLAS,CUBLASLT,CUDNN,CUSTOM_CALL,"
    "CONDITIONAL,WHILE",
    "xla_gpu_graph_min_graph_size": 1,
}
# And what does not wait for each other runs side by side.
_SIDE_BY_SIDE: Options = _WHOLE_LOOPS | {
    "xla_gpu_command_buffer_scheduling_mode": "CONCURRENT"
}


def on_device(function: Callable) -> Callable:
    """Compile a loop; on a GPU as one graph.

    Args:
        function: A function of pytrees.

    Example:
        >>> on_device(lambda x: x + 1)(1)
        2
    """

    @functools.cache
    def compiled() -> Callable:
        # Only now: asking for the backend starts it, which importing must not do.
        return eqx.filter_jit(function, compiler_options=_options())

    @functools.wraps(function)
    def call(*args):
        return compiled()(*args)

    return call


@functools.cache
def _options() -> Options | None:
    if jax.default_backend() != "gpu":
        return None
    for options in (_SIDE_BY_SIDE, _WHOLE_LOOPS):
        try:
            jax.jit(lambda x: x + 1, compiler_options=options)(0.0)
        except (jax.errors.JaxRuntimeError, ValueError, RuntimeError):
            continue
        return options
    return None  # A version of XLA that knows other names: slower, not wrong.
