"""Types of options that the experiments' commands share."""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Annotated, Any, TypeVar

from cyclopts import Parameter, Token

Kind = TypeVar("Kind")


def _split(kind: Callable[[str], Any]) -> Callable[[Any, Sequence[Token]], Any]:
    def convert(type_: Any, tokens: Sequence[Token]) -> tuple:
        words = [w.strip() for token in tokens for w in token.value.split(",")]
        return tuple(kind(word) for word in words if word)

    return convert


Names = Annotated[tuple[str, ...] | None, Parameter(converter=_split(str), n_tokens=1)]
Integers = Annotated[
    tuple[int, ...] | None, Parameter(converter=_split(int), n_tokens=1)
]
Floats = Annotated[
    tuple[float, ...] | None, Parameter(converter=_split(float), n_tokens=1)
]
# The fields of a settings class as flags of their own: num_particles is --particles.
Flat = Parameter(
    name="*",
    name_transform=lambda name: name.removeprefix("num_").replace("_", "-"),
)


def given(**options: Any) -> dict[str, Any]:
    """Options that were given; the experiments have defaults of their own.

    Args:
        **options: Values, None for what was not given.

    Example:
        >>> given(runs=3, tasks=None)
        {'runs': 3}
    """
    return {name: value for name, value in options.items() if value is not None}


def smaller(settings: Kind, **values: Any) -> Kind:
    """Settings with smaller values, where they still have their defaults.

    Args:
        settings: A settings dataclass.
        **values: The smaller values.

    Example:
        >>> from softcvi_experiments import Settings
        >>> smaller(Settings(seed=3), steps=10, seed=9).seed
        3
    """
    defaults = {field.name: field.default for field in fields(settings)}  # type: ignore[arg-type]
    untouched = {
        name: value
        for name, value in values.items()
        if getattr(settings, name) == defaults[name]
    }
    return replace(settings, **untouched)  # type: ignore[type-var]
