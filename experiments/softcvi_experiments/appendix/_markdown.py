"""Markdown tables."""

from collections.abc import Sequence


def as_table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Lay cells out as a Markdown table with aligned columns.

    Args:
        header: Names of the columns.
        lines: Cells, line by line.

    Example:
        >>> print(as_table(["a", "bc"], [["1.5", "2"]]))
        | a   | bc |
        | --- | -- |
        | 1.5 | 2  |
    """
    everything = [header, *lines]
    widths = [max(len(line[i]) for line in everything) for i in range(len(header))]
    rule = ["-" * width for width in widths]
    return "\n".join(
        "| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |"
        for line in [header, rule, *lines]
    )
