"""Functions that solvers integrate, made to count their calls.

Far from the posterior a solver of differential equations may take millions of steps and
hold up a whole fit for minutes. Stan has no limit on the time of a density; with calls
counted, ``shim.cpp`` can give a point up.
"""

import re

_SOLVERS = re.compile(
    r"\b(?:ode_\w+|integrate_ode_\w+|integrate_1d|dae\w*|algebra_solver\w*|solve_\w+)"
    r"\(\s*(\w+functor__)\(\)"
)
_HEADER = "#include <stan/model/model_header.hpp>\n"


def counted(cpp: str) -> str:
    r"""The C++ of a program in which functions that solvers call count their calls.

    Args:
        cpp: What stanc wrote.

    Example:
        >>> cpp = _HEADER + "struct f_functor__ { g() { return f(); }\n};\n"
        >>> "count_call" in counted(cpp)
        False
        >>> "::softcvi_count_call(); return f();" in counted(
        ...     cpp + "ode_rk45(f_functor__(), y0);"
        ... )
        True
    """
    names = set(_SOLVERS.findall(cpp))
    for name in names:
        body = re.compile(rf"struct {name} \{{.*?\n\}};", re.DOTALL)
        cpp = body.sub(_count_before_return, cpp, count=1)
    if not names:
        return cpp
    return cpp.replace(_HEADER, f"{_HEADER}void softcvi_count_call();\n", 1)


def _count_before_return(match: re.Match) -> str:
    return match[0].replace("return ", "::softcvi_count_call(); return ")
