"""The screenshot in docs/report.md: `python docs/report_picture.py`.

Trains the default on Cora and opens the report in chromium, without a
window. Takes half a minute.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

OUT = Path(__file__).parent / "images" / "report.png"
WIDTH, HEIGHT = 1000, 1492  # down to the first table of the labels
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars",
)  # fmt: skip


def main() -> None:
    """Replace ``docs/images/report.png``."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("chromium is not installed")
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder, "run")
        train = ("-m", "elugcn", "train", "--dataset", "cora", "--out", str(run))
        subprocess.run([sys.executable, *train], check=True)
        shot = Path(folder, "report.png")
        subprocess.run(
            [
                chromium,
                *FLAGS,
                f"--user-data-dir={folder}/profile",
                f"--window-size={WIDTH},{HEIGHT}",
                f"--screenshot={shot}",
                (run / "report.html").as_uri(),
            ],
            check=True,
            stderr=subprocess.DEVNULL,
        )
        Image.open(shot).convert("RGB").quantize().save(OUT, optimize=True)


if __name__ == "__main__":
    main()
