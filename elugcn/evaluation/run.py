"""One run: load the dataset, fit, measure, describe in a record."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from torch_geometric.data import Data

from elugcn import __version__, api
from elugcn.api.fitting import collapse_note
from elugcn.api.runs import environment, peak_rss_mb
from elugcn.data.datasets import load_dataset
from elugcn.data.validation import check_data
from elugcn.errors import CollapseWarning, InputError
from elugcn.evaluation.isolated import IsolatedError, run_isolated
from elugcn.evaluation.jobs import Job
from elugcn.evaluation.store import SCHEMA, Record


@dataclass(frozen=True)
class Settings:
    """How jobs are run; none of it changes a result."""

    data_dir: str | None = None
    n_threads: int = 1
    device: str = "auto"
    timeout: float | None = None  # seconds after which a run is ended


def run_job(
    job: Job, settings: Settings, cancelled: threading.Event | None = None
) -> Record:
    """Do a job in a process of its own and return its record, failed or done.

    This is what executors call on their workers: a top-level function whose arguments
    can be pickled.
    """
    start = time.monotonic()
    try:
        record: Record = run_isolated(
            execute, job, settings, timeout=settings.timeout, cancelled=cancelled
        )
    except IsolatedError as error:
        record = failed_record(job, str(error), error.exit_code)
    return record | {"process_seconds": round(time.monotonic() - start, 3)}


def execute(job: Job, settings: Settings) -> Record:
    """Do a job in this process and return its record."""
    start = time.perf_counter()
    data = check_data(load_job_data(job, settings.data_dir), seed=job.seed)
    loading = time.perf_counter() - start
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
        warnings.simplefilter("ignore", CollapseWarning)  # the record has it
        fitted = api.fit(
            data,
            job.method,
            job.options,
            seed=job.seed,
            device=settings.device,
            n_threads=settings.n_threads,
            metric=job.metric,
            class_weight=job.class_weight,
        )
    # Taken first: what a measurement needs is not a cost of the method.
    peak = round(peak_rss_mb(), 1)
    measured = (
        {} if job.measure is None else {"measured": _measure(job.measure, fitted)}
    )
    about, result, graph = environment(fitted.threads), fitted.result, fitted.data
    use = result.label_utilization
    parts = {name: graph[f"{name}_mask"] for name in ("train", "val", "test")}
    own: Record = {}
    if job.metric != "accuracy":
        own = {f"{name}_score": fitted.score(mask) for name, mask in parts.items()}
    if collapse_note(fitted):
        own["collapsed"] = True
    return _head(job, "done") | {
        "config": job.config,
        "packages": about["packages"] | {"python": about["python"]},
        "commit": about["commit"],
        "threads": fitted.threads,
        "device": str(fitted.device),
        **{f"{name}_accuracy": fitted.accuracy(mask) for name, mask in parts.items()},
        **own,
        "elu_fraction": None if use is None else use.elu_fraction,
        "epochs": result.epochs,
        "seconds": {"load": loading} | result.seconds,
        "peak_rss_mb": peak,
        "metadata": result.metadata,
        **measured,
        "date": about["date"],
    }


def failed_record(job: Job, error: str, exit_code: int) -> Record:
    """The record of a job that gave no result."""
    date = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    failure = {"error": error, "exit_code": exit_code, "date": date}
    return _head(job, "failed") | failure


def load_job_data(job: Job, data_dir: str | None) -> Data:
    """The dataset of a job."""
    options: dict[str, Any] = dict(job.data_options)
    if job.labels_per_class is not None:
        options["labels_per_class"] = job.labels_per_class
    return load_dataset(job.dataset, job.split, data_dir, **options)


def _head(job: Job, status: str) -> Record:
    about = {"schema": SCHEMA, "status": status, "version": __version__, "key": job.key}
    return about | job.plain()


def _measure(name: str, fitted: Any) -> Any:
    module, _, function = name.partition(":")
    try:
        measure: Callable[[Any], Any] = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError):
        raise InputError(f"measure {name!r} not found") from None
    return measure(fitted)
