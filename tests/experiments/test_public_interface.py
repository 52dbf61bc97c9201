"""The experiments use the public interface of the library alone."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "experiments" / "softcvi_experiments").rglob("*.py"))

# The loop that overhead is measured against must draw its numbers in the same way, and
# compiler workarounds are not public.
ALLOWED = {"softcvi._compile.fused": "bench/_bare.py"}


def _private_imports(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            first, *rest = name.split(".")
            if first == "softcvi" and any(
                part.startswith("_") and part != "__version__" for part in rest
            ):
                yield name


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_private_is_imported(path):
    found = list(_private_imports(ast.parse(path.read_text())))
    assert [n for n in found if not str(path).endswith(ALLOWED.get(n, "!"))] == []
