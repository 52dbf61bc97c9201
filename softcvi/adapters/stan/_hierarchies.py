"""Statements that may make a hierarchy, such as ``x ~ normal(mu, tau)``."""

import re
from dataclasses import dataclass

from softcvi.adapters.stan._members import Members, loops_around

_STATEMENT = re.compile(
    r"(?P<name>\w+)(?:\[(?P<index>[^\]~;]*)\])?\s*~\s*(?P<family>\w+)\(|"
    r"target \+=\s*(?P<lpdf>\w+)_lu?pdf\("
    r"\s*(?P<given>\w+)(?:\[(?P<at>[^\]~;]*)\])?\s*\|"
)
# Location and scale are the last two arguments; those of a log normal are its
# logarithm's, which is the unconstrained parameter.
_REAL = ("normal", "cauchy", "double_exponential", "logistic", "student_t")
_POSITIVE = ("lognormal",)
_BLOCK = r"^{} \{{(.*?)^\}}"


@dataclass(frozen=True)
class Hierarchy:
    """A parameter with the expressions of its location and its scale.

    Attributes:
        name: The parameter.
        location: Its location.
        scale: Its scale.
        is_positive: Whether these are those of its logarithm.
        is_looped: Whether each of its members has a statement of its own.
        members: The statement as it stands, where it is about members.

    Example:
        >>> Hierarchy("theta", "mu", "tau").scale
        'tau'
    """

    name: str
    location: str
    scale: str
    is_positive: bool = False
    is_looped: bool = False
    members: Members | None = None


def hierarchies(program: str) -> tuple[Hierarchy, ...]:
    r"""Parameters whose prior has a location and a scale.

    Args:
        program: The program as stanc prints it.

    Example:
        >>> block = "parameters {\n real mu;\n  real<lower=0> tau;\n  vector[8] x;\n}\n"
        >>> hierarchies(block + "model {\n  x ~ normal(2 * mu, tau);\n}\n")[0].location
        '2 * mu'
    """
    declared, model = (
        re.search(_BLOCK.format(name), program, re.MULTILINE | re.DOTALL)
        for name in ("parameters", "model")
    )
    if declared is None or model is None:
        return ()
    parameters = set(re.findall(r"(\w+);", declared[1]))
    found = {}
    for match in _STATEMENT.finditer(model[1]):
        name, family = match["name"] or match["given"], match["family"] or match["lpdf"]
        index = match["index"] or match["at"]
        if name not in parameters or family not in (*_REAL, *_POSITIVE):
            continue
        arguments = _arguments(model[1], match.end())[-2:]
        # One member, such as the first of a walk, says less than others do.
        is_one = index is not None and index.isdigit() and name in found
        if len(arguments) < 2 or is_one:
            continue
        location, scale = arguments
        members = None
        if index is not None:
            loops = loops_around(model[1][: match.start()])
            members = Members(index, location, scale, loops)
            # Of a loop, the statement for all members at once.
            location, scale = (a.replace(f"[{index}]", "") for a in arguments)
        found[name] = Hierarchy(
            name,
            location,
            scale,
            is_positive=family in _POSITIVE,
            is_looped=index is not None,
            members=members,
        )
    return tuple(found.values())


def _arguments(text: str, start: int) -> list[str]:
    """What stands between a parenthesis that was opened and its end, by commas."""
    arguments, depth, begin = [], 0, start
    for i in range(start, len(text)):
        is_end = text[i] in ")]" and depth == 0
        if is_end or (text[i] == "," and depth == 0):
            arguments.append(" ".join(text[begin:i].split()))
            begin = i + 1
        if is_end:
            return arguments
        depth += (text[i] in "([") - (text[i] in ")]")
    return []
