"""Parameters with a parameter as their scale, fitted in standardised coordinates.

In ``theta ~ normal(mu, tau)`` the width of ``theta`` changes with ``tau``, which no
normal guide follows. Standardised, ``(theta - mu) / tau``, it does not. The text of the
program only suggests where this may help: the change of coordinates is exact whatever
the text says.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Scalar

from softcvi.adapters.stan._program import AbstractProgram, Layout

_NUMBER = r"-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?"
_STATEMENT = re.compile(
    r"^\s*(?P<name>\w+)(?:\[[^\]~;]*\])?\s*~\s*"
    r"(?:(?:normal|cauchy|double_exponential|logistic)\(|student_t\(\s*[\w.]+\s*,)\s*"
    rf"(?P<location>\w+|{_NUMBER})\s*,\s*(?P<scale>\w+)\s*\)\s*;",
    re.MULTILINE,
)
_FREE = re.compile(
    r"^\s*(?:array\s*\[[^;]*?\]\s*real|vector\s*\[[^;]*?\]|row_vector\s*\[[^;]*?\]|real)"
    r"\s+(?P<name>\w+)\s*;",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Hierarchy:
    """A parameter, its location (a parameter or a number) and its scale, by name.

    Example:
        >>> Hierarchy("theta", "mu", "tau").scale
        'tau'
    """

    name: str
    location: str
    scale: str


@dataclass(frozen=True)
class Scale:
    """A power of a positive parameter, as a function of the unconstrained vector.

    Attributes:
        position: Where the parameter is.
        upper: Its upper bound, if it has one.
        power: The power; that of a precision is -1/2.
        log_factor: Logarithm of a constant factor.

    Example:
        >>> float(Scale(0, power=-0.5).log(jnp.array([2.0])))
        -1.0
    """

    position: int
    upper: float | None = None
    power: float = 1.0
    log_factor: float = 0.0

    def log(self, u: Float[Array, " d"]) -> Scalar:
        """Logarithm of the scale."""
        value = u[self.position]
        if self.upper is not None:
            value = jax.nn.log_sigmoid(value) + jnp.log(self.upper)
        return self.power * value + self.log_factor


@dataclass(frozen=True)
class Standardised:
    """Positions in the unconstrained vector that are standardised by two others.

    Attributes:
        name: The parameter.
        positions: Where it is.
        location: Where its location is, or None for a number.
        offset: That number.
        scale: What its scale is.

    Example:
        >>> each = Standardised("theta", (2, 3), 0, 0.0, Scale(1))
        >>> x, log_det = each.forward(jnp.array([5.0, jnp.log(2.0), 1.0, -1.0]))
        >>> x[2:].tolist(), bool(jnp.isclose(log_det, 2 * jnp.log(2.0)))
        ([7.0, 3.0], True)
    """

    name: str
    positions: tuple[int, ...]
    location: int | None
    offset: float
    scale: Scale

    def forward(self, u: Float[Array, " d"]) -> tuple[Float[Array, " d"], Scalar]:
        """Stan's unconstrained vector from a standardised one, with log Jacobian."""
        at = np.array(self.positions)
        log_scale = self.scale.log(u)
        moved = self._location(u) + jnp.exp(log_scale) * u[at]
        return u.at[at].set(moved), len(at) * log_scale

    def inverse(self, x: Float[Array, " d"]) -> tuple[Float[Array, " d"], Scalar]:
        """The standardised vector from Stan's own, with log Jacobian."""
        at = np.array(self.positions)
        log_scale = self.scale.log(x)
        moved = (x[at] - self._location(x)) * jnp.exp(-log_scale)
        return x.at[at].set(moved), -len(at) * log_scale

    def _location(self, vector: Array) -> Array | float:
        return self.offset if self.location is None else vector[self.location]


def hierarchies(program: str) -> tuple[Hierarchy, ...]:
    r"""Parameters whose prior has a parameter, or what depends on one, as its scale.

    Args:
        program: The program as stanc prints it, one declaration per line.

    Example:
        >>> block = "parameters {\n real mu;\n  real<lower=0> tau;\n  vector[8] x;\n}\n"
        >>> hierarchies(block + "model {\n  x ~ normal(mu, tau);\n}\n")
        (Hierarchy(name='x', location='mu', scale='tau'),)
    """
    block = re.search(r"^parameters \{(.*?)^\}", program, re.MULTILINE | re.DOTALL)
    model = re.search(r"^model \{(.*?)^\}", program, re.MULTILINE | re.DOTALL)
    if block is None or model is None:
        return ()
    free = {match["name"] for match in _FREE.finditer(block[1])}
    found = {}
    for match in _STATEMENT.finditer(model[1]):
        is_known = match["location"] in free or re.fullmatch(_NUMBER, match["location"])
        is_scale = match["scale"] not in free and not match["scale"].isdigit()
        if match["name"] in free and is_scale and is_known:
            found[match["name"]] = Hierarchy(**match.groupdict())
    # A location that is standardised itself would need an order; it stays as it is.
    return tuple(each for each in found.values() if each.location not in found)


