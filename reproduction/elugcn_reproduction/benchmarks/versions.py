"""Time of a training step beside another version of elugcn, installed elsewhere.

    python -m elugcn_reproduction.benchmarks.versions OTHER_PYTHON [DATASET ...]

Short trainings of both versions alternate, each in a process of its own on one thread,
and the median of processor time between two backward passes is compared: that is a
training step with its validation.
"""

from __future__ import annotations

import os
import subprocess
import sys
from statistics import median

DATASETS = ("cora", "photo")
# What may differ between presets and defaults of two versions.
OPTIONS = {"hidden_channels": 64, "dropout": 0.5, "feature_norm": "row"}
OF_METHOD: dict[str, dict[str, str]] = {
    "gcn": {},
    # Version 0.1 knows the method of the paper by this name.
    "elu-gcn-paper": {"graph_mode": "implicit"},
}
ROUNDS, EPOCHS = 5, 40

_CHILD = """
import sys, tempfile, time
import torch
from elugcn.cli import main

_, method, dataset, *options = sys.argv
times, backward = [], torch.Tensor.backward
def timed(*args, **options):
    times.append(time.process_time())
    return backward(*args, **options)
torch.Tensor.backward = timed
with tempfile.TemporaryDirectory() as out:
    sys.argv = ["elugcn", "train", "--method", method, "--dataset", dataset, "--quiet",
                "--threads", "1", "--no-report", "--out", out + "/run"]
    for option in options:
        sys.argv += ["--set", option]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
steps = [b - a for a, b in zip(times, times[1:])][-30:]
print("step", sorted(steps)[len(steps) // 2])
"""


def step_time(python: str, method: str, dataset: str) -> float:
    """Median milliseconds of the steps of one short training."""
    options = OPTIONS | OF_METHOD[method] | {"epochs": EPOCHS, "patience": EPOCHS}
    given = [f"{name}={value}" for name, value in options.items()]
    words = [python, "-P", "-c", _CHILD, method, dataset, *given]
    # Neither this folder nor this path may lead the other to this version.
    hidden = () if python == sys.executable else ("PYTHONPATH",)
    env = {k: v for k, v in os.environ.items() if k not in hidden}
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=env)
    return 1e3 * float(done.stdout.split()[-1])


def main() -> None:
    """Print a line per method and dataset."""
    for dataset in sys.argv[2:] or DATASETS:
        for method in OF_METHOD:
            times: dict[str, list[float]] = {sys.executable: [], sys.argv[1]: []}
            for _ in range(ROUNDS):
                for python, found in times.items():
                    found.append(step_time(python, method, dataset))
            ours, theirs = (median(found) for found in times.values())
            print(
                f"{method} on {dataset}: {ours:.1f} ms, the other {theirs:.1f} ms, "
                f"ratio {ours / theirs:.2f}"
            )


if __name__ == "__main__":
    main()
