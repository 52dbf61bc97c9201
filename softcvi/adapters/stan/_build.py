"""From C++ to a shared library: compiled once, kept, safe with several processes."""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from softcvi._private_folder import is_own_file, private_folder
from softcvi.adapters._extras import require
from softcvi.adapters.stan._stanc import httpstan_folder, httpstan_version

_SHIM = Path(__file__).with_name("shim.cpp")
_FLAGS = (
    "-std=c++17",
    "-fPIC",
    "-fvisibility=hidden",
    "-w",
    # Eigen would end the process where an assertion fails.
    "-DNDEBUG",
    "-DBOOST_DISABLE_ASSERTS",
    "-DBOOST_PHOENIX_NO_VARIADIC_EXPRESSION",
    # A tape for each thread, and the layout of strings in the libraries of the wheel.
    "-DSTAN_THREADS",
    "-D_REENTRANT",
    "-D_GLIBCXX_USE_CXX11_ABI=0",
)
_LIBRARIES = ("sundials_cvodes", "sundials_idas", "sundials_kinsol")
_HEADER = "stan/model/model_header.hpp"
_LEVELS = {True: "-O2", False: "-O0"}


def cache_folder() -> Path:
    """Where compiled programs are kept: ``SOFTCVI_CACHE_DIR`` or the platform's folder.

    Example:
        >>> cache_folder().name
        'stan'
    """
    given = os.environ.get("SOFTCVI_CACHE_DIR")
    if given:
        return Path(given) / "stan"
    platformdirs = require("platformdirs", "stan")
    return Path(platformdirs.user_cache_dir("softcvi", appauthor=False)) / "stan"


def _own_cache_folder(*, written: bool = False) -> Path:
    """The folder, which must be this user's alone: what is in it is run."""
    folder = cache_folder()
    try:
        private_folder(folder)
        if written:
            with tempfile.TemporaryFile(dir=folder):
                pass
        return folder
    except OSError as error:
        raise RuntimeError(
            f"program: compiled Stan programs cannot be kept in {folder} ({error}). "
            "Name another folder in the environment variable SOFTCVI_CACHE_DIR."
        ) from error


def build(
    cpp: str,
    name: str,
    *,
    optimize: bool = True,
    precompile: bool = False,
    progress: bool = True,
) -> Path:
    """The shared library of a program, from the cache or compiled now.

    Args:
        cpp: What stanc wrote for the program.
        name: Name of the program, for messages.
        optimize: Let the C++ compiler optimise.
        precompile: Compile Stan's headers once for all programs.
        progress: Say on standard error that a compilation takes place.

    Raises:
        RuntimeError: If there is no C++ compiler, if it fails, or if there is no folder
            to keep programs in that is this user's alone.
    """
    filelock = require("filelock", "stan")
    compiler = _compiler()
    level = _LEVELS[optimize]
    folder = _own_cache_folder()
    library = folder / f"{_digest(compiler, level, cpp, _shim_text())}.so"
    if is_own_file(library):
        return library
    _own_cache_folder(written=True)
    with filelock.FileLock(f"{library}.lock"):
        # Another process may have built it while this one waited.
        if is_own_file(library):
            return library
        if progress:
            _say(f"Compiling {name} (about half a minute; kept in {library.parent})")
        began = time.perf_counter()
        headers = [precompiled_header(compiler, level, progress)] if precompile else []
        _compile(compiler, level, cpp, library, headers)
        if progress:
            _say(f"Compiled {name} in {time.perf_counter() - began:.0f} s")
    return library


