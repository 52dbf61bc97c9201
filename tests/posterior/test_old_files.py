"""Files written by earlier versions load, wherever the code has moved since."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi
from softcvi.posterior._names import found

SAMPLES = Path(__file__).parent / "samples"
EXPECTED = json.loads((SAMPLES / "expected.json").read_text())


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_file_of_format_1_has_the_densities_it_had(name):
    """Written by the commit before public names were stored."""
    posterior = softcvi.load(SAMPLES / f"{name}.softcvi")
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
