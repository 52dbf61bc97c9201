"""Compilation of programs that run once or twice."""

import functools

import equinox as eqx

# The compiler's last passes take longer than they save where a program runs only once.
rarely_run = functools.partial(
    eqx.filter_jit, compiler_options={"xla_backend_optimization_level": 1}
)
