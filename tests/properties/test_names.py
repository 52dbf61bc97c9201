"""Parameters of any name come back from every file that holds them."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import softcvi
from softcvi import guides
from softcvi.adapters import AskTellSession
from softcvi.fitting import AbstractStoppingRule, Checkpoint
from softcvi.report import FitView, read_fit, save_fit, write_report
from softcvi.sweeps import RecordStore

# Examples are the same in every run.
FEW = settings(
    max_examples=10,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
HARD_NAMES = ["", 'quote"d', "'", "line\nbreak", "re\rturn", "a/b", "../x", "\\", "\0"]
HARD_NAMES += ["com,ma", "=1+1", "\t", "[0]", "x[1]", "ß\u2028", "\x1b[31m", "İı"]
HARD_NAMES += [
    "__class__",
    "k" * 300,
    "<b>",
    "a.b",
    " a",
    "a ",
    "nan",
    "1e5",
    "log_q",
    "log_weight",
]
NAMES = st.lists(
    st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(HARD_NAMES),
    min_size=2,
    max_size=2,
    unique=True,
)


@given(names=NAMES)
@FEW
def test_draws_of_a_fit_in_a_folder(names, tmp_path):
    example = FitView.example()
    columns = {name: example.columns["mu"] + i for i, name in enumerate(names)}
    save_fit(dataclasses.replace(example, columns=columns), tmp_path)
    again = read_fit(tmp_path).columns
    assert list(again) == names
    for name in names:
        np.testing.assert_allclose(again[name], columns[name], atol=1e-6)
    assert not list(tmp_path.glob("*.part"))


@given(names=NAMES)
@settings(FEW, max_examples=3)
def test_pages_of_a_fit(names, tmp_path):
    example = FitView.example()
    columns = {name: example.columns["mu"] + i for i, name in enumerate(names)}
    write_report(dataclasses.replace(example, columns=columns), tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<b></" not in page
    assert "\0" not in page


@given(names=NAMES)
@FEW
def test_records_of_a_sweep(names, tmp_path):
    (tmp_path / "records.jsonl").unlink(missing_ok=True)
    store = RecordStore(tmp_path)
    store.add([{"id": name, "draws": {name: 1.5}} for name in names])
    again = RecordStore(tmp_path)
    assert [record["draws"] for record in again.all()] == [{n: 1.5} for n in names]
    assert again.identifiers() == set(names)


@given(names=NAMES)
@settings(FEW, max_examples=5)
def test_sessions_that_ask_and_tell(names, tmp_path):
    path = tmp_path / "session.softcvi"
    path.unlink(missing_ok=True)
    like = {names[0]: jnp.zeros(2), names[1]: jnp.zeros(())}

    def session():
        guide = guides.mean_field(like)
        return AskTellSession(jax.random.key(0), guide, budget=8, path=path)

    ids, points = session().ask_with_ids(3)
    again = session()
    assert again.pending == ids
    stored = again.points_of(ids)
    assert set(stored) == set(names)
    for name in names:
        np.testing.assert_array_equal(stored[name], points[name])


class Pause(AbstractStoppingRule):
    follows_clock = True

    def reason(self, progress):
        return "a pause" if progress.step else None


@given(names=NAMES)
@settings(FEW, max_examples=2, phases=[Phase.explicit, Phase.generate])
def test_checkpoints(names, tmp_path):
    path = tmp_path / "fit.checkpoint"
    path.unlink(missing_ok=True)
    target = softcvi.DensityTarget(
        lambda x: -0.5 * sum(jnp.sum(x[name] ** 2) for name in names),
        {names[0]: np.zeros(2), names[1]: np.zeros(())},
    )
    options = {"steps": 80, "start": None, "progress": False}
    call = functools.partial(softcvi.fit, jax.random.key(0), target, **options)
    checkpoint = Checkpoint(path, every=0.0)
    whole = call()
    assert call(stopping=Pause(), checkpoint=checkpoint).status == "stopped"
    again = call(checkpoint=checkpoint)
    np.testing.assert_array_equal(again.history.excess, whole.history.excess)
    for one, other in zip(
        *(jax.tree.leaves(r.posterior.guide) for r in (whole, again)), strict=True
    ):
        np.testing.assert_array_equal(one, other)
