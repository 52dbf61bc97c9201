"""Where the public reference files are, for tests that read them."""

import os
from pathlib import Path

import pytest

_EVERY = 5


def pytest_collection_modifyitems(items):
    """Of each test of held-out sets every fifth case is slow, the others are a study.

    Hundreds of answers that do not change take longer than everything else together.
    """
    seen: dict[str, int] = {}
    for item in items:
        if item.get_closest_marker("held_out"):
            name = item.function.__name__
            count = seen[name] = seen.get(name, -1) + 1
            item.add_marker("study" if count % _EVERY else "slow")


@pytest.fixture(scope="session")
def public_folder() -> Path:
    root = Path(__file__).parents[2]
    folder = Path(
        os.environ.get("SOFTCVI_REFERENCE_DIR", root.parent / "shared" / "reference")
    )
    if not (folder / "posteriordb").is_dir():
        pytest.skip(
            f"no public reference files in {folder}; name their folder with "
            "SOFTCVI_REFERENCE_DIR (layout: posteriordb/, sbibm_slcp/)"
        )
    return folder
