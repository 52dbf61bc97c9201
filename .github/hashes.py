"""Write .github/checksums: every pinned version with the checksums of its files.

``python3.12 .github/hashes.py`` after a change of constraints*.txt or pyproject.toml.
pip says what builds the distributions, and the index what the checksums are.
``PIP_INDEX_URL`` names another index.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping
from html.parser import HTMLParser
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_OUT = _ROOT / ".github" / "checksums"
_INDEX = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple")
# With these, nothing is fetched from an index while the two distributions are built.
BUILD = ("pip>=26", "hatchling>=1.27", "editables")
TOOLS = (*BUILD, "build", "twine", "pip-audit", "zizmor")
# Files for these interpreters, on Linux (x86_64) or any platform.
_TAGS = re.compile(
    r"-(py3|py2\.py3|cp3(11|12|13)|cp\d+-abi3)(\.[a-z0-9]+)*-[^-]*-?"
    r"(any|.*linux.*_x86_64)\.whl$"
)


def names(constraints: Path) -> dict[str, str]:
    """Versions by normalised names in a file of pins."""
    lines = constraints.read_text(encoding="utf-8").splitlines()
    pins = [line.split(" ")[0].split("==") for line in lines if "==" in line]
    return {normal(name): version for name, version in pins}


def normal(name: str) -> str:
    """A name as an index spells it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def resolve(wanted: Iterable[str], constraints: Path | None = None) -> dict[str, str]:
    """What pip would install for these requirements."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet"]
        command += ["--ignore-installed", "--report", str(report)]
        command += ["--index-url", _INDEX]
        if constraints is not None:
            command += ["--constraint", str(constraints)]
        subprocess.run([*command, *wanted], check=True)
        found = json.loads(report.read_text(encoding="utf-8"))["install"]
    facts = [item["metadata"] for item in found]
    return {normal(fact["name"]): fact["version"] for fact in facts}


class _Links(HTMLParser):
    """File names and checksums on the page of a project."""

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        url = urllib.parse.urlsplit(dict(attrs).get("href") or "")
        kind, _, checksum = url.fragment.partition("=")
        if tag == "a" and kind == "sha256":
            name = urllib.parse.unquote(url.path.rsplit("/", 1)[-1])
            self.files[name] = checksum


def checksums(name: str, version: str) -> list[str]:
    """Of the wheels for our interpreters; of the source if there is no such wheel."""
    links = _Links()
    with urllib.request.urlopen(f"{_INDEX}/{name}/", timeout=180) as page:
        links.feed(page.read().decode())
    start = re.compile(rf"[^-]+-{re.escape(version)}(\.post\d+)?(-\d+)?-")
    wheels = {
        n: c for n, c in links.files.items() if start.match(n) and _TAGS.search(n)
    }
    source = f"-{version}.tar.gz"
    found = wheels or {n: c for n, c in links.files.items() if n.endswith(source)}
    if not found:
        raise SystemExit(f"{name}=={version}: no file for these interpreters")
    return sorted(set(found.values()))


def write(name: str, what: str, pins: Mapping[str, str]) -> None:
    """One requirements file."""
    lines = [f"# {what}\n", "# Remade by: python3.12 .github/hashes.py\n"]
    for project, version in sorted(pins.items()):
        found = checksums(project, version)
        rows = [f"{project}=={version}", *(f"    --hash=sha256:{c}" for c in found)]
        lines.append(" \\\n".join(rows) + "\n")
    (_OUT / name).write_text("".join(lines), encoding="utf-8")
    print(f"{name}: {len(pins)} projects")


def main() -> None:
    """Write all files."""
    _OUT.mkdir(exist_ok=True)
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    core = project["project"]["dependencies"]
    for file in ("constraints.txt", "constraints-3.12.txt", "constraints-oldest.txt"):
        path = _ROOT / file
        pins = {**resolve(BUILD, path), **names(path)}
        write(file, f"{file} and what builds the distributions", pins)
    pins = resolve(core, _ROOT / "constraints-3.12.txt")
    write("core.txt", "What a wheel of softcvi alone needs", pins)
    write("tools.txt", "What builds, checks and uploads", resolve(TOOLS))


if __name__ == "__main__":
    main()
