"""What ``softcvi fit`` does, once its arguments are read."""

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np

import softcvi
from softcvi import guides
from softcvi.cli._data import read_data, read_draws
from softcvi.cli._errors import FAILURE, INTERRUPTED, OK, CommandError
from softcvi.cli._fit import DEFAULT_ALPHA, DEFAULT_PARTICLES
from softcvi.cli._fit_files import (
    CHAIN,
    CHECKPOINT,
    check_folder,
    clear_folder,
    is_finished,
    settings_of,
    write_all,
)
from softcvi.cli._fit_record import check_same
from softcvi.cli._fit_reference import matched_reference
from softcvi.cli._model_error import model_error
from softcvi.cli._model_file import load_target, split_name
from softcvi.cli._observed import is_prior
from softcvi.cli._terminal import make_reporter, say
from softcvi.ladder import LadderResult
from softcvi.report import FitView, as_json

_CODES = {"interrupted": INTERRUPTED, "failed": FAILURE}
_CHECKPOINT_SECONDS = 10.0


def run_fit(args: argparse.Namespace) -> int:
    """Fit, write, and say what came out.

    Args:
        args: What the command was given.

    Returns:
        The exit code.

    Example:
        >>> import tempfile
        >>> from softcvi.cli import main
        >>> folder = Path(tempfile.mkdtemp())
        >>> code = "like = {'x': 0.0}" + chr(10) + "def log_prob(t): return -t['x']**2"
        >>> _ = (folder / "normal.py").write_text(code)
        >>> model, out = f"{folder / 'normal.py'}:log_prob", str(folder / "out")
        >>> main(["fit", model, "--steps", "50", "--out", out, "--quiet"])
        0
    """
    path, name = split_name(args.model)
    check_folder(args.out, resume=args.resume, overwrite=args.overwrite)
    if args.resume:
        check_same(args.out, settings_of(args, path, name))
        if is_finished(args.out):
            say(f"{args.out}: this fit is finished already", quiet=args.quiet)
            return OK
    answer, reference = _answer(args, path, name)
    ladder = answer if isinstance(answer, LadderResult) else None
    result = answer.result if isinstance(answer, LadderResult) else answer
    if result.steps == 0:
        _refuse_nothing(result, f"{path.name}:{name}")
    view = FitView.from_result(
        result,
        name=_label(args),
        method=args.objective,
        posterior=name,
        settings=settings_of(args, path, name),
        reference=reference,
    )
    if ladder is not None:
        view = _with_rungs(view, ladder, result)
    files, notes = write_all(args.out, result, view, args.seed)
    if ladder is not None and ladder.chain is not None:
        np.savez(args.out / CHAIN, **ladder.chain.draws)
        files.append(args.out / CHAIN)
    if args.json:
        print(json.dumps(as_json(view), allow_nan=False))
    elif not args.quiet:
        say(answer.summary())
        say("\nwrote      " + ", ".join(str(file) for file in files))
        for note in notes:
            say(f"note       {note}")
    if result.status == "interrupted":
        say("go on with the same command and --resume", quiet=args.quiet or args.json)
    return _CODES.get(result.status, OK)


def _answer(
    args: argparse.Namespace, path: Path, name: str
) -> tuple[softcvi.FitResult | LadderResult, dict[str, np.ndarray] | None]:
    """The fit, and the draws to set beside it."""
    data = {} if args.data is None else read_data(args.data)
    source = "--data" if args.data is None else args.data.name
    draws = None if args.reference is None else read_draws(args.reference)
    objective = _objective(args)
    target = load_target(path, name, data, args.kind, source)
    if not args.quiet and is_prior(target):
        print(
            f"note: {path.name}:{name} observes nothing with these data; the answer is "
            "the prior",
            file=sys.stderr,
        )
    reference = None
    if draws is not None:
        reference = matched_reference(args.reference, draws, target, args.quiet)
    if args.overwrite and not args.resume:
        clear_folder(args.out)
    try:
        return _fit(args, target, objective), reference
    except Exception as error:
        explained = model_error(error, path, name, data, source)
        if explained is error:
            raise
        raise explained from error