def placed(
    candidates: tuple[Hierarchy, ...],
    program: AbstractProgram,
    types: Mapping[str, str],
) -> tuple[Standardised, ...]:
    """Where hierarchies lie in the unconstrained vector, those that can be found.

    Args:
        candidates: What the text of the program suggests.
        program: The compiled program, asked whether parameters are where they seem.
        types: Types of its parameters.
    """
    if not candidates:
        return ()
    where, start = {}, 0
    for name, shape in Layout(program.names[0]).shapes:
        size = _unconstrained_size(types.get(name, "real"), shape)
        where[name] = tuple(range(start, start + size))
        start += size
    if start != program.size:
        return ()
    probe = _Probe(program)
    out = []
    for each in candidates:
        if each.name not in where or not probe.equals(each.name, where[each.name]):
            continue
        location = where.get(each.location)
        if location is None:
            # A number; or a parameter of length zero, which has no place.
            is_location = re.fullmatch(_NUMBER, each.location) is not None
        else:
            # Not one with several parts, or with a transform of its own.
            is_location = probe.equals(each.location, location[:1])
        if not is_location:
            continue
        scale = probe.scale(each.scale, where)
        if scale is not None:
            at = None if location is None else location[0]
            offset = float(each.location) if location is None else 0.0
            out.append(Standardised(each.name, where[each.name], at, offset, scale))
    return tuple(out)


class _Probe:
    """Values of a program at a few points, which tell how they depend on each other."""

    def __init__(self, program: AbstractProgram):
        points = np.random.default_rng(0).uniform(-1, 1, (6, program.size))
        # The last is far out, where a bounded parameter is at its bound.
        points[-1] = 40.0
        names = [*program.names[0], *program.names[1]]
        rows = program.constrain(points, np.zeros(len(points), np.uint64))
        self.points = points
        self.values = Layout(names).split(rows[:, : len(names)])

    def equals(self, name: str, positions: tuple[int, ...]) -> bool:
        """Whether a variable is just these unconstrained numbers."""
        seen = self.values[name][:-1].reshape(len(self.points) - 1, -1)
        expected = self.points[:-1, list(positions)]
        return seen.shape == expected.shape and np.allclose(seen, expected)

    def scale(self, name: str, where: Mapping[str, tuple[int, ...]]) -> Scale | None:
        """How a positive scalar depends on one parameter, if it does on one alone."""
        seen = self.values.get(name)
        if seen is None or seen.ndim != 1 or not np.all(seen[:-1] > 0):
            return None
        wanted = np.log(seen[:-1])
        # A parameter depends on itself; others on one of the scalar parameters.
        for base in [name] if name in where else where:
            found = self._positive(base, where[base])
            if found is None:
                continue
            position, upper, logs = found
            power, log_factor = np.polyfit(logs, wanted, 1)
            is_power = np.allclose(power * logs + log_factor, wanted, atol=1e-8)
            if is_power and abs(power) > 1e-6:
                return Scale(position, upper, float(power), float(log_factor))
        return None

    def _positive(
        self, name: str, positions: tuple[int, ...]
    ) -> tuple[int, float | None, np.ndarray] | None:
        """Position, bound and logarithms of a positive parameter."""
        if len(positions) != 1:
            return None
        seen, u = self.values[name].reshape(-1), self.points[:, positions[0]]
        near, upper = seen[:-1], float(seen[-1])
        if np.allclose(near, np.exp(u[:-1])):
            return positions[0], None, u[:-1]
        if 0 < upper < np.inf and np.allclose(near, upper / (1 + np.exp(-u[:-1]))):
            return positions[0], upper, np.log(near)
        return None


def _unconstrained_size(type_name: str, shape: tuple[int, ...]) -> int:
    """Number of unconstrained scalars of a parameter with this shape."""
    count = int(np.prod(shape))
    if type_name == "simplex":
        return count // shape[-1] * (shape[-1] - 1)
    if type_name in ("cholesky_factor_corr", "corr_matrix"):
        k = shape[-1]
        return count // (k * k) * (k * (k - 1) // 2)
    if type_name == "cov_matrix":
        k = shape[-1]
        return count // (k * k) * (k * (k + 1) // 2)
    if type_name == "cholesky_factor_cov":
        m, n = shape[-2:]
        return count // (m * n) * (n * (n + 1) // 2 + (m - n) * n)
    return count