def precompiled_header(compiler: str, level: str, progress: bool) -> Path:
    """A folder in which g++ finds Stan's headers compiled, made if need be.

    Args:
        compiler: The compiler, which must be g++.
        level: Its flag of optimisation: a header serves one level alone.
        progress: Say on standard error that a compilation takes place.

    Raises:
        RuntimeError: If the compiler is another one.
    """
    filelock = require("filelock", "stan")
    if "Free Software Foundation" not in _said_version(compiler):
        raise RuntimeError(
            f"precompile: {compiler} is not g++, the only compiler it works with. "
            "Leave it out, or name g++ in the environment variable CXX."
        )
    folder = _own_cache_folder(written=True) / f"header-{_digest(compiler, level)}"
    header = folder / f"{_HEADER}.gch"
    header.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(f"{folder}.lock"):
        if is_own_file(header):
            return folder
        if progress:
            _say(f"Compiling Stan's headers (a minute, 800 MB in {folder.parent})")
        with tempfile.TemporaryDirectory(dir=folder, prefix="build-") as temporary:
            source, made = Path(temporary) / "all.hpp", Path(temporary) / "all.gch"
            source.write_text(f"#include <{_HEADER}>\n")
            command = [compiler, *_FLAGS, level, *_includes(), "-x", "c++-header"]
            _finish(_start([*command, str(source), "-o", str(made)]))
            os.replace(made, header)
    return folder


def _compile(
    compiler: str, level: str, cpp: str, library: Path, headers: list[Path]
) -> None:
    includes = [*(f"-I{folder}" for folder in headers), *_includes()]
    with tempfile.TemporaryDirectory(dir=library.parent, prefix="build-") as temporary:
        folder = Path(temporary)
        source, model = folder / "model.cpp", folder / "model.o"
        source.write_text(cpp)
        wanted = [(source, model, level)]
        shim = library.parent / f"shim-{_digest(compiler, _shim_text())}.o"
        if not is_own_file(shim):
            wanted.append((_SHIM, folder / "shim.o", "-O1"))
        running = [
            _start([compiler, *_FLAGS, o, *includes, "-c", str(s), "-o", str(out)])
            for s, out, o in wanted
        ]
        for process in running:
            _finish(process)
        if not is_own_file(shim):
            os.replace(folder / "shim.o", shim)
        linked = folder / "model.so"
        parts = [str(model), str(shim), "-o", str(linked)]
        _finish(_start([compiler, "-shared", *parts, *_linking()]))
        os.replace(linked, library)


def _start(command: list[str]) -> subprocess.Popen:
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def _finish(process: subprocess.Popen) -> None:
    said, _ = process.communicate()
    if process.returncode != 0:
        raise RuntimeError(
            "program: the C++ compiler failed on it. The end of what it said:\n"
            f"{said.strip()[-2000:]}"
        )


def _httpstan() -> Path:
    folder = httpstan_folder()
    assert folder is not None  # stanc of the same folder has run already
    return folder


def _includes() -> list[str]:
    return [f"-I{_httpstan() / 'include'}"]


def _linking() -> list[str]:
    libraries = _httpstan() / "lib"
    static = [str(libraries / f"lib{name}.a") for name in _LIBRARIES]
    static.append(str(libraries / "libsundials_nvecserial.a"))
    threads = ["-ltbb"] if sys.platform != "darwin" else ["-ltbb", "-ltbbmalloc"]
    return [*static, f"-L{libraries}", *threads, f"-Wl,-rpath,{libraries}"]


def _compiler() -> str:
    for name in (os.environ.get("CXX"), "g++", "clang++", "c++"):
        found = shutil.which(name.split()[0]) if name else None
        if found:
            return found
    raise RuntimeError(
        "program: Stan programs are compiled as C++, and no C++ compiler was found. "
        "Install g++ or clang++ (Debian: apt install g++; conda: conda install gxx), "
        "or name one in the environment variable CXX."
    )


def _shim_text() -> str:
    return _SHIM.read_text()


def _said_version(compiler: str) -> str:
    return subprocess.run(
        [compiler, "--version"], capture_output=True, text=True, check=False
    ).stdout


def _digest(compiler: str, *texts: str) -> str:
    """A name that changes with everything the result depends on."""
    parts = (
        *texts,
        _said_version(compiler),
        " ".join(_FLAGS),
        httpstan_version(),
        str(_httpstan()),
        platform.machine(),
    )
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
