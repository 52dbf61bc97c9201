"""What the architecture promises and a tool can check."""

import ast
import importlib
import importlib.metadata
import inspect
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import equinox as eqx
import pytest

import softcvi

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "softcvi"
EXPERIMENTS = ROOT / "experiments" / "softcvi_experiments"

# What every layer may import.
_BELOW_ALL = (["_compile"], ["_atomic"], ["_once"], ["_private_folder"])
# A layer may import itself and what stands before it.
LAYERS = (
    "targets",
    "guides",
    "objectives",
    "posterior",
    "diagnostics",
    "starts",
    "fitting",
    "ladder",
    "sweeps",
    "adapters",
    "report",
    "demo",
    "cli",
)
# `import softcvi` itself loads these, so they cannot import it back.
INSIDE = LAYERS[: LAYERS.index("report")]

MAX_LINES = 400
LONG_FILES: tuple[str, ...] = ()

OPTIONAL = (
    "arviz",
    "arviz_base",
    "arviz_plots",
    "arviz_stats",
    "blackjax",
    "bridgestan",
    "funsor",
    "httpstan",
    "jinja2",
    "matplotlib",
    "numpyro",
    "pooch",
    "pymc",
    "pytensor",
    "sklearn",
    "stan",
    "xarray",
)


def python_files(*folders: str) -> list[Path]:
    return sorted(p for folder in folders for p in (ROOT / folder).rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_below_all(module: str) -> bool:
    return module.split(".")[1:2] in _BELOW_ALL


def layer_of(module: str) -> str | None:
    parts = module.split(".")
    if is_below_all(module):
        return LAYERS[0]  # it imports nothing of ours, and every layer may use it
    return parts[1] if len(parts) > 1 and parts[1] in LAYERS else None


def is_type_checking(test: ast.expr) -> bool:
    return ast.unparse(test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


def statements_at_import(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yields what runs on import: not function bodies, not type-checking blocks."""
    for node in body:
        yield node
        if isinstance(node, ast.If) and is_type_checking(node.test):
            yield from statements_at_import(node.orelse)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for field in ("body", "orelse", "finalbody"):
                yield from statements_at_import(getattr(node, field, []))
            for handler in getattr(node, "handlers", []):
                yield from statements_at_import(handler.body)


def softcvi_imports(path: Path) -> Iterator[str]:
    """Yields the full names of what a file imports from softcvi on import."""
    package = module_of(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    for node in statements_at_import(ast.parse(path.read_text()).body):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = [*base, *([node.module] if node.module else [])]
            names = [".".join([*base, alias.name]) for alias in node.names]
        yield from (n for n in names if n.split(".")[0] == "softcvi")


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_imports_only_itself_and_earlier_ones(layer):
    allowed = LAYERS[: LAYERS.index(layer) + 1]
    wrong = [
        f"{name_of(path)} imports {name}"
        for path in python_files(f"softcvi/{layer}")
        for name in softcvi_imports(path)
        if layer_of(name) not in (*allowed, *(() if layer in INSIDE else (None,)))
    ]
    assert not wrong, "\n".join(wrong)


def test_every_folder_of_the_package_is_a_layer():
    folders = {p.name for p in PACKAGE.iterdir() if any(p.rglob("*.py"))}
    # Workarounds for the compiler stand below all layers, and are private.
    assert folders <= {*LAYERS, "_compile"}


def test_commands_use_only_public_names():
    # tests/experiments/test_public_interface.py says the same of the experiments.
    wrong = [
        f"{name_of(path)} imports {name}"
        for path in python_files("softcvi/cli")
        for name in softcvi_imports(path)
        if layer_of(name) != "cli" and not is_below_all(name)
        if any(part.startswith("_") for part in name.split("."))
    ]
    assert not wrong, "\n".join(wrong)


def test_no_file_is_long_and_none_is_called_utils():
    files = python_files("softcvi", "experiments", "tests", "benchmarks")
    lengths = {name_of(p): len(p.read_text().splitlines()) for p in files}
    long = {n: k for n, k in lengths.items() if k > MAX_LINES and n not in LONG_FILES}
    assert not long
    assert not [n for n in lengths if Path(n).stem.strip("_") in {"util", "utils"}]


def test_inits_only_re_export():
    wrong = []
    for path in [*PACKAGE.rglob("__init__.py"), *EXPERIMENTS.rglob("__init__.py")]:
        tree = ast.parse(path.read_text())
        body = tree.body[1:] if ast.get_docstring(tree) else tree.body
        assigned = {
            ast.unparse(n.targets[0]): n for n in body if isinstance(n, ast.Assign)
        }
        imports = [n for n in body if isinstance(n, ast.Import | ast.ImportFrom)]
        allowed = [*imports, assigned.get("__all__"), assigned.get("__version__")]
        # Names on demand (PEP 562), listed in the stub beside it.
        allowed.append(assigned.get("(__getattr__, __dir__, __all__)"))
        wrong += [
            f"{name_of(path)}:{node.lineno} does more than re-export"
            for node in body
            if node not in allowed
        ]
        if imports and not any("__all__" in name for name in assigned):
            wrong.append(f"{name_of(path)} has no __all__")
    assert not wrong, "\n".join(wrong)


def test_every_folder_with_code_has_an_init():
    folders = {p.parent for p in PACKAGE.rglob("*.py")}
    assert not [name_of(f) for f in folders if not (f / "__init__.py").exists()]


def classes_of_the_package() -> set[type]:
    found = set()
    for path in python_files("softcvi"):
        if path.name == "__main__.py":
            continue
        try:
            module = importlib.import_module(module_of(path))
        except ModuleNotFoundError as error:
            if (error.name or "").split(".")[0] in OPTIONAL:
                continue
            raise
        found |= {
            value
            for value in vars(module).values()
            if inspect.isclass(value)
            if issubclass(value, eqx.Module)
            if value.__module__.startswith("softcvi")
        }
    return found


def test_classes_are_abstract_or_final():
    def is_abstract(cls):
        pending = ("__abstractmethods__", "__abstractvars__", "__abstractclassvars__")
        return any(getattr(cls, name, ()) for name in pending)

    classes = classes_of_the_package()
    wrong = [
        f"{cls.__qualname__} inherits from the concrete {base.__qualname__}"
        for cls in classes
        for base in cls.__mro__[1:]
        if base in classes and not is_abstract(base)
    ]
    assert not wrong, "\n".join(sorted(wrong))


def printed_words(code):
    command = [sys.executable, "-c", code]
    return subprocess.check_output(command, cwd=ROOT, text=True).split()


def test_importing_the_package_loads_no_optional_dependency():
    code = (
        "import sys, softcvi\n"
        f"print(*sorted(set(sys.modules).intersection({OPTIONAL!r})))"
    )
    assert printed_words(code) == []


def test_a_fit_of_a_numpyro_model_loads_nothing_that_it_does_not_use():
    code = (
        "import sys, numpyro, softcvi\n"
        "before = set(sys.modules)\n"
        "softcvi.fit, softcvi.adapters.from_numpyro\n"
        "slow = {'optax', 'scipy.stats', 'arviz', 'softcvi.adapters._ask_tell'}\n"
        "print(*sorted((set(sys.modules) - before) & slow))"
    )
    assert printed_words(code) == []


def test_subpackages_load_when_they_are_asked_for():
    code = (
        "import sys, softcvi\n"
        "before = 'softcvi.adapters' in sys.modules\n"
        "found = softcvi.adapters.from_numpyro, softcvi.report, softcvi.sweeps\n"
        "names = {'adapters', 'report', 'sweeps', 'fit'} <= set(dir(softcvi))\n"
        "print(before, names, hasattr(softcvi, 'nothing'))"
    )
    assert printed_words(code) == ["False", "True", "False"]


def test_tracked_files_name_no_place_on_one_machine():
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("needs a git checkout")
    place = re.compile(
        r"(?<![\w.~/-])(?:[A-Z]:)?[/\\](?:home|root|Users|work|tmp)[/\\]"
    )
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    wrong = []
    for name in filter(None, tracked):
        data = (ROOT / name).read_bytes() if (ROOT / name).is_file() else b""
        if b"\0" in data:
            continue
        lines = data.decode(errors="replace").splitlines()
        wrong += [f"{name}:{i}" for i, s in enumerate(lines, 1) if place.search(s)]
    assert not wrong, "\n".join(wrong)


def test_every_dependency_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = {
        re.split(r"[^\w.-]", requirement)[0].lower()
        for requirement in sum(extras.values(), project["dependencies"])
    } - {"softcvi"}
    for file in ("constraints.txt", "constraints-3.12.txt"):
        lines = (ROOT / file).read_text().splitlines()
        pins = dict(s.split("==") for s in lines if not s.startswith("#"))
        assert wanted <= set(pins), file


def test_the_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {project['version']}\n" in citation
    others = tomllib.loads((ROOT / "experiments/pyproject.toml").read_text())
    assert others["project"]["version"] == project["version"] == softcvi.__version__


@pytest.mark.parametrize("wrong", ["pyproject.toml", "experiments/pyproject.toml"])
def test_a_tag_that_is_not_the_version_of_both_distributions_ends_a_release(
    tmp_path, wrong
):
    steps = (ROOT / ".github/workflows/release.yml").read_text()
    _, _, script = steps.partition("run: |\n")
    script, _, _ = script.partition("\n      - run:")
    (tmp_path / "experiments").mkdir()
    for file in ("pyproject.toml", "experiments/pyproject.toml"):
        version = "0.1.9" if file == wrong else "0.2.0"
        (tmp_path / file).write_text(f'name = "softcvi"\nversion = "{version}"\n')
    run = ["bash", "-e", "-c", script]  # as a runner does
    env = {"GITHUB_REF_NAME": "v0.2.0", "PATH": os.environ["PATH"]}
    assert subprocess.run(run, cwd=tmp_path, env=env).returncode == 1
    shutil.copy(tmp_path / "pyproject.toml", tmp_path / "experiments")
    env["GITHUB_REF_NAME"] = f"v{'0.1.9' if wrong == 'pyproject.toml' else '0.2.0'}"
    assert subprocess.run(run, cwd=tmp_path, env=env).returncode == 0


def pins_of(path: Path) -> dict[str, str]:
    found = re.findall(r"^([\w.-]+)==([^\s;]+)", path.read_text(), re.MULTILINE)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in found}


CHECKSUMS = ROOT / ".github" / "checksums"
BUILD = {"pip", "hatchling", "editables", "packaging", "pathspec", "pluggy"}
BUILD |= {"trove-classifiers", "tomlkit"}


@pytest.mark.parametrize("path", sorted(ROOT.glob("constraints*.txt")), ids=str)
def test_checksums_are_those_of_the_pinned_versions(path):
    pinned, checked = pins_of(path), pins_of(CHECKSUMS / path.name)
    assert {name: checked.get(name) for name in pinned} == pinned
    # Beside them what builds the distributions, which nothing may fetch.
    assert set(checked) - set(pinned) <= BUILD
    assert {"hatchling", "editables"} <= set(checked)


@pytest.mark.parametrize("path", sorted(CHECKSUMS.glob("*.txt")), ids=lambda p: p.name)
def test_every_pinned_version_has_a_checksum(path):
    one = r"[\w.-]+==\S+( \\\n    --hash=sha256:[0-9a-f]{64})+\n"
    assert re.fullmatch(f"(#.*\\n)+({one})+", path.read_text())


def test_a_wheel_alone_is_checked_with_what_is_pinned():
    core, pinned = (
        pins_of(path)
        for path in (CHECKSUMS / "core.txt", ROOT / "constraints-3.12.txt")
    )
    assert {name: pinned.get(name) for name in core} == core


def test_everything_that_the_extras_need_is_pinned():
    packaging = pytest.importorskip("packaging.requirements")
    is_new = sys.version_info >= (3, 12)
    name = "constraints-3.12.txt" if is_new else "constraints.txt"
    pinned, missing = pins_of(ROOT / name), set()
    todo, done = [("softcvi", "all"), ("softcvi-experiments", "")], set()
    while todo:
        project, extra = todo.pop()
        if (project, extra) in done:
            continue
        done.add((project, extra))
        for line in importlib.metadata.requires(project) or ():
            wanted = packaging.Requirement(line)
            marker = wanted.marker
            if marker is not None and not marker.evaluate({"extra": extra}):
                continue
            found = re.sub(r"[-_.]+", "-", wanted.name).lower()
            if found not in pinned and not found.startswith("softcvi"):
                missing.add(found)
                continue
            todo += [(found, part) for part in ("", *wanted.extras)]
    assert not missing


def test_workflows_install_only_files_with_known_checksums():
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        # A command may go on in the next line.
        text = re.sub(r"\\\n|(?<=--no-deps)\n", " ", path.read_text())
        for line in text.splitlines():
            if "pip install" in line:
                assert "--require-hashes" in line or "--no-index" in line, line
            if re.search(r"\bmake (test|lint|docs)", line):
                assert "--no-index --no-build-isolation" in line, line


def test_workflows_run_actions_by_the_hash_of_their_commit():
    """Who can move a tag decides what runs with the rights of the workflow."""
    lines = [
        line.strip().removeprefix("- ")
        for path in (ROOT / ".github" / "workflows").glob("*.yml")
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    used = [line for line in lines if line.startswith("uses:")]
    assert used
    odd = [u for u in used if not re.fullmatch(r"uses: \S+@[0-9a-f]{40} # v[\d.]+", u)]
    assert not odd
