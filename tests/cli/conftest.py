"""Commands in tests keep their compiled programs away from the user's cache."""

import jax
import pytest

DENSITY = """\
import jax.numpy as jnp

like = {"x": jnp.zeros(2)}


def log_prob(theta):
    return -0.5 * jnp.sum((theta["x"] - 1.0) ** 2)


def with_data(theta, data):
    return -0.5 * jnp.sum((theta["x"] - data["m"]) ** 2)


def broken(theta):
    return missing_name + theta["x"].sum()
"""


@pytest.fixture(autouse=True, scope="session")
def compilation_cache(tmp_path_factory):
    before = jax.config.jax_compilation_cache_dir
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOFTCVI_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield
    jax.config.update("jax_compilation_cache_dir", before)


@pytest.fixture
def density(tmp_path):
    path = tmp_path / "density.py"
    path.write_text(DENSITY)
    return path
