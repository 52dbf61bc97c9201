"""From a Stan program to a target, whichever engine evaluates it."""

import functools
import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from softcvi.adapters._extras import require
from softcvi.adapters.stan._bridgestan import BridgeStanProgram
from softcvi.adapters.stan._build import build
from softcvi.adapters.stan._data import as_json, read_data
from softcvi.adapters.stan._decentre import Standardised
from softcvi.adapters.stan._library import Library
from softcvi.adapters.stan._placed import placed
from softcvi.adapters.stan._program import AbstractProgram
from softcvi.adapters.stan._stanc import Source, as_source, httpstan_folder, translate
from softcvi.adapters.stan._target import StanTarget


class Opened(NamedTuple):
    """A program with its data, and what is known of its parameters from its text.

    Example:
        >>> Opened._fields
        ('program', 'types', 'standardised')
    """

    program: AbstractProgram
    types: dict[str, str]
    standardised: tuple[Standardised, ...] = ()


class AbstractEngine(ABC):
    """What compiles a Stan program and evaluates it.

    Example:
        >>> from softcvi.adapters.stan import Httpstan
        >>> Httpstan(optimize=False).optimize
        False
    """

    @abstractmethod
    def open(
        self, source: Source, data: Mapping[str, Any], seed: int, progress: bool
    ) -> Opened:
        """Compile the program, unless that was done before, and give it its data."""


class Httpstan(AbstractEngine):
    """The compiler and headers in the ``httpstan`` wheel, with our own C interface.

    Fast: a batch of points is one call, on several threads where that pays.

    Args:
        optimize: Let the C++ compiler optimise: slower to build, much faster to run.
        precompile: Compile Stan's headers once for all programs, with g++. This takes a
            minute and 800 MB in the cache folder, and then a program takes a third of
            the time to compile: for those who have many.

    Example:
        >>> from softcvi.adapters.stan import Httpstan
        >>> Httpstan().optimize
        True
    """

    def __init__(self, *, optimize: bool = True, precompile: bool = False):
        self.optimize = optimize
        self.precompile = precompile

    def open(
        self, source: Source, data: Mapping[str, Any], seed: int, progress: bool
    ) -> Opened:
        translated = translate(source)
        text = as_json(data, translated.inputs)
        build_now = functools.partial(
            build,
            translated.cpp,
            source.name,
            optimize=self.optimize,
            precompile=self.precompile,
            progress=progress,
        )
        path = build_now()
        try:
            program = Library(path, text, seed)
        except OSError:  # the file in the cache is damaged
            path.unlink(missing_ok=True)
            program = Library(build_now(), text, seed)
        standardised = placed(translated.hierarchies, program, translated.types, data)
        return Opened(program, translated.types, standardised)


class BridgeStan(AbstractEngine):
    """The ``bridgestan`` package, which fetches Stan's sources when first used.

    Example:
        >>> from softcvi.adapters.stan import BridgeStan
        >>> engine = BridgeStan()
    """

    def open(
        self, source: Source, data: Mapping[str, Any], seed: int, progress: bool
    ) -> Opened:
        bridgestan = require("bridgestan", "stan")
        with tempfile.TemporaryDirectory(prefix="softcvi-stan-") as temporary:
            folder = source.folder or Path(temporary)
            path = folder / source.name
            if source.folder is None:
                path.write_text(source.text)
            library = bridgestan.compile_model(path)
            model = bridgestan.StanModel(library, as_json(data, None), seed=seed)
        return Opened(BridgeStanProgram(model), {})


