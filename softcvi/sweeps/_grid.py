"""Grids: which fits a sweep is made of, read from a YAML file or built in Python."""

import dataclasses
import difflib
import hashlib
import itertools
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from softcvi import guides
from softcvi.guides import AbstractGuide
from softcvi.objectives import (
    ELBO,
    AbstractObjective,
    SNISForwardKL,
    SoftCVI,
    TemperedProposal,
)

_DEFAULT_ALPHA = 0.75
# More fits than anybody waits for; a slip of the pen must not fill the memory.
_MAX_COMBINATIONS = 1_000_000
# Lists in lists of a grid file; a grid has two.
_MAX_DEPTH = 20
# What the settings of a grid are made of.
_KINDS: dict[str, tuple[Any, str]] = {
    "models": (str, "names of models, such as model.py:model"),
    "data": (str | None, "names of files"),
    "guides": (str, "names"),
    "objectives": (str, "names"),
    "particles": (int, "integers"),
    "alphas": (float | int, "numbers"),
    "seeds": (int, "integers"),
    "steps": (int, "an integer"),
}

# Guides by name, from a key and a target; "auto" leaves the choice to ``fit``.
GUIDES: dict[str, Callable[..., AbstractGuide | None]] = {
    "auto": lambda key, target: None,
    "mean-field": lambda key, target: guides.mean_field(target),
    "full-rank": lambda key, target: guides.full_rank(target),
    "full-rank-t": lambda key, target: guides.full_rank_t(target),
    "low-rank": lambda key, target: guides.low_rank(target),
    "student-t": lambda key, target: guides.student_t(target),
    "flow": lambda key, target: guides.spline_flow(target, key=key),
    "coupling": lambda key, target: guides.coupling_flow(target, key=key),
}
OBJECTIVES: dict[str, Callable[..., AbstractObjective]] = {
    "softcvi": SoftCVI,
    "elbo": ELBO,
    "snis-fkl": SNISForwardKL,
}


