"""``python -m softcvi_experiments.stan --out FILE [NAME ...]``: the comparison."""

import argparse
from pathlib import Path

import jax

from softcvi_experiments.stan import names, record


def main() -> None:
    """Compare the programs that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs; else all")
    parser.add_argument("--out", type=Path, default=Path("results/stan/programs.jsonl"))
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    for name in args.names or names():
        for row in record([name], args.out, args.seed):
            low, high = row.sd_ratio
            print(
                f"{row.name:26s} d={row.dimension:<3d} "
                f"means off {row.mean_off:.3f} sd, sd ratio {low:.2f} to {high:.2f}, "
                f"{row.verdict}, {row.seconds:.0f} s "
                f"(NUTS {row.seconds_nuts:.0f} s, R-hat {row.rhat:.3f})",
                flush=True,
            )


if __name__ == "__main__":
    main()
