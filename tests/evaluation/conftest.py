import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from elugcn.evaluation.jobs import Job, make_jobs

# A worker that loads no torch: what the harness does with its children can be tried
# hundreds of times. Like the real one it ends when its parent does.
WORKER = """
import hashlib, json, os, sys, threading, time
job = json.loads(sys.stdin.readline())["job"]
def die():
    sys.stdin.read()
    os._exit(1)
threading.Thread(target=die, daemon=True).start()
log, seconds, mode = sys.argv[1], float(sys.argv[2]), sys.argv[3]
name = "%s %s %d %d" % (job["method"], job["dataset"], job["split"], job["seed"])
time.sleep(seconds)
if mode == "crash":
    os.kill(os.getpid(), 9)
if mode == "raise":
    print("ValueError: no luck", file=sys.stderr, flush=True)
    os._exit(1)
what = {k: job[k] for k in ("method", "config", "dataset", "labels_per_class", "data_options")}
text = json.dumps(what, sort_keys=True, separators=(",", ":"))
record = job | {
    "schema": 1, "status": "done",
    "config_hash": hashlib.sha256(text.encode()).hexdigest()[:12],
    "packages": {"elugcn": "1"}, "threads": 1, "device": "cpu",
    "train_accuracy": 1.0, "val_accuracy": 0.5, "test_accuracy": job["seed"] / 100,
    "epochs": 1, "seconds": {"total": 2.0}, "peak_rss_mb": 100.0, "details": {},
    "date": "",
}
with open(log, "a") as file:
    file.write(name + "\\n")
print(json.dumps(record), flush=True)
os._exit(0)
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """One line for every run a fake worker finished."""
    path = tmp_path / "log"
    path.touch()
    return path


@pytest.fixture
def worker(log: Path) -> Callable[..., list[str]]:
    def command(seconds: float = 0.0, mode: str = "work") -> list[str]:
        python = [sys.executable, "-I", "-S", "-c", WORKER]
        return [*python, str(log), str(seconds), mode]

    return command


@pytest.fixture
def jobs() -> Callable[..., list[Job]]:
    def make(seeds: int = 3, **options: Any) -> list[Job]:
        return make_jobs(["lpa"], ["karate"], seeds, options={"lpa": options})

    return make


def record_of(job: Job, test: float = 0.5, **more: Any) -> dict[str, Any]:
    """A record as a worker makes it."""
    return json.loads(
        json.dumps(
            job.plain()
            | {
                "schema": 1, "status": "done", "config_hash": job.config_hash,
                "packages": {"elugcn": "1", "torch": "2"}, "train_accuracy": 1.0,
                "val_accuracy": 0.5, "test_accuracy": test,
                "seconds": {"total": 2.0}, "peak_rss_mb": 100.0,
            }
            | more
        )
    )  # fmt: skip
