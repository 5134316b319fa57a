import sys
from collections.abc import Callable
from pathlib import Path

import pytest

# A worker that loads no torch. Its validation accuracy is a function of the options
# and the seed that the tests compute too; its test accuracy is nobody's business.
WORKER = """
import hashlib, json, os, sys, threading, time
job = json.loads(sys.stdin.readline())["job"]
def die():
    sys.stdin.read()
    os._exit(1)
threading.Thread(target=die, daemon=True).start()
log, seconds, test = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
config = job["config"]
time.sleep(seconds)
with open(log, "a") as file:
    file.write("%s %s %d %d\\n" % (job["method"], job["dataset"], job["split"], job["seed"]))
if config["weight_decay"] == 13 and job["seed"] == 101:
    print("ValueError: no luck", file=sys.stderr, flush=True)
    os._exit(1)
if config["weight_decay"] == 9:
    os.kill(os.getpid(), 9)
what = {k: job[k] for k in ("method", "config", "dataset", "labels_per_class", "data_options")}
text = json.dumps(what, sort_keys=True, separators=(",", ":"))
value = 0.9 - abs(config["dropout"] - 0.4) + 0.01 * (job["seed"] - 100)
record = job | {
    "schema": 1, "status": "done",
    "config_hash": hashlib.sha256(text.encode()).hexdigest()[:12],
    "packages": {"elugcn": "1", "torch": "2"}, "threads": 1, "device": "cpu",
    "train_accuracy": 1.0, "val_accuracy": value, "test_accuracy": test,
    "epochs": 1, "seconds": {"total": 2.0}, "peak_rss_mb": 100.0, "details": {},
    "date": "2026-01-02",
}
print(json.dumps(record), flush=True)
os._exit(0)
"""

SPACE = """
schema: 1
budget: {trials: 9, runs: 2, first: 100}
spaces:
  gcn:
    start: [{}, {dropout: 0.5, hidden_channels: 16}]
    values:
      epochs: 3
      hidden_channels: [16, 32, 64]
      dropout: {low: 0.1, high: 0.9, step: 0.1}
      lr: {low: 0.001, high: 0.1, log: true}
"""


def value_of(dropout: float, seed: int) -> float:
    """The accuracy that the worker above gives."""
    return 0.9 - abs(dropout - 0.4) + 0.01 * (seed - 100)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """One line for every run a fake worker came to the end of."""
    path = tmp_path / "log"
    path.touch()
    return path


@pytest.fixture
def worker(log: Path) -> Callable[..., list[str]]:
    def command(seconds: float = 0.0, test: float = 0.123456) -> list[str]:
        python = [sys.executable, "-I", "-S", "-c", WORKER]
        return [*python, str(log), str(seconds), str(test)]

    return command


@pytest.fixture
def space_file(tmp_path: Path) -> Callable[..., Path]:
    def write(text: str = SPACE) -> Path:
        path = tmp_path / "space.yaml"
        path.write_text(text)
        return path

    return write
