"""Records without runs, and functions that other processes can import."""

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from elugcn.api import Fitted
from elugcn.errors import InputError
from elugcn.evaluation import Job
from elugcn.evaluation.isolated import run_isolated

Jobs = Callable[..., list[Job]]


def record_of(job: Job, test: float | None = 0.5, **more: Any) -> dict[str, Any]:
    """A record as a run makes it."""
    made = {
        "schema": 2, "status": "done", "version": "0.2.0", "key": job.key,
        "config": job.config, "packages": {"elugcn": "0.2.0", "torch": "2"},
        "commit": None, "threads": 1, "device": "cpu", "train_accuracy": 1.0,
        "val_accuracy": 0.5, "test_accuracy": test, "epochs": 1,
        "seconds": {"load": 0.1, "total": 2.0}, "peak_rss_mb": 100.0, "metadata": {},
        "date": "2026-01-01T00:00:00+0000", "process_seconds": 2.5,
    }  # fmt: skip
    return json.loads(json.dumps(made | job.plain() | more))


def measure(fitted: Fitted) -> dict[str, Any]:
    return {"nodes": int(fitted.data.num_nodes)}


def stuck(fitted: Fitted) -> None:
    time.sleep(600)


def kills_seed_1(fitted: Fitted) -> str:
    if fitted.seed == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return "fine"


def hold(megabytes: int) -> dict[str, float]:
    """The peak of a process that holds this much."""
    from elugcn.api.runs import peak_rss_mb

    held = bytearray(megabytes * 2**20)
    held[::4096] = b"x" * len(held[::4096])
    return {"peak": peak_rss_mb(), "pid": os.getpid()}


def end(how: str) -> Any:
    """Every way in which a call can end."""
    match how:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "exit":
            os._exit(3)
        case "error":
            raise ValueError("no\nluck")
        case "memory":
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: 1 bytes")
        case "input":
            raise InputError("lr must be\n positive")
        case "print":
            print("noise", flush=True)
            return {"nan": float("nan"), "tuple": (1, 2)}
        case "sleep":
            time.sleep(600)
    return how


def watch_a_sleeper(path: str) -> None:
    """Start a call that leaves its process id and sleeps, and wait for it."""
    run_isolated(leave_pid, path)


def leave_pid(path: str) -> None:
    Path(path).write_text(str(os.getpid()))
    time.sleep(600)
