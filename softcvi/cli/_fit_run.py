"""What ``softcvi fit`` does, once its arguments are read."""

import argparse
import inspect
import json
from pathlib import Path
from typing import Any

import jax

import softcvi
from softcvi import guides
from softcvi.cli._data import read_data, read_draws
from softcvi.cli._errors import FAILURE, INTERRUPTED, OK, CommandError, in_file
from softcvi.cli._fit_files import (
    CHECKPOINT,
    check_folder,
    is_finished,
    settings_of,
    write_all,
)
from softcvi.cli._model_file import load_target, split_name
from softcvi.cli._terminal import make_reporter, say
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
    if args.resume and is_finished(args.out):
        say(f"{args.out}: this fit is finished already", quiet=args.quiet)
        return OK
    reference = None if args.reference is None else read_draws(args.reference)
    data = {} if args.data is None else read_data(args.data)
    objective = _objective(args)
    target = load_target(path, name, data, args.kind)
    try:
        result = _fit(args, target, objective)
    except KeyboardInterrupt:
        raise
    except Exception as error:
        where = in_file(error, path.resolve())
        if where is None:
            raise
        raise CommandError(where, FAILURE) from error
    if result.steps == 0:
        raise CommandError("interrupted before the first step", INTERRUPTED)
    view = FitView.from_result(
        result,
        name=_label(args),
        method=args.objective,
        posterior=name,
        settings=settings_of(args, path, name),
        reference=reference,
    )
    files, notes = write_all(args.out, result, view, args.seed)
    if args.json:
        print(json.dumps(as_json(view), allow_nan=False))
    elif not args.quiet:
        say(result.summary())
        say("\nwrote      " + ", ".join(str(file) for file in files))
        for note in notes:
            say(f"note       {note}")
    if result.status == "interrupted":
        say("go on with the same command and --resume", quiet=args.quiet or args.json)
    return _CODES.get(result.status, OK)


def _label(args: argparse.Namespace) -> str:
    names = {"softcvi": "SoftCVI", "elbo": "ELBO", "snis-fkl": "SNIS-fKL"}
    return names[args.objective]


def _objective(args: argparse.Namespace) -> softcvi.objectives.AbstractObjective:
    if args.objective != "softcvi" and args.alpha is not None:
        raise CommandError(f"--alpha: {args.objective} has none. Leave it out.")
    if args.objective == "elbo":
        return softcvi.ELBO(args.particles)
    if args.objective == "snis-fkl":
        return softcvi.SNISForwardKL(args.particles)
    alpha = 0.75 if args.alpha is None else args.alpha
    negative = softcvi.TemperedProposal(alpha)
    return softcvi.SoftCVI(args.particles, negative=negative)


def _guide(name: str, key: jax.Array, target: Any) -> guides.AbstractGuide | None:
    makers = {
        "auto": lambda: None,
        "mean-field": lambda: guides.mean_field(target),
        "full-rank": lambda: guides.full_rank(target),
        "low-rank": lambda: guides.low_rank(target),
        "student-t": lambda: guides.student_t(target),
        "flow": lambda: guides.spline_flow(key, target),
        "coupling": lambda: guides.coupling_flow(key, target),
    }
    return makers[name]()


def _fit(args: argparse.Namespace, target, objective) -> softcvi.FitResult:
    fit_key, guide_key = jax.random.split(jax.random.key(args.seed))
    reporter = make_reporter(args.quiet, Path(args.model).name)
    if args.until_khat is not None:
        return _fit_until(args, fit_key, target, reporter)
    options: dict[str, Any] = {}
    if args.starts != 1:
        if "starts" not in inspect.signature(softcvi.fit).parameters:
            raise CommandError("--starts: this version of softcvi.fit has one start.")
        options["starts"] = args.starts
    return softcvi.fit(
        fit_key,
        target,
        _guide(args.guide, guide_key, target),
        objective=objective,
        steps=args.steps,
        progress=reporter,
        checkpoint=softcvi.fitting.Checkpoint(
            args.out / CHECKPOINT, every=_CHECKPOINT_SECONDS
        ),
        throw=False,
        **options,
    )


def _fit_until(args: argparse.Namespace, key, target, reporter) -> softcvi.FitResult:
    fit_until = getattr(softcvi, "fit_until", None)
    if fit_until is None:
        raise CommandError("--until-khat: this version of softcvi has no fit_until.")
    if args.guide != "auto" or args.resume:
        raise CommandError(
            "--until-khat: chooses the guides itself and starts afresh. Leave out "
            "--guide and --resume."
        )
    known = inspect.signature(fit_until).parameters
    options = {"progress": reporter} if "progress" in known else {}
    return fit_until(key, target, khat=args.until_khat, **options)
