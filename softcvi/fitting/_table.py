"""Estimates as lines of text."""


def as_table(rows: list[dict[str, float | str]], max_rows: int = 20) -> list[str]:
    """Rows of ``softcvi.diagnostics.summarise`` as lines of text.

    Args:
        rows: One per scalar.
        max_rows: Scalars to list; the others are counted.

    Example:
        >>> import numpy as np, softcvi
        >>> rows = softcvi.diagnostics.summarise({"x": np.array([0.0, 2.0])})
        >>> softcvi.fitting.as_table(rows)[1].split()[:2]
        ['x', '1']
    """
    width = max((len(str(row["name"])) for row in rows[:max_rows]), default=0)
    columns = ("mean", "sd", "q5", "median", "q95")
    lines = [" " * width + "".join(f"{c:>11}" for c in columns)]
    for row in rows[:max_rows]:
        numbers = "".join(f"{row[c]:>11.4g}" for c in columns)
        lines.append(f"{row['name']:<{width}}{numbers}")
    if len(rows) > max_rows:
        lines.append(f"... and {len(rows) - max_rows} more")
    return lines
