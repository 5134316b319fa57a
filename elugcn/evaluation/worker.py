"""One run in a process of its own: ``python -m elugcn.evaluation.worker``.

A job comes in as a line of JSON on stdin, the record goes out as JSON on stdout. The
process is new for each run, so the peak of memory is that run's, and a run that is
killed takes nothing along.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import warnings
from typing import Any

from elugcn.config import make_config
from elugcn.data.checks import check_data
from elugcn.data.datasets import load_dataset
from elugcn.errors import InputError, MissingExtraError
from elugcn.evaluation.jobs import Job
from elugcn.evaluation.store import SCHEMA, Record
from elugcn.fitting import Fitted, fit_graph
from elugcn.runs import environment, peak_rss_mb
from elugcn.storage import json_safe

WITH_PARENT = "--with-parent"


def execute(
    job: Job, *, data_dir: str | None = None, n_threads: int = 1, device: str = "auto"
) -> Record:
    """Do a run here and return its record."""
    start = time.perf_counter()
    data = load_dataset(
        job.dataset,
        job.split,
        data_dir,
        labels_per_class=job.labels_per_class,
        **job.data_options,
    )
    graph = check_data(data, seed=job.seed)
    loading = time.perf_counter() - start
    config = make_config(job.method, job.config)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
        fitted = fit_graph(
            graph,
            job.method,
            config,
            seed=job.seed,
            device=device,
            n_threads=n_threads,
        )
    prediction, masks = fitted.prediction, fitted.data
    about = environment(fitted.threads)
    # Taken first: what a measurement needs is no cost of the method.
    peak = peak_rss_mb()
    measured = {} if job.measure is None else {"measured": measure(job, fitted)}
    return {
        "schema": SCHEMA,
        "status": "done",
        **job.plain(),
        "config_hash": job.config_hash,
        "packages": about["packages"] | {"python": about["python"]},
        "commit": about["commit"],
        "threads": fitted.threads,
        "device": fitted.device,
        "train_accuracy": fitted.accuracy(masks.train_mask),
        "val_accuracy": fitted.accuracy(masks.val_mask),
        "test_accuracy": fitted.accuracy(masks.test_mask),
        "epochs": prediction.epochs,
        "seconds": {"load": loading} | prediction.seconds,
        "peak_rss_mb": round(peak, 1),
        "details": prediction.facts,
        **measured,
        "date": about["date"],
    }


def measure(job: Job, fitted: Fitted) -> dict[str, Any]:
    """What the job's measurement says about the fitted model."""
    from elugcn.experiments import buying, measures

    known = measures.MEASURES | buying.MEASURES
    if job.measure not in known:
        raise InputError(
            f"unknown measure {job.measure!r}; there are {', '.join(known)}"
        )
    return known[job.measure](fitted)


def main(arguments: list[str] | None = None) -> int:
    """Read a job, do it, print its record; 2 if the input is to blame."""
    given = sys.argv[1:] if arguments is None else arguments
    task: dict[str, Any] = json.loads(sys.stdin.readline())
    if WITH_PARENT in given:
        threading.Thread(target=_die_with_parent, daemon=True).start()
    return perform(task)


def perform(task: dict[str, Any]) -> int:
    """Do the job of a task and print its record; the exit code."""
    # A library that prints would spoil the record.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        record = execute(Job(**task.pop("job")), **task)
    except (InputError, MissingExtraError) as error:
        print(f"InputError: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    with out:
        json.dump(json_safe(record), out, allow_nan=False)
    return 0


def _die_with_parent() -> None:
    """End when stdin closes: a comparison that is killed leaves nobody computing."""
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    # Not sys.exit: Python would wait for the reader of stdin at its end.
    code = 1
    try:
        code = main()
    except Exception:
        sys.excepthook(*sys.exc_info())
    sys.stderr.flush()
    os._exit(code)
