"""One small problem that the tests of fitting share, and with it its program."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import softcvi


def log_prob(theta, observed):
    return -0.5 * jnp.sum(((theta["x"] - observed) / 0.5) ** 2)


@pytest.fixture(scope="session")
def make_target():
    """A normal at ``centre``; targets that differ in it share one program."""

    def make(centre=1.0):
        observed = jnp.full(2, centre, jnp.float32)
        return softcvi.DensityTarget(
            log_prob, {"x": np.zeros(2, np.float32)}, observed=observed
        )

    return make


@pytest.fixture(scope="session")
def target(make_target):
    return make_target()


@pytest.fixture(scope="session")
def guide(target):
    return softcvi.guides.mean_field(target)


@pytest.fixture
def quick(target, guide):
    """A fit from the guide as it is, with anything overridden."""

    def run(key=0, **kwargs):
        kwargs = {"steps": 300, "start": None, "progress": False, **kwargs}
        guide_ = kwargs.pop("guide", guide)
        target_ = kwargs.pop("target", target)
        return softcvi.fit(jax.random.key(key), target_, guide_, **kwargs)

    return run


@pytest.fixture(scope="session")
def same_bits():
    """Whether two results hold the same arrays, bit for bit."""

    def compare(one, other):
        ours, theirs = (
            [np.asarray(leaf) for leaf in jax.tree_util.tree_leaves(r.posterior.guide)]
            for r in (one, other)
        )
        return len(ours) == len(theirs) and all(
            np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True)
        )

    return compare
