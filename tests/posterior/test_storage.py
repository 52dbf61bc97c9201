"""Saving and loading: every guide comes back, damaged and foreign files do not."""

import inspect
import io
import json
import zipfile

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flowjax.distributions import Normal

import softcvi
from softcvi import Posterior, guides
from softcvi.targets import ModelSpace, UnconstrainedSpace, interval, positive

LIKE = {"a": np.zeros(2, np.float32), "b": np.zeros((), np.float32)}
SMALL = {"layers": 2, "width": 4, "knots": 2}


def sites():
    mlp = eqx.nn.MLP(2, 3, 4, 1, key=jax.random.key(0))
    label = guides.NetworkDistribution(mlp, guides.Categorical, (), (2,))
    return guides.SiteGuide(
        {
            "a": guides.StudentT(jnp.full(2, 4.0)),
            "b": guides.Folded(guides.DiagonalNormal(jnp.array(0.5), jnp.array(2.0))),
            "k": guides.Conditional(label, on=("a",)),
            "c": guides.Bernoulli(jnp.zeros(2)),
            "s": guides.SplineUniform(0.0, 2.0, knots=2),
        }
    )


GUIDES = {
    "mean_field": lambda: guides.mean_field(LIKE, scale=0.3),
    "full_rank": lambda: guides.full_rank(LIKE),
    "full_rank_t": lambda: guides.full_rank_t(LIKE),
    "low_rank": lambda: guides.low_rank(LIKE, rank=2),
    "hierarchical": lambda: guides.hierarchical(LIKE, local=("a",)),
    "scalar_mixtures": lambda: guides.scalar_mixtures(LIKE, components=2),
    "low_rank_at": lambda: guides.low_rank_at(
        LIKE, jnp.zeros(3), jnp.ones(3), jnp.ones((3, 1))
    ),
    "student_t": lambda: guides.student_t(LIKE),
    "spline_flow": lambda: guides.spline_flow(LIKE, key=jax.random.key(1), **SMALL),
    "coupling_flow": lambda: guides.coupling_flow(LIKE, key=jax.random.key(1), **SMALL),
    "mixture": lambda: guides.mixture(
        [guides.mean_field(LIKE), guides.student_t(LIKE)]
    ),
    "mixed": lambda: guides.MixedGuide(
        guides.mean_field(LIKE), {"k": jnp.ones((2, 3))}
    ),
    "whitened": lambda: guides.whitened(
        guides.full_rank(LIKE), jnp.arange(3.0), 2.0 * jnp.eye(3)
    ),
    "sites": sites,
    "FlowJAX": lambda: guides.VectorGuide(Normal(jnp.ones(3)), LIKE),
}


def test_every_function_that_builds_a_guide_is_tried():
    public = [getattr(guides, name) for name in guides.__all__]
    assert {f.__name__ for f in public if inspect.isfunction(f)} <= set(GUIDES)


def same_arrays(one, other):
    """Bit for bit, in the same places; functions made anew need not be identical."""
    return bool(eqx.tree_equal(*(eqx.filter(x, eqx.is_array) for x in (one, other))))


@pytest.mark.parametrize("name", GUIDES)
def test_a_guide_comes_back(name, tmp_path):
    guide = GUIDES[name]()
    space = UnconstrainedSpace({"a": positive(), "b": interval(-1.0, 2.0)})
    path = tmp_path / "folder" / "fit.softcvi"
    Posterior(guide, space=space).save(path, seed=3)
    again = softcvi.load(path)
    assert same_arrays(again.guide, guide)
    assert again.guide.structure == guide.structure
    assert bool(eqx.tree_equal(again.space, space))
    assert [p.name for p in path.parent.iterdir()] == ["fit.softcvi"]


