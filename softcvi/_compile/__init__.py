"""Workarounds for the compiler: the same numbers in less time.

Everything here changes how long a program takes to compile or to run, never what it
computes beyond rounding. ``SOFTCVI_PLAIN_COMPILE=1`` in the environment, or the context
``plain_compilation()``, turns all of it off; a test checks that answers agree.

- ``rarely_run``: XLA's last passes take longer than they save in a program that runs
  once. Used for draws, weights, starts and checks. CPU, jax 0.9.2. Without the newer
  emitters of fusions a whole cold fit takes 10 to 20 % less CPU time. CPU, jax 0.9.2.
  For the loop of a small guide, too: 0.8 to 1.2 s less to compile and 0 to 0.13 s more
  for 10,000 steps of the paper's four tasks (CPU time of two loaded cores).
- ``by_effort``: without any effort of XLA's where a log density takes next to no time.
  Loop, weights and chains of eight schools take 1.4 s less of 6.2 to compile and run,
  of SLCP 1.2 s of 9.8 (CPU time of two loaded cores). CPU, jax 0.9.2.
- ``collected_rarely``: tracing makes millions of objects, none of them garbage, among
  which Python looks for garbage every 700. Eight schools, with all programs on disk,
  takes 15 % less CPU time of the thread that traces. jax 0.9.2.
- ``products_on_one_core``: threads of matrix products and factors busy-wait.
  Linear regression takes 5.1 s of CPU time instead of 5.5 to 6.6, varying slopes of the
  zoo 14 instead of 23 to 43, Hessians of a Gaussian process of 40 points 0.06 instead
  of 1.1, on two loaded cores. NumPy 2.4, jax 0.9.2.
- ``rehearse``: programs that are needed soon are compiled on other threads while the
  next ones are traced. Those of the verdict are traced while the loop is compiled or,
  where the cache has it (``is_compiling``), while it runs: eight schools takes 2.7 s
  instead of 3.0 with all programs on disk. CPU, jax 0.9.2.
- ``on_device``: the host launches every step of a loop and asks whether there is
  another; on a GPU a loop of small steps becomes one graph. H200, jax 0.9.2.
- ``computed_once``: XLA's CPU computes draws and densities anew for every use. Linear
  regression takes 2/3 of the time per step, eight schools 3/4 (2/5 with jax 0.12), the
  ELBO 1/3. CPU, jax 0.9.2.
- ``fused``: JAX's generator is a call of its own; elementwise it becomes a part of the
  program around it. CPU and H200, jax 0.9.2; ``tests/fitting/test_speed_guard.py``.
  Drawing is one operation for JAX: lowering takes a third to a half of the time for
  each draw of a program, and 20 % less in all for eight schools.
- ``loop_in_rows``: XLA's CPU runs a loop of small arrays without its thread pool, and
  the whole history is not small. Eight schools' step takes 17 us instead of 42. CPU,
  jax 0.9.2.
- ``kept_or_new``: XLA computes Adam's moments twice, and copies them, where both the
  old and the new ones are needed. CPU, jax 0.9.2.
- ``traced_once``: every spline of a flow would be traced anew, which is most of what a
  process waits for whose programs are on disk; and a model in each program. With it
  NumPyro runs eight schools twice instead of 20 times in a fit, which takes 12 % less
  CPU time of the thread that traces. CPU, jax 0.9.2.
- ``host_key``, ``host_split``, ``host_fold_in``, ``as_array``, ``host_stack``,
  ``host_ravel``, ``host_unravel``: JAX compiles a program for each of these small
  things, again for each number of keys, each shape and each dtype. Eight schools from a
  cold start takes 25 programs and more than 1 s of CPU time less. CPU, jax 0.9.2.
- ``host_array``: JAX copies arrays of the host that are not aligned. A million draws
  need half of the memory. CPU, jax 0.9.2 and 0.12.

``write_programs_whole`` mends a fault: JAX writes programs in place, so that a killed
process leaves a truncated one, at which all later ones warn. jax 0.9.2 to 0.12.
``make_room`` gives up programs before a process holds more of them than Linux allows,
which XLA does not survive. ``full_precision`` and ``enable_x64`` say in which
precision a program computes, whatever the device and the version of JAX. These are no
workarounds for time.

Choices of arithmetic are no workarounds and stay where they are: Bailey's form of
Student's t, splines that pick a bin by a mask, one flat vector of parameters.
"""

from softcvi._compile._ahead import is_compiling, is_rehearsing, rehearse
from softcvi._compile._disk import write_programs_whole
from softcvi._compile._generator import fused
from softcvi._compile._host import (
    as_array,
    host_fold_in,
    host_key,
    host_ravel,
    host_split,
    host_stack,
    host_unravel,
    put,
)
from softcvi._compile._process import collected_rarely, products_on_one_core
from softcvi._compile._programs import (
    by_effort,
    full_precision,
    make_room,
    on_device,
    rarely_run,
    traced_once,
)
from softcvi._compile._switch import is_plain, plain_compilation
from softcvi._compile._values import (
    computed_once,
    host_array,
    kept_or_new,
    loop_in_rows,
)
from softcvi._compile._versions import enable_x64

__all__ = [
    "as_array",
    "by_effort",
    "collected_rarely",
    "computed_once",
    "enable_x64",
    "full_precision",
    "fused",
    "host_array",
    "host_fold_in",
    "host_key",
    "host_ravel",
    "host_split",
    "host_stack",
    "host_unravel",
    "is_compiling",
    "is_plain",
    "is_rehearsing",
    "kept_or_new",
    "loop_in_rows",
    "make_room",
    "on_device",
    "plain_compilation",
    "products_on_one_core",
    "put",
    "rarely_run",
    "rehearse",
    "traced_once",
    "write_programs_whole",
]
