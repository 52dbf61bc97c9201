"""``softcvi bench``: speed and quality beside other libraries."""

import functools
from dataclasses import dataclass, fields
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from softcvi.cli import CommandError, Computing, Flag, hold_folder, say
from softcvi_experiments.cli._options import Integers, Names

# An optional type would read the word "none" as no value.
_NOT_GIVEN: Any = None
_SPEED = ("quick", "parts", "repeats")
# Which suites have which options; a suite refuses the others.
_OPTIONS = {
    "peers": _SPEED,
    "growth": _SPEED,
    "compile": _SPEED,
    "figure": (*_SPEED, "fits", "full"),
    "zoo": ("models", "methods", "seeds", "split"),
    "cold": ("quick", "repeats", "models", "methods", "minutes"),
}


@Parameter(name="*")
@dataclass(frozen=True)
class SuiteOptions:
    """Options that some suites have; None is what was not given.

    Example:
        >>> SuiteOptions(fits=3).given("figure")
        {'fits': 3}
        >>> SuiteOptions(fits=3).given("zoo")
        Traceback (most recent call last):
        ...
        softcvi.cli._errors.CommandError: --fits: the suite `zoo` has no such option...
    """

    quick: Flag = False
    """Tiny sizes, to try it out (all suites but zoo)."""
    parts: Names = None
    """Parts of a suite, separated by commas (all; not suites zoo and cold)."""
    repeats: int | None = None
    """Runs behind each median (5, cold 7; all suites but zoo)."""
    fits: int | None = None
    """Fits in one program (50; suite figure)."""
    full: Flag = False
    """All 50,000 steps of all methods (suite figure)."""
    models: Names = None
    """Models, separated by commas (all of the zoo; cold: the four tasks, which takes
    names of the zoo or the word zoo as well)."""
    methods: Names = None
    """fit, fit_until, fit_starts, auto_normal, auto_mvn, pathfinder, nuts, separated by
    commas (all but fit_starts; suite zoo). fit, fit_until, fit_warm, fit_second,
    nuts_parallel, nuts_vectorized, floor (all; suite cold)."""
    seeds: Integers = None
    """Seeds, separated by commas (0; suite zoo)."""
    split: Literal["development", "report"] | None = None
    """One half of the models (suite zoo)."""
    minutes: float | None = None
    """Stop after so long; the same command goes on from there (suite cold)."""

    def given(self, suite: str) -> dict:
        """Options for a suite; those that it does not have are refused.

        Args:
            suite: Name of the suite.
        """
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        told = {name: value for name, value in values.items() if value}
        for name in told:
            if name not in _OPTIONS[suite]:
                raise CommandError(
                    f"--{name}: the suite `{suite}` has no such option. Leave it out."
                )
        return told


def run(
    *,
    suite: Annotated[
        Literal["peers", "growth", "compile", "figure", "zoo", "cold"],
        Parameter(help="What to measure."),
    ] = _NOT_GIVEN,
    redraw: Annotated[
        Path | None,
        Parameter(
            help="Print a stored result's table, and write table and plot beside it."
        ),
    ] = None,
    options: SuiteOptions = SuiteOptions(),  # noqa: B008
    out: Annotated[
        Path | None, Parameter(help="Output folder (softcvi-bench-SUITE).")
    ] = None,
    common: Computing = Computing(),  # noqa: B008
) -> int | None:
    """Measure speed and quality beside other libraries."""
    if redraw is not None:
        if suite is not _NOT_GIVEN or out is not None or options != SuiteOptions():
            raise CommandError("--redraw: takes no other option. Leave them out.")
        _redraw(redraw)
        return None
    if suite is _NOT_GIVEN:
        known = ", ".join(_OPTIONS)
        raise CommandError(f"--suite: say what to measure, one of {known}")
    told = options.given(suite)
    folder = out or Path(f"softcvi-bench-{suite}")
    with hold_folder(folder):
        own = {"zoo": _zoo, "cold": _cold}
        measure = own.get(suite) or functools.partial(_speed, suite)
        return measure(folder, told)


def _speed(suite: str, out: Path, told: dict) -> int:
    bench = _benchmarks(f"--suite {suite}")
    measure = {
        "peers": bench.bench_peers,
        "growth": bench.bench_growth,
        "compile": bench.bench_compile,
        "figure": bench.bench_figure,
    }[suite]
    files = measure(bench.Options(out, say=say, **told))
    say()
    say(bench.speed_table(files[0]))
    return 0


def _zoo(out: Path, told: dict) -> int:
    from softcvi_experiments.zoo import run_zoo

    records = run_zoo(out=out, **told)
    say(f"table and picture: {out / 'zoo.md'}, {out / 'zoo.png'}")
    return int(any(record["status"] != "ok" for record in records))


def _cold(out: Path, told: dict) -> int:
    from softcvi_experiments.cold import Race, run_race

    minutes = told.pop("minutes", None)
    records = run_race(Race(**told), out, minutes=minutes, report=say)
    say(f"tables: {out / 'cold.md'}")
    return int(any(record["status"] != "ok" for record in records))


def _redraw(path: Path) -> None:
    bench = _benchmarks("--redraw")
    say(bench.speed_table(path))
    bench.redraw(path)


def _benchmarks(wanted: str) -> ModuleType:
    try:
        from softcvi_experiments import bench
    except ImportError as error:
        raise CommandError(
            f"{wanted}: this installation has no benchmarks ({error}). "
            "Install the experiments: pip install softcvi-experiments",
            1,
        ) from error
    return bench
