"""What ``softcvi fit`` does, once its arguments are read."""

import json
from pathlib import Path
from typing import Any

import jax

import softcvi
from softcvi.cli._data import read_draws
from softcvi.cli._errors import FAILURE, INTERRUPTED, OK, CommandError
from softcvi.cli._fit import Method, Output
from softcvi.cli._fit_files import (
    CHECKPOINT,
    FILES,
    check_empty_or_meant,
    check_same,
    check_writable,
    clear_folder,
    fingerprints,
    is_finished,
    matched_reference,
    write_all,
)
from softcvi.cli._folder import hold_folder, refuse_links
from softcvi.cli._model_file import ModelFile, exited, model_error
from softcvi.cli._progress import make_reporter
from softcvi.cli._reading import same_folder
from softcvi.cli._terminal import say, tell
from softcvi.report import FitView, as_json
from softcvi.sweeps import GUIDES
from softcvi.targets import AbstractTarget

_CODES = {"interrupted": INTERRUPTED, "failed": FAILURE}
_CHECKPOINT_SECONDS = 10.0
_DRAWS = 4000
_LABELS = {"softcvi": "SoftCVI", "elbo": "ELBO", "snis-fkl": "SNIS-fKL"}
_DEFAULT_PARTICLES, _DEFAULT_ALPHA = 8, 0.75


def run_fit(file: ModelFile, method: Method, output: Output) -> int:
    """Fit, write, and say what came out.

    Args:
        file: The model and its data.
        method: How to fit it.
        output: Where to, and what to print.

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
    check_writable(output.out)
    with hold_folder(output.out):
        refuse_links(output.out, *FILES)
        with same_folder():
            return _run_in_folder(file, method, output)


def _run_in_folder(file: ModelFile, method: Method, output: Output) -> int:
    check_empty_or_meant(output.out, resume=output.resume, overwrite=output.overwrite)
    if output.resume:
        check_same(output.out, _settings(file, method))
        if is_finished(output.out):
            say(f"{output.out}: this fit is finished already", quiet=output.quiet)
            return OK
    settings = _settings(file, method)
    with same_folder():
        answer, reference = _answer(file, method, output)
        if answer.steps == 0 and answer.status != "finished":
            _refuse_nothing(answer, str(file))
        draws = answer.sample(jax.random.key(method.seed), _DRAWS)
        view = FitView.from_result(
            answer,
            draws=draws,
            name=_LABELS[method.objective],
            method=method.objective,
            posterior=file.name,
            settings=settings,
            reference=reference,
        )
    written = write_all(output.out, answer, view, draws, method.seed)
    if output.json:
        say(json.dumps(as_json(view), allow_nan=False))
    elif not output.quiet:
        say(answer.summary())
        say("\nwrote      " + ", ".join(str(path) for path in written.files))
        for note in written.notes:
            say(f"note       {note}")
    if answer.status == "interrupted":
        quiet = output.quiet or output.json
        say("go on with the same command and --resume", quiet=quiet)
    if not written.is_complete:
        again = "--resume" if (output.out / CHECKPOINT).exists() else "--overwrite"
        raise CommandError(
            f"--out {output.out}: {'; '.join(written.notes)}. Make room and give the "
            f"same command with {again}.",
            FAILURE,
        )
    return _CODES.get(answer.status, OK)


def _settings(file: ModelFile, method: Method) -> dict[str, Any]:
    return {
        **fingerprints(file.path, file.name, file.data_path),
        **method.recorded(),
    }


def _answer(file: ModelFile, method: Method, output: Output) -> tuple[Any, Any]:
    """The fit, and the draws to set beside it."""
    data = file.read_data()
    draws = None if output.reference is None else read_draws(output.reference)
    objective = _OBJECTIVES[method.objective](method)
    target = file.load(data, method.kind)
    if not output.quiet and _is_prior(target):
        tell(f"note: {file} observes nothing with these data; the answer is the prior")
    reference = None
    if draws is not None and output.reference is not None:
        reference = matched_reference(output.reference, draws, target, output.quiet)
    if output.overwrite:
        clear_folder(output.out)
    try:
        return _fit(file, target, objective, method, output), reference
    except SystemExit as stop:
        raise exited(file.path, stop) from stop
    except Exception as error:
        values = {} if isinstance(data, Path) else data
        explained = model_error(error, file.path, file.name, values, file.source)
        if explained is error:
            raise
        raise explained from error


def _refuse_nothing(result: Any, where: str) -> None:
    if result.status == "failed":
        raise CommandError(f"{where}: {result.message}", FAILURE)
    raise CommandError("interrupted before the first step", INTERRUPTED)


def _particles(method: Method) -> int:
    return _DEFAULT_PARTICLES if method.particles is None else method.particles


def _softcvi(method: Method) -> softcvi.SoftCVI:
    alpha = _DEFAULT_ALPHA if method.alpha is None else method.alpha
    negative = softcvi.TemperedProposal(alpha)
    return softcvi.SoftCVI(_particles(method), negative=negative)


_OBJECTIVES: dict[str, Any] = {
    "softcvi": _softcvi,
    "elbo": lambda method: softcvi.ELBO(_particles(method)),
    "snis-fkl": lambda method: softcvi.SNISForwardKL(_particles(method)),
}


def _fit(
    file: ModelFile,
    target: AbstractTarget,
    objective: softcvi.objectives.AbstractObjective,
    method: Method,
    output: Output,
) -> Any:
    fit_key, guide_key = jax.random.split(jax.random.key(method.seed))
    reporter = make_reporter(output.quiet, str(file))
    checkpoint = softcvi.fitting.Checkpoint(
        (output.out / CHECKPOINT).absolute(), every=_CHECKPOINT_SECONDS
    )
    if method.until_khat is not None:
        return softcvi.fit_until(
            fit_key,
            target,
            method.until_khat,
            steps=method.steps,
            progress=reporter,
            checkpoint=checkpoint,
        )
    guide = GUIDES[method.guide](guide_key, target)
    return softcvi.fit(
        fit_key,
        target,
        guide,
        objective=objective,
        steps=method.steps,
        starts=method.starts,
        progress=reporter,
        # Several starts of one guide are one program, which keeps no checkpoint.
        checkpoint=checkpoint if method.starts == 1 or guide is None else None,
        throw=False,
    )


def _is_prior(target: AbstractTarget) -> bool:
    """Whether a NumPyro model observes nothing, so that its posterior is its prior."""
    from softcvi.adapters.numpyro._target import NumPyroTarget

    if not isinstance(target, NumPyroTarget) or target.observed:
        return False
    # A `factor` is no data, but it is a likelihood all the same.
    return not target.has_factor
