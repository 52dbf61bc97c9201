"""Files written by earlier versions load, wherever the code has moved since."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi.posterior._encoding import Decoder
from softcvi.posterior._names import found

SAMPLES = Path(__file__).parent / "samples"
EXPECTED = json.loads((SAMPLES / "expected.json").read_text())


@pytest.mark.parametrize("name", sorted(EXPECTED))
@pytest.mark.parametrize("version", [1, 2])
def test_a_file_of_each_format_has_the_densities_it_had(name, version):
    """Format 1 is from before public names were stored."""
    ending = ".softcvi" if version == 1 else f"-{version}.softcvi"
    posterior = softcvi.load(SAMPLES / f"{name}{ending}")
    like = posterior.guide.structure.like
    draws = {
        site: jnp.asarray(values, like[site].dtype)
        for site, values in EXPECTED[name]["draws"].items()
    }
    log_prob = posterior.log_prob(draws)
    np.testing.assert_allclose(log_prob, EXPECTED[name]["log_prob"], rtol=1e-4)
    assert set(posterior.sample(jax.random.key(0), 2)) == set(like)


@pytest.mark.parametrize(
    ("old", "name"),
    [
        ("softcvi.guides._gaussian:LowRankNormal", "LowRankNormal"),
        ("softcvi.experiments.tasks._garch:GarchSpace", "GarchSpace"),
        ("softcvi.experiments.tasks._slcp:slcp_log_prob", "slcp_log_prob"),
        ("softcvi.experiments.tasks._eight_schools:EightSchoolsSpace",) * 2,
        ("softcvi.adapters._numpyro_space:SiteSpace", "SiteSpace"),
        ("jax._src.nn.functions:softplus", "softplus"),
        ("jax._src.numpy.ufuncs:exp", "exp"),
        ("paramax.wrappers:NonTrainable", "NonTrainable"),
        ("numpyro.distributions.transforms:ExpTransform", "ExpTransform"),
    ],
)
def test_old_names_lead_to_the_same_things(old, name):
    assert found(old).__name__ == name.rpartition(":")[2]


def test_a_field_that_a_file_is_older_than_has_its_default():
    fields = {"decentred": {"tuple": ["theta"]}}
    node = {"object": "softcvi.targets.SpaceOfModel", "fields": fields}
    space = Decoder([]).decode(node)
    assert (space.decentred, space.informed) == (("theta",), {})
