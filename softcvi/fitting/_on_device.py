"""Loops that stay on the accelerator from their first step to the last."""

import functools
from collections.abc import Callable

import equinox as eqx
import jax

# By default the host launches every step of a loop and asks whether there is another,
# which takes longer than the step where the step is small. As one graph the whole loop
# is launched at once.
_WHOLE_LOOPS: dict[str, str | int] = {
    "xla_gpu_enable_command_buffer": "FUSION,CUBLAS,CUBLASLT,CUDNN,CUSTOM_CALL,"
    "CONDITIONAL,WHILE",
    "xla_gpu_graph_min_graph_size": 1,
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
def _options() -> dict[str, str | int] | None:
    if jax.default_backend() != "gpu":
        return None
    try:
        jax.jit(lambda x: x + 1, compiler_options=_WHOLE_LOOPS)(0.0)
    except (jax.errors.JaxRuntimeError, ValueError, RuntimeError):
        return None  # A version of XLA that knows other names: slower, not wrong.
    return _WHOLE_LOOPS
