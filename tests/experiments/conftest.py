"""Where the public reference files are, for tests that read them."""

import os
from pathlib import Path

import pytest


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