def test_draws_and_weights_of_a_loaded_posterior_are_the_same(tmp_path):
    target = softcvi.DensityTarget(lambda x: -0.5 * jnp.sum(x["a"] ** 2), LIKE)
    posterior = Posterior(guides.mean_field(target), target)
    path = tmp_path / "fit.softcvi"
    posterior.save(path)
    again = softcvi.load(path, target=target)
    draws = [p.importance(jax.random.key(0), 50) for p in (posterior, again)]
    np.testing.assert_array_equal(draws[0].log_q, draws[1].log_q)
    np.testing.assert_array_equal(draws[0].draws["a"], draws[1].draws["a"])
    other = softcvi.DensityTarget(lambda x: 0.0, {"a": np.zeros(3, np.float32)})
    with pytest.raises(ValueError, match="target: does not fit the posterior"):
        softcvi.load(path, target=other)


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "fit.softcvi"
    Posterior(guides.mean_field(LIKE), space=ModelSpace()).save(path)
    return path.read_bytes()


def test_damaged_files_are_refused_or_harmless(content, tmp_path):
    """Every altered byte either is noticed or changes nothing that matters."""
    path = tmp_path / "fit.softcvi"
    original = guides.mean_field(LIKE)
    noticed = 0
    for position in range(0, len(content), 7):
        altered = bytearray(content)
        altered[position] ^= 0xFF
        path.write_bytes(bytes(altered))
        try:
            guide = softcvi.load(path).guide
        except ValueError:
            noticed += 1
        else:
            assert same_arrays(guide, original)
    assert noticed > 0.8 * len(range(0, len(content), 7))


@pytest.mark.parametrize("size", [0, 10, 300])
def test_truncated_files_are_refused(content, tmp_path, size):
    path = tmp_path / "fit.softcvi"
    path.write_bytes(content[:size])
    with pytest.raises(ValueError, match="not a posterior saved by this version"):
        softcvi.load(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere.softcvi: no such file"):
        softcvi.load(tmp_path / "nowhere.softcvi")


def altered_header(content, change):
    """The same file with its header changed by a function."""
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as old,
        zipfile.ZipFile(buffer, "w") as new,
    ):
        header = json.loads(old.read("header.json"))
        change(header)
        new.writestr("header.json", json.dumps(header))
        new.writestr("arrays.npz", old.read("arrays.npz"))
    return buffer.getvalue()


@pytest.mark.parametrize(
    "name",
    [
        "os:system",
        "jax._src.xla_bridge:os.system",
        "softcvi.posterior._storage:write",
        "jax.numpy:load",
        "builtins:eval",
    ],
)
def test_files_cannot_name_functions_that_act(content, tmp_path, name):
    def change(header):
        scale = header["parts"]["guide"]["fields"]["distribution"]["fields"]["scale"]
        scale["fields"]["fn"] = {"function": name}

    path = tmp_path / "fit.softcvi"
    path.write_bytes(altered_header(content, change))
    with pytest.raises(ValueError, match="not a posterior saved by this version"):
        softcvi.load(path)


def test_other_formats_and_classes_are_refused(content, tmp_path):
    path = tmp_path / "fit.softcvi"

    def newer(header):
        header["format"] = 99

    def foreign(header):
        header["parts"]["guide"]["object"] = "subprocess:Popen"

    def rebuilt(header):
        label = header["parts"]["guide"].pop("object")
        header["parts"]["guide"] = {
            "rebuild": label,
            "arguments": {"dict": {}},
            "leaves": {"list": []},
        }

    for change in (newer, foreign, rebuilt):
        path.write_bytes(altered_header(content, change))
        with pytest.raises(ValueError, match="not a posterior saved by this version"):
            softcvi.load(path)


def test_what_cannot_be_saved_is_refused_and_leaves_no_file(tmp_path):
    site = guides.NetworkDistribution(
        lambda x: x, lambda x: guides.Bernoulli(x), (1,), (1,)
    )
    guide = guides.VectorGuide(
        guides.DiagonalNormal(jnp.zeros(1), jnp.ones(1)), LIKE["b"]
    )
    guide = eqx.tree_at(lambda g: g.distribution, guide, site)
    with pytest.raises(ValueError, match=r"guide.distribution.*cannot be saved"):
        Posterior(guide, space=ModelSpace()).save(tmp_path / "fit.softcvi")
    assert list(tmp_path.iterdir()) == []
