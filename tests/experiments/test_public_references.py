"""Loading posteriordb's and sbibm's files: folder, mirror, damage, absence."""

import functools
import gc
import http.server
import shutil
import threading
import warnings

import numpy as np
import pytest
from softcvi_experiments.references import (
    POSTERIORS,
    PosteriordbSbibm,
    ReferenceFileError,
)


class _QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture
def serve(tmp_path, monkeypatch):
    """Serve a folder on a free local port, with an empty cache."""
    servers = []
    monkeypatch.setenv("SOFTCVI_CACHE_DIR", str(tmp_path / "cache"))

    def start(folder):
        handler = functools.partial(_QuietHandler, directory=str(folder))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()
    # pooch leaves the connection of a failed download to the garbage collector.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
def broken_folder(public_folder, tmp_path):
    """Like the public folder, with one file damaged."""
    folder = tmp_path / "broken"
    for name in ("garch.json.zip", "garch-garch11.json.zip"):
        (folder / "posteriordb").mkdir(parents=True, exist_ok=True)
        shutil.copyfile(
            public_folder / "posteriordb" / name, folder / "posteriordb" / name
        )
    damaged = folder / "posteriordb" / "garch-garch11.json.zip"
    damaged.write_bytes(damaged.read_bytes()[:-10])
    return folder


def test_folder_has_every_posterior(public_folder):
    source = PosteriordbSbibm(public_folder)
    for name in POSTERIORS:
        reference = source.load(name)
        assert reference.num_draws == 10_000
        assert reference.provenance["source"].startswith(("posteriordb", "sbibm"))
        for parameter in reference.draws:
            assert np.all(reference.rhat[parameter] < 1.01)
            assert np.all(reference.ess[parameter] > 5_000)


def test_names_and_shapes(public_folder):
    source = PosteriordbSbibm(public_folder)
    eight = source.load("eight_schools")
    assert eight.draws["theta"].shape == (10_000, 8)
    assert eight.draws["tau"].shape == (10_000,)
    np.testing.assert_array_equal(eight.observed["y"][:3], [28, 8, -3])
    garch = source.load("garch_paper")
    assert sorted(garch.draws) == ["alpha0", "alpha1", "beta1", "mu"]
    assert garch.observed["y"].shape == (200,)
    assert "caution" in garch.provenance
    assert source.load("slcp_10").observed["x"].shape == (4, 2)


def test_mirror_gives_the_same_and_is_asked_once(public_folder, serve):
    mirror = PosteriordbSbibm(serve(public_folder))
    first = mirror.load("slcp_03")
    folder = PosteriordbSbibm(public_folder).load("slcp_03")
    np.testing.assert_array_equal(first.draws["theta"], folder.draws["theta"])
    # A second source at a dead address is served from the cache.
    again = PosteriordbSbibm("http://127.0.0.1:9").load("slcp_03")
    np.testing.assert_array_equal(first.draws["theta"], again.draws["theta"])


def test_damaged_file_in_a_folder(broken_folder):
    with pytest.raises(ReferenceFileError) as error:
        PosteriordbSbibm(broken_folder).load("garch_posteriordb")
    message = str(error.value)
    assert "garch-garch11.json.zip is damaged" in message
    assert "expected SHA256 5a56df72" in message
    assert "https://raw.githubusercontent.com/stan-dev/posteriordb/0.5.0/" in message


def test_damaged_file_at_a_mirror(broken_folder, serve, tmp_path):
    with pytest.raises(ReferenceFileError, match="arrived damaged") as error:
        PosteriordbSbibm(serve(broken_folder)).load("garch_posteriordb")
    assert "garch-garch11.json.zip" in str(error.value)
    assert not (
        tmp_path / "cache/references/posteriordb/garch-garch11.json.zip"
    ).exists()


def test_missing_file_in_a_folder(tmp_path):
    with pytest.raises(ReferenceFileError) as error:
        PosteriordbSbibm(tmp_path).load("slcp_02")
    message = str(error.value)
    assert "num_observation_2/observation.csv is missing" in message
    assert "sbi-benchmark/sbibm/v1.1.0/sbibm/tasks/slcp/files/num_obs" in message


def test_missing_file_at_a_mirror(tmp_path, serve):
    with pytest.raises(ReferenceFileError, match="could not be downloaded") as error:
        PosteriordbSbibm(serve(tmp_path)).load("eight_schools")
    assert "eight_schools.json.zip" in str(error.value)
    assert "--data-dir" in str(error.value)


def test_unknown_posterior_lists_known():
    with pytest.raises(ValueError, match="known: eight_schools, garch_paper"):
        PosteriordbSbibm().load("two_moons")
