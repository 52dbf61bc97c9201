"""Everything is reached by its name after ``import softcvi`` alone."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("package", "name"), [("numpyro", "svi"), ("pymc", "fit"), ("stan", "Httpstan")]
)
def test_what_is_for_one_framework_alone_needs_no_import_of_its_own(package, name):
    if package != "stan":
        pytest.importorskip(package)
    # A new process, for here other tests have imported everything.
    code = f"import softcvi; print(softcvi.adapters.{package}.{name}.__name__)"
    words = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert words == [name]
