"""Write requirements-3.11.txt: the pins of constraints.txt with their checksums.

Needs Python 3.11 on Linux (x86_64) and an index: ``python .github/hashes.py``.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_OUT = _HERE / "requirements-3.11.txt"
_CONSTRAINTS = _HERE.parent / "constraints.txt"


def main() -> None:
    """Ask pip what it would download, and keep the checksums."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-deps"]
        command += ["--ignore-installed", "--quiet", "--report", str(report)]
        subprocess.run([*command, "--requirement", str(_CONSTRAINTS)], check=True)
        found = json.loads(report.read_text(encoding="utf-8"))["install"]
    lines = []
    for item in found:
        facts = item["metadata"]
        name = re.sub(r"[-_.]+", "-", facts["name"]).lower()
        checksum = item["download_info"]["archive_info"]["hashes"]["sha256"]
        lines.append(f"{name}=={facts['version']} --hash=sha256:{checksum}\n")
    old = _OUT.read_text(encoding="utf-8").splitlines(keepends=True)
    head = [line for line in old if line.startswith("#")]
    _OUT.write_text("".join([*head, *sorted(lines)]), encoding="utf-8")


if __name__ == "__main__":
    main()
