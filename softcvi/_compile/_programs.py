"""How functions are traced and compiled, and how long programs are kept."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import equinox as eqx
import jax
from jaxtyping import PyTree

from softcvi._compile._ahead import Waiting
from softcvi._compile._switch import is_plain, plain_twin

Options = dict[str, str | int | bool]
P = ParamSpec("P")
R = TypeVar("R")

# The newer emitters of XLA's CPU make quicker code, but take longer to make it.
_OLD_EMITTERS: Options = {"xla_cpu_use_fusion_emitters": False}
# Linux bounds how many mappings of memory a process can have.
_MAPPINGS = Path("/proc/self/maps")
_MOST_MAPPINGS = Path("/proc/sys/vm/max_map_count")
_HELD: list[Callable[[], Any]] = []


def full_precision(function: Callable[P, R]) -> Callable[P, R]:
    """Compute products in full precision.

    Accelerators round them to 10 bits by default, which is enough for a network and
    too little for a log density.

    Example:
        >>> full_precision(lambda x: x + 1)(1)
        2
    """

    @functools.wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> R:
        with jax.default_matmul_precision("highest"):
            return function(*args, **options)

    return call


def held(compiled: Callable[[], Any]) -> Callable[[], Any]:
    """Remember a function whose programs can be given up, since it can make them again.

    Args:
        compiled: Returns what ``eqx.filter_jit`` has made.

    Example:
        >>> import equinox as eqx
        >>> program = eqx.filter_jit(lambda x: x + 1)
        >>> held(lambda: program)()(1)
        2
    """
    _HELD.append(compiled)
    return compiled


def make_room(share: float = 0.5) -> bool:
    """Give up this package's compiled programs where the process can hold few more.

    Each program takes some mappings of memory. Linux allows a process 65,530 of them,
    and XLA ends the process when there are none left: after some 80 fits of different
    models. JAX's own caches and the user's programs stay.

    Args:
        share: Share of the mappings that may be taken before programs are given up.

    Returns:
        Whether programs were given up.

    Example:
        >>> make_room()
        False
    """
    try:
        most = int(_MOST_MAPPINGS.read_text())
        with _MAPPINGS.open("rb") as lines:
            taken = sum(1 for _ in lines)
    except (OSError, ValueError):  # other systems have no such bound
        return False
    if taken < share * most:
        return False
    for compiled in _HELD:
        # Equinox keeps the function that JAX compiled in this field.
        compiled()._cached.clear_cache()
    return True


def rarely_run(function: Callable, effort: int = 1) -> Callable:
    """Compile a function quickly rather than well; inside a program it is part of it.

    The compiler's last passes take longer than they save where a program runs once.

    Args:
        function: A function of pytrees.
        effort: Of the compiler, 0 to 3: 0 for what does little even when it runs.

    Example:
        >>> rarely_run(lambda x: x + 1)(1)
        2
    """

    @held
    @functools.cache
    def compiled() -> Callable:
        # Only now: asking for the backend starts it, which importing must not do.
        options = _quick_options() | {"xla_backend_optimization_level": effort}
        return eqx.filter_jit(function, compiler_options=options)

    plain, waiting = plain_twin(function), Waiting()

    @functools.wraps(function)
    @full_precision
    def call(*args):
        if is_plain():
            return plain(*args)
        # Options belong to whole programs: JAX refuses them for a part of one.
        if _are_traced(args):
            return function(*args)
        return waiting.call(compiled(), *args)

    return call


def by_effort(function: Callable) -> tuple[Callable, Callable]:
    """A function that is compiled without effort, and the same with some.

    Args:
        function: A function of pytrees.

    Example:
        >>> at_once, quickly = by_effort(lambda x: x + 1)
        >>> at_once(1), quickly(1)
        (2, 2)
    """
    return rarely_run(function, effort=0), rarely_run(function, effort=1)


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

    @held
    @functools.cache
    def compiled() -> Callable:
        # Only now: asking for the backend starts it, which importing must not do.
        return eqx.filter_jit(function, compiler_options=_options())

    plain, waiting = plain_twin(function), Waiting()

    @functools.wraps(function)
    @full_precision
    def call(*args):
        return plain(*args) if is_plain() else waiting.call(compiled(), *args)

    return call


@functools.cache
def _options() -> Options | None:
    if jax.default_backend() != "gpu":
        return None
    for options in (_SIDE_BY_SIDE, _WHOLE_LOOPS):
        if _are_known(options):
            return options
    return None


@functools.cache
def _quick_options() -> Options:
    on_cpu = jax.default_backend() == "cpu"
    return _OLD_EMITTERS if on_cpu and _are_known(_OLD_EMITTERS) else {}


def _are_known(options: Options) -> bool:
    """Whether this version of XLA has these names; without them programs are slower."""
    try:
        jax.jit(lambda x: x + 1, compiler_options=options)(0.0)
    except (jax.errors.JaxRuntimeError, ValueError, RuntimeError):
        return False
    return True


def traced_once(function: Callable, outside: bool = True) -> Callable:
    """Trace a function once per shape, however many programs call it how often.

    JAX keeps what it has traced, and its gradients and batches. Python's part of a
    model, such as NumPyro's handlers, then runs once in a process.

    Args:
        function: A function of pytrees; what is not an array is part of the program.
        outside: Whether it is compiled outside of programs, too; otherwise it is then
            called as it is.

    Example:
        >>> traced_once(lambda x: x + 1)(1)
        2
    """
    compiled = eqx.filter_jit(function)
    held(lambda: compiled)

    @functools.wraps(function)
    def call(*args):
        if is_plain() or not (outside or _are_traced(args)):
            return function(*args)
        return compiled(*args)

    return call


def _are_traced(args: PyTree) -> bool:
    leaves = jax.tree_util.tree_leaves(args)
    return any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)
