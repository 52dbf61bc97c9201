"""``softcvi bench --suite zoo``."""

import argparse
from pathlib import Path


def add_zoo_options(parser: argparse.ArgumentParser) -> None:
    """Options of ``softcvi bench --suite zoo``."""
    parser.add_argument("--models", help="zoo models, separated by commas (all)")
    parser.add_argument(
        "--methods",
        help="fit, fit_until, fit_starts, auto_normal, auto_mvn, pathfinder, nuts, "
        "separated by commas (all but fit_starts)",
    )
    parser.add_argument("--seeds", default="0", help="seeds, separated by commas")
    parser.add_argument("--split", choices=("development", "report"))
    parser.add_argument("--out", type=Path, default=Path("softcvi-zoo"))


def bench_zoo(options: argparse.Namespace) -> int:
    """Run the zoo's bench as asked on the command line; 0 if every case answered.

    Example:
        >>> parser = argparse.ArgumentParser()
        >>> add_zoo_options(parser)
        >>> parser.parse_args(["--models", "banana"]).models
        'banana'
    """
    from softcvi_experiments.zoo import run_zoo
    from softcvi_experiments.zoo._bench import DEFAULT_METHODS

    records = run_zoo(
        options.models.split(",") if options.models else None,
        options.methods.split(",") if options.methods else DEFAULT_METHODS,
        seeds=[int(seed) for seed in options.seeds.split(",")],
        split=options.split,
        out=options.out,
    )
    print(f"table and picture: {options.out / 'zoo.md'}, {options.out / 'zoo.png'}")
    return int(any(record["status"] != "ok" for record in records))
