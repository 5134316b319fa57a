"""Suite ``versions``: an epoch of this version and of another environment's.

Both are asked by their command line, ``elugcn train --json``, which is a public
contract: nothing of either version is imported. Whole fits alternate, each in a process
of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from elugcn.errors import InputError
from elugcn_reproduction.benchmarks.suite import HIDDEN, Outcome, Settings, Suite
from elugcn_reproduction.page import Page

EPOCHS, QUICK_EPOCHS = 200, 10
REPEATS, QUICK_REPEATS = 5, 1
METHOD = "elu-gcn-paper"  # the name that every version knows


def measure(settings: Settings) -> Outcome:
    """Every dataset in turn; the two environments take turns."""
    outcome = Outcome(VERSIONS.name)
    epochs = settings.epochs or (QUICK_EPOCHS if settings.quick else EPOCHS)
    repeats = settings.repeats or (QUICK_REPEATS if settings.quick else REPEATS)
    assert settings.other is not None
    pythons = {"this": Path(sys.executable), "other": settings.other}
    for name in VERSIONS.chosen(settings):
        found: dict[str, list[float]] = {who: [] for who in pythons}
        nodes = 0
        for i in range(repeats):
            for who, python in pythons.items():
                settings.say(f"versions: {name}, {who}, {i + 1} of {repeats}")
                nodes, ms = epoch_ms(python, name, epochs, settings.data_dir)
                found[who].append(ms)
        this, other = median(found["this"]), median(found["other"])
        outcome.add(name, nodes, "this_ms", this, "ms")
        outcome.add(name, nodes, "other_ms", other, "ms")
        outcome.add(name, nodes, "ratio", this / other)
    return outcome


def epoch_ms(
    python: Path, dataset: str, epochs: int, data_dir: Path | None
) -> tuple[int, float]:
    """Nodes of the graph, and wall-clock milliseconds of an epoch of the two views."""
    options = {"epochs": epochs, "patience": epochs, "hidden_channels": HIDDEN}
    words = [str(python), "-P", "-m", "elugcn", "train", "--dataset", dataset]
    words += ["--method", METHOD, "--threads", "1", "--device", "cpu", "--json"]
    words += [word for k, v in options.items() for word in ("--set", f"{k}={v}")]
    if data_dir is not None:
        words += ["--data-dir", str(data_dir.resolve())]
    env = dict(os.environ)
    if python != Path(sys.executable):
        env.pop("PYTHONPATH", None)  # it would bring this version
    with tempfile.TemporaryDirectory() as folder:
        words += ["--out", f"{folder}/run"]
        try:
            done = subprocess.run(
                words, capture_output=True, text=True, env=env, cwd=folder, check=False
            )
        except OSError as error:
            raise InputError(f"--other {python}: {error.strerror}") from None
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["no message"]
        raise InputError(f"{python} -m elugcn train: {said[-1]}")
    report = json.loads(done.stdout)
    return report["n_nodes"], 1000 * report["seconds"]["train"] / report["epochs"]


def write(outcome: Outcome, page: Page) -> None:
    """The numbers."""
    page.text(
        "An epoch of the two-view training of ELU-GCN with its validation, hidden "
        "width 64, without early stopping: wall-clock milliseconds, medians over whole "
        "fits that alternate between the two environments."
    )
    metrics = ("this_ms", "other_ms", "ratio")
    page.table(
        ("dataset", "nodes", "this version ms", "other ms", "ratio"),
        [(d, f"{n:,}", *outcome.shown((d, n), metrics)) for d, n in outcome.cases()],
    )


VERSIONS = Suite(
    "versions",
    "This version and another",
    "What does an epoch of ELU-GCN cost in this version, beside that of another one?",
    measure,
    write,
    ("cora", "citeseer", "pubmed", "photo", "computers"),
    ("digits",),
)
