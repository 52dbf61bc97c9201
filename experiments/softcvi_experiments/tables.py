"""The one writer of Markdown tables."""

from collections.abc import Sequence


def markdown_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numbers: bool = False,
) -> str:
    """Lay cells out as a Markdown table with aligned columns.

    Args:
        header: Names of the columns.
        rows: Cells, row by row.
        numbers: Whether all columns but the first are aligned right.

    Example:
        >>> print(markdown_table(["task", "seconds"], [["a", "1.0"]], numbers=True))
        | task | seconds |
        | ---- | ------: |
        | a    |     1.0 |
        >>> print(markdown_table(["a", "bc"], [["1.5", "2"]]))
        | a   | bc  |
        | --- | --- |
        | 1.5 | 2   |
    """
    columns = list(zip(*[header, *rows], strict=True))
    widths = [max(3, *map(len, column)) for column in columns]
    right = [numbers and i > 0 for i in range(len(widths))]
    rule = [
        "-" * (width - 1) + ":" if at_right else "-" * width
        for width, at_right in zip(widths, right, strict=True)
    ]
    aligned = [
        [
            cell.rjust(width) if at_right else cell.ljust(width)
            for cell, width, at_right in zip(row, widths, right, strict=True)
        ]
        for row in (header, *rows)
    ]
    lines = [aligned[0], rule, *aligned[1:]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
