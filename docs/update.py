"""Runs the commands shown in README and docs, and puts what they print below them.

    python docs/update.py

A block begins with ```console. Lines that start with $ are commands; they run one after
another in an empty directory beside a copy of examples/. The rest is what they print.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"(?<=^```console\n)(.*?)(?=^```)", re.M | re.S)
PAGES = ["README.md", "docs/tutorial.md"]


def printed(command: str, folder: Path) -> str:
    """What a command prints on a terminal of 80 columns."""
    wide = {"COLUMNS": "80", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=os.environ | wide | {"PATH": path, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    lines = (line.rstrip() for line in done.stdout.splitlines())
    return "".join(f"{line}\n" for line in lines)


def updated(page: str) -> str:
    """The text of a page with new output."""
    with tempfile.TemporaryDirectory() as name:
        shutil.copytree(ROOT / "examples", Path(name, "examples"))

        def rerun(block: re.Match[str]) -> str:
            commands = re.findall(r"^\$ (.*)$", block[1], re.M)
            return "".join(f"$ {c}\n{printed(c, Path(name))}" for c in commands)

        return BLOCK.sub(rerun, (ROOT / page).read_text("utf-8"))


if __name__ == "__main__":
    for page in PAGES:
        (ROOT / page).write_text(updated(page), "utf-8")
