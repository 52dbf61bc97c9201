"""``softcvi reproduce``: the paper's experiments."""

import argparse
from pathlib import Path
from typing import Any

from softcvi_experiments.cli._reproduce_appendix import (
    APPENDIX,
    APPENDIX_EXAMPLES,
    add_appendix_options,
    run_appendix,
)

_WHAT = {
    "metrics": "coverage, log probability and mean accuracy of tasks and methods",
    "slcp": "the four modes of SLCP beside reference draws, alpha 0 included",
    "marginals": "box plots of every parameter of one run",
    "particles": "quality and time against K, and the metrics of two variants",
}
_EPILOG = """\
figures:
{figures}

examples:
  softcvi reproduce metrics --runs 4 --steps 10000
  softcvi reproduce metrics --recipe default --tasks slcp --methods softcvi-0.75
  softcvi reproduce metrics --reference posteriordb-sbibm --data-dir reference
  softcvi reproduce slcp --runs 6
{examples}
Finished pieces are on record in the output folder: an interrupted command, given
again, goes on where it stopped.
"""


def add_reproduce_parser(commands: Any) -> None:
    """Add the command.

    Args:
        commands: What ``add_subparsers`` returned.

    Example:
        >>> parser = argparse.ArgumentParser()
        >>> add_reproduce_parser(parser.add_subparsers())
        >>> args = parser.parse_args(["reproduce", "metrics", "--tasks", "slcp,garch"])
        >>> args.tasks
        ['slcp', 'garch']
    """
    what = {**_WHAT, **APPENDIX}
    listed = "\n".join(f"  {name:<15} {text}" for name, text in what.items())
    parser = commands.add_parser(
        "reproduce",
        help="remake the paper's figures, ours beside the published numbers",
        description="Remake the paper's figures and set our numbers beside the "
        "published ones.",
        epilog=_EPILOG.format(figures=listed, examples=APPENDIX_EXAMPLES),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=tuple(what), help="which figure")
    parser.add_argument(
        "--tasks",
        type=_names,
        help="eight_schools, linear_regression, slcp, garch, garch_posteriordb, "
        "separated by commas (the paper's four)",
    )
    parser.add_argument(
        "--methods",
        type=_names,
        help="softcvi-0.75, softcvi-1, softcvi-0, snis-fkl, snis-fkl-low-variance, "
        "elbo, elbo-stl, separated by commas (the paper's)",
    )
    parser.add_argument(
        "--runs", type=int, help="runs of each task and method (50; 1 for slcp)"
    )
    parser.add_argument(
        "--steps", type=int, help="steps (50000; the appendix's figures have their own)"
    )
    parser.add_argument(
        "--particles",
        type=_numbers,
        help="K (8); for the figure `particles` a list (2,4,8,16,32,64)",
    )
    parser.add_argument(
        "--negative",
        default="proposal",
        help="what SoftCVI's negative tempers: proposal or posterior (%(default)s)",
    )
    parser.add_argument(
        "--recipe",
        help="paper (constant rate, no start-up) or default (ours) (paper; studies: "
        "default)",
    )
    parser.add_argument(
        "--reference",
        default="builtin",
        help="reference draws: builtin or posteriordb-sbibm (%(default)s)",
    )
    parser.add_argument(
        "--data-dir", help="folder, or a mirror's address, with the reference files"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed (%(default)s)")
    parser.add_argument(
        "--no-limit",
        action="store_true",
        help="leave out the limit of the guide's family, which takes a while",
    )
    parser.add_argument(
        "--out", type=Path, help="output folder (softcvi-reproduce-FIGURE)"
    )
    add_appendix_options(parser)
    parser.set_defaults(run=_run)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _numbers(text: str) -> list[int]:
    return [int(name) for name in _names(text)]


def _run(args: argparse.Namespace) -> None:
    import softcvi_experiments as experiments

    out = args.out or Path(f"softcvi-reproduce-{args.what}")
    if args.what in APPENDIX:
        _print(run_appendix(args, out, _say))
        return
    several = args.what == "particles"
    if args.particles and len(args.particles) != 1 and not several:
        raise ValueError(f"--particles: one number for {args.what}")
    settings = experiments.Settings(
        steps=50_000 if args.steps is None else args.steps,
        num_particles=args.particles[0] if args.particles else 8,
        negative=args.negative,
        recipe=args.recipe or "paper",
        reference=args.reference,
        seed=args.seed,
    )
    given = {
        "tasks": args.tasks,
        "methods": args.methods,
        "runs": args.runs,
        "particles": args.particles if several else None,
        "limits": False if args.no_limit and args.what == "metrics" else None,
    }
    if args.what == "slcp" and args.tasks not in (None, ["slcp"]):
        raise ValueError("--tasks: the figure `slcp` has one task")
    if args.what == "marginals" and args.runs not in (None, 1):
        raise ValueError("--runs: the figure `marginals` shows one run")
    ignored = {"slcp": "tasks", "marginals": "runs"}.get(args.what)
    options = {k: v for k, v in given.items() if v is not None and k != ignored}
    result = getattr(experiments, f"reproduce_{args.what}")(
        out, settings=settings, data_dir=args.data_dir, say=_say, **options
    )
    _print(result)


def _print(result: Any) -> None:
    if result.table:
        print(result.table)
    print("written: " + ", ".join(str(path) for path in dict.fromkeys(result.files)))


def _say(line: str) -> None:
    print(line, flush=True)
