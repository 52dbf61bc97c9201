"""Compiled programs are run, so their folder must be the user's alone."""

import sys

import jax
import pytest

import softcvi
from softcvi import _private_folder
from softcvi._private_folder import is_own_file, private_folder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX modes")


def test_others_may_not_write_to_the_folder(tmp_path):
    assert private_folder(tmp_path / "new").stat().st_mode & 0o077 == 0
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    assert private_folder(shared).stat().st_mode & 0o022 == 0


def test_folders_that_others_can_replace_are_refused(tmp_path):
    everybody = tmp_path / "everybody"
    everybody.mkdir()
    everybody.chmod(0o777)
    with pytest.raises(
        PermissionError, match=r"everybody may write.*SOFTCVI_CACHE_DIR"
    ):
        private_folder(everybody / "cache")
    everybody.chmod(0o1777)  # as /tmp: only its owner may replace a folder
    assert private_folder(everybody / "cache").is_dir()


def test_files_that_others_can_have_written_are_not_used(tmp_path, monkeypatch):
    path = tmp_path / "program.so"
    assert not is_own_file(path)
    path.write_bytes(b"")
    path.chmod(0o644)
    assert is_own_file(path)
    path.chmod(0o666)
    assert not is_own_file(path)
    path.chmod(0o644)
    monkeypatch.setattr(_private_folder, "_trusted_users", lambda: (-1,))
    assert not is_own_file(path)
    with pytest.raises(PermissionError, match="belongs to another user"):
        private_folder(tmp_path)


def test_the_cache_of_programs_is_not_kept_where_everybody_writes(
    tmp_path, monkeypatch
):
    tmp_path.chmod(0o777)
    monkeypatch.setenv("SOFTCVI_CACHE_DIR", str(tmp_path))
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", None)
    try:
        assert softcvi.enable_compilation_cache() is None
        assert jax.config.jax_compilation_cache_dir is None
    finally:
        jax.config.update("jax_compilation_cache_dir", before)


def test_stan_programs_that_others_wrote_are_compiled_again(tmp_path, monkeypatch):
    pytest.importorskip("httpstan")
    from softcvi.adapters.stan import _build

    def compiled(compiler, level, cpp, library, headers):
        library.unlink(missing_ok=True)
        library.write_bytes(b"mine")
        library.chmod(0o644)

    monkeypatch.setattr(_build, "_compile", compiled)
    monkeypatch.setenv("SOFTCVI_CACHE_DIR", str(tmp_path / "cache"))
    library = _build.build("int main;", "model", progress=False)
    library.write_bytes(b"planted")
    assert _build.build("int main;", "model", progress=False).read_bytes() == b"planted"
    library.chmod(0o666)
    assert _build.build("int main;", "model", progress=False).read_bytes() == b"mine"
    tmp_path.chmod(0o777)
    with pytest.raises(RuntimeError, match=r"cannot be kept in .*SOFTCVI_CACHE_DIR"):
        _build.build("int main;", "model", progress=False)
