"""Ticks at round numbers."""

import math


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers that divide a range.

    Args:
        low: Where the range begins.
        high: Where it ends.
        about: How many are wanted.

    Example:
        >>> ticks(0.0, 1.0)
        [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    step = _round_step((high - low) / about)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def log_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Powers of ten, as exponents; in a short range also their doubles and fives.

    Args:
        low: Smallest exponent.
        high: Largest exponent.
        about: How many are wanted.

    Example:
        >>> log_ticks(-2.3, 1.2)
        [-2.0, -1.0, 0.0, 1.0]
    """
    first, last = math.ceil(low - 1e-9), math.floor(high + 1e-9)
    every = max(1, math.ceil((last - first + 1) / about))
    exponents = [float(i) for i in range(first, last + 1, every)]
    if len(exponents) > 2:
        return exponents
    decades = range(math.floor(low), math.ceil(high) + 1)
    finer = [i + math.log10(m) for i in decades for m in (1, 2, 5)]
    return [x for x in finer if low <= x <= high]


def tick_text(value: float) -> str:
    """A number as short as a tick wants it.

    Args:
        value: The number.

    Example:
        >>> tick_text(0.25), tick_text(20000.0), tick_text(-0.0)
        ('0.25', '20k', '0')
    """
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e6 or size < 1e-3:
        mantissa, exponent = f"{value:.1e}".split("e")
        return f"{mantissa.removesuffix('.0')}e{int(exponent)}"
    if size >= 1e4:
        return f"{value / 1000:.4g}k"
    return f"{value:.4g}".replace("-", "\N{MINUS SIGN}")


def _round_step(step: float) -> float:
    if not (math.isfinite(step) and step > 0):
        return 1.0
    power = 10.0 ** math.floor(math.log10(step))
    return next((m * power for m in (1, 2, 5) if m * power >= step), 10 * power)
