"""What all tests share."""

import os
import shutil

import jax
import pytest
from jaxtyping import config, install_import_hook

# Before softcvi is imported: beartype checks shapes and types at every call of the
# packages that compute with arrays. An int is a float here, as PEP 484 has it.
_CHECKED = (
    "targets", "guides", "objectives", "posterior", "diagnostics", "sweeps", "starts",
)  # fmt: skip
install_import_hook(
    [f"softcvi.{package}" for package in (*_CHECKED, "fitting")],
    "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))",
)

from softcvi import enable_compilation_cache  # noqa: E402
from softcvi._compile import enable_x64, make_room  # noqa: E402

_CHROMIUM = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# Tests say jax.enable_x64, which the oldest JAX that is allowed does not have.
jax.enable_x64 = enable_x64
# Tests must not depend on what an earlier run has left in the user's folder.
os.environ.setdefault("SOFTCVI_CACHE", "0")
config.update("jaxtyping_disable", True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Check in tests of these packages, but not where wrong types are given."""
    wrong = item.get_closest_marker("wrong_types") is not None
    tested = item.nodeid.startswith(tuple(f"tests/{name}/" for name in _CHECKED))
    config.update("jaxtyping_disable", wrong or not tested)
    try:
        return (yield)
    finally:
        config.update("jaxtyping_disable", True)


@pytest.fixture(autouse=True, scope="session")
def programs_on_disk(tmp_path_factory):
    """What a process has compiled it reads the next time, also in other test files.

    Each worker has a folder of its own: JAX does not write its files as a whole.
    """
    enable_compilation_cache(tmp_path_factory.mktemp("programs"))


@pytest.fixture(autouse=True, scope="module")
def room_for_programs():
    """Give up all programs before a process holds more than the system allows."""
    yield
    if make_room():
        jax.clear_caches()


@pytest.fixture(scope="session")
def browser():
    """A real Chromium, which looks at pages that the program has written."""
    playwright = pytest.importorskip("playwright.sync_api")
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    path = next((p for p in map(shutil.which, names) if p), None)
    if path is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=_CHROMIUM)
        yield browser
        browser.close()