@dataclasses.dataclass(frozen=True)
class Configuration:
    """One fit of a sweep.

    Args:
        model: Name of the model, as the loader of the sweep understands it.
        data: Name of the data set, or None.
        guide: A name of ``GUIDES``.
        objective: A name of ``OBJECTIVES``.
        particles: K.
        alpha: Power of the proposal in SoftCVI's negative; None for other objectives.
        steps: Optimisation steps.
        seed: Seed of the random key.

    Example:
        >>> from softcvi.sweeps import Configuration
        >>> one = Configuration("a.py:model")
        >>> other = Configuration("a.py:model", seed=1)
        >>> one.identifier == other.identifier, one.program == other.program
        (False, True)
    """

    model: str
    data: str | None = None
    guide: str = "auto"
    objective: str = "softcvi"
    particles: int = 8
    alpha: float | None = None
    steps: int = 10_000
    seed: int = 0

    @property
    def identifier(self) -> str:
        """Stable identifier: settings, and the contents of the files that are named."""
        facts = dataclasses.asdict(self)
        facts["contents"] = [_digest(self.model), _digest(self.data)]
        text = json.dumps(facts, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def program(self) -> "Configuration":
        """What configurations that differ in their seed alone have in common."""
        return dataclasses.replace(self, seed=0)

    def make_objective(self) -> AbstractObjective:
        """The objective of this configuration."""
        if self.objective != "softcvi":
            return OBJECTIVES[self.objective](self.particles)
        alpha = _DEFAULT_ALPHA if self.alpha is None else self.alpha
        return SoftCVI(self.particles, negative=TemperedProposal(alpha))


def _digest(name: str | None) -> str | None:
    """SHA-256 of a file that a name such as ``model.py:model`` points to."""
    path = Path((name or "").split(":")[0])
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


@dataclasses.dataclass(frozen=True)
class Grid:
    """Every combination of some settings.

    Args:
        models: Names of models.
        data: Names of data sets; ``(None,)`` for models that need none.
        guides: Names of ``GUIDES``.
        objectives: Names of ``OBJECTIVES``.
        particles: Values of K.
        alphas: Powers of SoftCVI's negative; objectives without one run once.
        seeds: Seeds.
        steps: Optimisation steps of each fit.

    Example:
        >>> from softcvi.sweeps import Grid
        >>> grid = Grid(("a.py:model",), objectives=("softcvi", "elbo"), seeds=(0, 1))
        >>> len(grid.configurations())
        4
    """

    models: Sequence[str]
    data: Sequence[str | None] = (None,)
    guides: Sequence[str] = ("auto",)
    objectives: Sequence[str] = ("softcvi",)
    particles: Sequence[int] = (8,)
    alphas: Sequence[float] = (_DEFAULT_ALPHA,)
    seeds: Sequence[int] = (0,)
    steps: int = 10_000

    def __post_init__(self) -> None:
        for setting, known in (("guides", GUIDES), ("objectives", OBJECTIVES)):
            for name in getattr(self, setting):
                if name not in known:
                    near = difflib.get_close_matches(str(name), known, n=1)
                    hint = f" Did you mean '{near[0]}'?" if near else ""
                    raise ValueError(
                        f"{setting}: there is no '{name}'; known are "
                        f"{', '.join(known)}.{hint}"
                    )
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            is_list = isinstance(value, list | tuple | range) and len(value) > 0
            if field.name != "steps" and not is_list:
                raise ValueError(
                    f"{field.name}: needs a list with at least one value; got "
                    f"{value!r}, so the grid has no combinations."
                )
        self._check_values()

    def _check_values(self) -> None:
        """Refuse values of another kind here, and not when the fits have begun."""
        for name, (kind, words) in _KINDS.items():
            given = getattr(self, name)
            values = (given,) if name == "steps" else given
            # Seeds may be a range, as long as one likes, of integers in any case.
            for value in () if isinstance(given, range) else values:
                if isinstance(value, bool | list) or not isinstance(value, kind):
                    raise ValueError(f"{name}: expected {words}; got {value!r:.60}.")
        if self.steps < 1 or any(count < 1 for count in self.particles):
            raise ValueError("steps, particles: less than 1. Give at least 1.")
        lengths = [len(getattr(self, f.name)) for f in dataclasses.fields(self)[:-1]]
        if math.prod(lengths) > _MAX_COMBINATIONS:
            raise ValueError(
                f"the grid has {math.prod(lengths)} combinations, more than "
                f"{_MAX_COMBINATIONS}. Make a list shorter, or several grids."
            )

    @classmethod
    def read(cls, path: str | os.PathLike) -> "Grid":
        """Read a grid from a YAML file whose keys are the arguments of this class.

        Args:
            path: The file. ``seeds`` may be a number: that many seeds from 0.
        """
        import yaml

        path = Path(path)
        try:
            text = path.read_text()
            _check_events(yaml.parse(text))
            content = yaml.safe_load(text)
        except FileNotFoundError:
            raise FileNotFoundError(f"{path}: no such grid file.") from None
        # Some values that YAML describes cannot be made: dates of no calendar.
        except (yaml.YAMLError, ValueError, RecursionError, MemoryError) as error:
            raise ValueError(
                f"{path}: is not YAML ({_first_line(error)}). Correct it there; "
                "`softcvi sweep --help` shows a grid."
            ) from error
        if not isinstance(content, Mapping):
            raise ValueError(
                f"{path}: expected keys such as 'models' and 'seeds'. "
                "`softcvi sweep --help` shows a grid."
            )
        known = {field.name for field in dataclasses.fields(cls)}
        for key in content:
            if key not in known:
                near = difflib.get_close_matches(str(key), known, n=1)
                hint = f" Did you mean '{near[0]}'?" if near else ""
                raise ValueError(
                    f"{path}: there is no setting '{key}'; known are "
                    f"{', '.join(sorted(known))}.{hint}"
                )
        if "models" not in content:
            raise ValueError(f"{path}: names no models. Add 'models: [file.py:name]'.")
        try:
            return cls(**_normalised(content))
        except (TypeError, ValueError, OverflowError) as error:
            words = str(error)
            words += "" if words.endswith((".", "?")) else "."
            raise ValueError(
                f"{path}: {words} `softcvi sweep --help` shows a grid."
            ) from error

    def configurations(self) -> list[Configuration]:
        """All combinations, each once."""
        found = [
            Configuration(
                model,
                data,
                guide,
                objective,
                particles,
                alpha if objective == "softcvi" else None,
                self.steps,
                seed,
            )
            for model, data, guide, objective, particles, alpha, seed in (
                itertools.product(
                    self.models,
                    self.data,
                    self.guides,
                    self.objectives,
                    self.particles,
                    self.alphas,
                    self.seeds,
                )
            )
        ]
        return list(dict.fromkeys(found))


def _normalised(content: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(content)
    if isinstance(out.get("seeds"), int):
        out["seeds"] = range(out["seeds"])
    for name, value in out.items():
        if name not in ("steps", "seeds") and not isinstance(value, list | tuple):
            out[name] = [value]
    # A range stays one: a number of seeds is not yet a list of them.
    return {n: tuple(v) if isinstance(v, list) else v for n, v in out.items()}


def _check_events(events: Iterable[Any]) -> None:
    """Refuse what would take far more memory or time than the file is long."""
    import yaml

    depth = 0
    for event in events:
        # A few references to references stand for more than any memory holds.
        if isinstance(event, yaml.AliasEvent):
            raise ValueError("it has references (*), which are not read")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_DEPTH:
            raise ValueError("it is nested too deeply")


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