def from_stan(
    program: str | os.PathLike,
    data: Mapping[str, Any] | str | os.PathLike | None = None,
    *,
    engine: AbstractEngine | None = None,
    seed: int = 0,
    decentre: bool = True,
    progress: bool = True,
) -> StanTarget:
    """The posterior of a Stan program.

    The program is compiled once (about half a minute) and kept in the platform's cache
    folder, or in that named by the environment variable ``SOFTCVI_CACHE_DIR``.

    Args:
        program: Path to a ``.stan`` file, or the text of a program. Programs in the
            array syntax that Stan 2.33 removed are rewritten.
        data: A dict, or a path to JSON or to an R dump.
        engine: ``Httpstan()`` or ``BridgeStan()`` of ``softcvi.adapters.stan``; by
            default the first of them whose package is installed.
        seed: Seed of random transformed data and generated quantities.
        decentre: Fit parameters whose prior has a parameter in its scale, such as
            ``theta ~ normal(a + b * x, tau)``, in standardised coordinates, by the
            prior alone or, as far as the data say more, by both. Draws are the same.
        progress: Say on standard error when a program is being compiled.

    Returns:
        A target for ``softcvi.fit``, with gradients. Draws have the names of the
        program, with transformed parameters and generated quantities; those named
        ``log_lik`` and ``y_rep`` go to ArviZ's groups.

    Raises:
        ValueError: If Stan refuses the program or the data, in Stan's own words.

    Example:
        >>> from softcvi.adapters import from_stan
        >>> code = "parameters { real mu; } model { mu ~ normal(3, 1); }"
        >>> target = from_stan(code)  # doctest: +SKIP
        >>> target.shapes  # doctest: +SKIP
        (('mu', ()),)
    """
    source = as_source(program)
    values = read_data(data)
    engine = _installed_engine() if engine is None else engine
    opened = engine.open(source, values, seed, progress)
    if opened.program.size == 0:
        raise ValueError(
            f"program: {source.name} has no parameters, so that there is no posterior."
        )
    return StanTarget(
        opened.program,
        values,
        types=opened.types,
        seed=seed,
        standardised=opened.standardised if decentre else (),
    )


def _installed_engine() -> AbstractEngine:
    return BridgeStan() if httpstan_folder() is None else Httpstan()


def from_bridgestan(model: Any) -> StanTarget:
    """The posterior of a BridgeStan model.

    Args:
        model: A ``bridgestan.StanModel`` (anything with its ``log_density``,
            ``log_density_gradient``, ``param_unc_num``, ``param_names`` and
            ``param_constrain``).

    Returns:
        A target for ``softcvi.fit``, with gradients.

    Example:
        >>> import numpy as np
        >>> from softcvi.adapters import from_bridgestan
        >>> class Model:  # stands for bridgestan.StanModel("model.stan", data)
        ...     def param_unc_num(self):
        ...         return 1
        ...
        ...     def param_names(self, **include):
        ...         return ["sigma"]
        ...
        ...     def log_density(self, theta_unc, propto=True, jacobian=True):
        ...         return float(-0.5 * np.exp(theta_unc[0]) ** 2 + theta_unc[0])
        ...
        ...     def log_density_gradient(self, theta_unc, propto=True, jacobian=True):
        ...         gradient = 1.0 - np.exp(theta_unc) ** 2
        ...         return self.log_density(theta_unc), gradient
        ...
        ...     def param_constrain(self, theta_unc, **include):
        ...         return np.exp(theta_unc)
        >>> target = from_bridgestan(Model())
        >>> float(target.describe({"unconstrained": np.zeros(1, np.float32)})["sigma"])
        1.0
    """
    return StanTarget(BridgeStanProgram(model))


def from_pystan(
    program: Any, data: dict[str, Any] | None = None, *, optimize: bool = True
) -> StanTarget:
    """The posterior of a PyStan model.

    Args:
        program: A model from ``stan.build``, or the text of a Stan program.
        data: Data of the program, if it is given as text.
        optimize: Let the C++ compiler optimise: slower to build, faster to run.

    Returns:
        What ``from_stan`` returns for the model's program and data.

    Example:
        >>> from softcvi.adapters import from_pystan
        >>> code = "parameters { real mu; } model { mu ~ normal(3, 1); }"
        >>> target = from_pystan(code)  # doctest: +SKIP
    """
    if not isinstance(program, str):
        program, data = program.program_code, program.data
    return from_stan(program, data, engine=Httpstan(optimize=optimize))