def _refuse_nothing(result: softcvi.FitResult, where: str) -> None:
    if result.status == "failed":
        raise CommandError(f"{where}: {result.message}", FAILURE)
    raise CommandError("interrupted before the first step", INTERRUPTED)


def _label(args: argparse.Namespace) -> str:
    names = {"softcvi": "SoftCVI", "elbo": "ELBO", "snis-fkl": "SNIS-fKL"}
    return names[args.objective]


def _objective(args: argparse.Namespace) -> softcvi.objectives.AbstractObjective:
    if args.objective != "softcvi" and args.alpha is not None:
        raise CommandError(f"--alpha: {args.objective} has none. Leave it out.")
    particles = DEFAULT_PARTICLES if args.particles is None else args.particles
    if args.objective == "elbo":
        return softcvi.ELBO(particles)
    if args.objective == "snis-fkl":
        return softcvi.SNISForwardKL(particles)
    alpha = DEFAULT_ALPHA if args.alpha is None else args.alpha
    negative = softcvi.TemperedProposal(alpha)
    return softcvi.SoftCVI(particles, negative=negative)


def _guide(name: str, key: jax.Array, target: Any) -> guides.AbstractGuide | None:
    makers = {
        "auto": lambda: None,
        "mean-field": lambda: guides.mean_field(target),
        "full-rank": lambda: guides.full_rank(target),
        "low-rank": lambda: guides.low_rank(target),
        "student-t": lambda: guides.student_t(target),
        "flow": lambda: guides.spline_flow(target, key=key),
        "coupling": lambda: guides.coupling_flow(target, key=key),
    }
    return makers[name]()


def _fit(
    args: argparse.Namespace, target, objective
) -> softcvi.FitResult | LadderResult:
    fit_key, guide_key = jax.random.split(jax.random.key(args.seed))
    reporter = make_reporter(args.quiet, Path(args.model).name)
    if args.until_khat is not None:
        given = {
            "--guide": args.guide != "auto",
            "--objective": args.objective != "softcvi",
            "--alpha": args.alpha is not None,
            "--particles": args.particles is not None,
            "--starts": args.starts != 1,
            "--resume": args.resume,
        }
        if any(given.values()):
            names = ", ".join(name for name, is_given in given.items() if is_given)
            raise CommandError(
                "--until-khat: chooses the guides itself, and how to fit them, and "
                f"starts afresh. Leave out {names}."
            )
        return softcvi.fit_until(
            fit_key, target, args.until_khat, steps=args.steps, progress=reporter
        )
    guide = _guide(args.guide, guide_key, target)
    checkpoint = softcvi.fitting.Checkpoint(
        args.out / CHECKPOINT, every=_CHECKPOINT_SECONDS
    )
    return softcvi.fit(
        fit_key,
        target,
        guide,
        objective=objective,
        steps=args.steps,
        starts=args.starts,
        progress=reporter,
        # Several starts of one guide are one program, which keeps no checkpoint.
        checkpoint=checkpoint if args.starts == 1 or guide is None else None,
        throw=False,
    )


def _with_rungs(
    view: FitView, ladder: LadderResult, result: softcvi.FitResult
) -> FitView:
    """The page of a ladder: its verdict, each rung, and the chain beside the guide."""
    verdict = ladder.verdict
    rungs = {
        f"rung {i}": f"{rung.name}, {rung.seconds:.1f} s: {rung.verdict}"
        for i, rung in enumerate(ladder.rungs, start=1)
    }
    view = dataclasses.replace(
        view,
        level=verdict.level,
        reasons=tuple(verdict.reasons),
        choices={**view.choices, **rungs},
    )
    if ladder.chain is None or view.reference:
        return view
    return view.with_reference(ladder.chain.draws, result.posterior)
