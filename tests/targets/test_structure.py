"""The structure of a particle, and what spaces refuse."""

import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi.targets import Structure, UnconstrainedSpace, interval, positive

LIKE = {"b": np.zeros((2, 2), np.float32), "a": {"c": np.float32(0.0)}}


def test_flat_vectors_and_back():
    structure = Structure(LIKE)
    assert structure.names == ("a.c", "b")
    assert structure.size == 5
    vector = jnp.arange(5.0)
    particle = structure.unravel(vector)
    assert float(particle["a"]["c"]) == 0.0
    np.testing.assert_array_equal(particle["b"], [[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(structure.ravel(particle), vector)
    assert Structure(np.zeros(3)).names == ("value",)


def test_structures_compare_by_content():
    assert Structure(LIKE) == Structure(LIKE)
    assert hash(Structure(LIKE)) == hash(Structure(LIKE))
    assert Structure(LIKE) != Structure({"b": np.zeros((2, 2))})


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"b": np.zeros((2, 2))}, r"missing ['a.c']"),
        ({**LIKE, "z": np.zeros(1)}, "unknown ['z']"),
        ({**LIKE, "b": np.zeros(4)}, "'b' has shape (4,) where (2, 2) is needed"),
        ({**LIKE, "b": np.zeros((2, 2), int)}, "'b' is int"),
    ],
)
def test_differences_are_put_in_words(other, words):
    assert words in Structure(LIKE).difference(Structure(other))
    assert Structure(LIKE).difference(Structure(LIKE)) is None


def test_discrete_leaves_are_known():
    structure = Structure({"k": np.zeros(2, np.int32), "x": np.zeros(1, np.float32)})
    assert structure.discrete_names == ("k",)
    assert not structure.is_continuous
    target = softcvi.DensityTarget(lambda t: 0.0, structure)
    assert not target.has_gradient


@pytest.mark.wrong_types
def test_spaces_refuse_what_they_do_not_know():
    space = UnconstrainedSpace({"tau": positive()})
    with pytest.raises(ValueError, match=r"space: bijections for \['tau'\]"):
        space.to_model({"mu": jnp.zeros(())})
    with pytest.raises(TypeError, match="space: UnconstrainedSpace names its sites"):
        space.to_model(jnp.zeros(2))
    with pytest.raises(TypeError, match=r"bijections\['tau'\]: expected a FlowJAX"):
        UnconstrainedSpace({"tau": jnp.exp})
    with pytest.raises(ValueError, match="high: must be above low"):
        interval(1.0, 1.0)


@pytest.mark.parametrize(
    ("like", "message"),
    [
        ({"x": "abc"}, r"like: 'x' is no array of numbers but str; pass"),
        (np.array(["a"]), r"like: 'value' is no array of numbers"),
        ({"z": np.zeros(2, complex)}, r"like: 'z' is complex; .* real"),
    ],
)
def test_what_cannot_be_a_parameter_is_named(like, message):
    with pytest.raises(TypeError, match=message):
        Structure(like)


def test_a_name_that_cannot_be_written_is_refused():
    with pytest.raises(ValueError, match=r"like: the name .* Give it another name"):
        Structure({"\ud800": np.zeros(2)})
    assert Structure({"\U0001f642": np.zeros(2)}).names == ("\U0001f642",)
