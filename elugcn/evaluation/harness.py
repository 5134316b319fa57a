"""Do the jobs of a comparison that the store does not have yet."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Sequence
from concurrent import futures
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

from elugcn.api.fitting import choose_device
from elugcn.errors import InputError
from elugcn.evaluation.jobs import Job
from elugcn.evaluation.run import Settings, failed_record, load_job_data, run_job
from elugcn.evaluation.store import Record, Store
from elugcn.training.progress import SILENT, Progress

_POLL = 0.5  # seconds between two looks at what other processes have done


@dataclass
class Outcomes:
    """What there is for each job: a record, or the record of its failure."""

    done: dict[Job, Record] = field(default_factory=dict)
    failed: dict[Job, Record] = field(default_factory=dict)

    def note(self, job: Job, record: Record) -> None:
        """Keep the record of a job."""
        (self.done if record["status"] == "done" else self.failed)[job] = record


def run_jobs(
    jobs: Sequence[Job],
    store: Store,
    *,
    workers: int = 1,
    data_dir: str | Path | None = None,
    n_threads: int = 1,
    device: str = "auto",
    timeout: float | None = None,
    executor: futures.Executor | None = None,
    progress: Progress = SILENT,
) -> Outcomes:
    """Do every job that is not done yet, each in a process of its own.

    Jobs that another process is doing are waited for. Jobs that failed in an earlier
    call are tried again once. On Ctrl-C the running processes are ended; what is
    finished is in the store.

    Args:
        jobs: What is to be done, in this order.
        store: Where records are and go; only this process writes it.
        workers: How many jobs at once.
        data_dir: Where dataset files are.
        n_threads: Threads of each job.
        device: ``auto``, ``cpu`` or ``cuda``.
        timeout: Seconds after which a run is ended and counts as failed.
        executor: Where jobs are sent, such as ``Client.get_executor()`` of Dask;
            None: this machine.
        progress: Shows how many jobs are finished.
    """
    for name, number in (("workers", workers), ("n_threads", n_threads)):
        if number < 1:
            raise InputError(f"{name} must be at least 1; got {number}")
    known = {job: store.result(job) for job in jobs}
    outcomes = Outcomes({job: record for job, record in known.items() if record})
    pending = [job for job in dict.fromkeys(jobs) if job not in outcomes.done]
    if not pending:
        return outcomes
    store.check_writable()
    place = None if data_dir is None else str(data_dir)
    if executor is None:
        choose_device(device)  # a wrong one would fail every run
        # What is wrong with a dataset is said before any run, and what is missing is
        # downloaded once.
        for job in {job.dataset: job for job in reversed(pending)}.values():
            load_job_data(job, place)
    settings = Settings(place, n_threads, device, timeout)
    with (
        progress.stage("runs", len(pending)) as advance,
        closing(_finish(pending, store, settings, workers, executor)) as finished,
    ):
        for job, record in finished:
            outcomes.note(job, record)
            found = record.get("val_score", record.get("val_accuracy"))
            advance({} if found is None else {"val_score": float(found)})
    return outcomes


def stored_outcomes(jobs: Sequence[Job], store: Store) -> Outcomes:
    """What the store has of the jobs; nothing is run and nothing is written."""
    outcomes = Outcomes()
    for job in dict.fromkeys(jobs):
        record = store.result(job) or store.failure(job)
        if record is not None:
            outcomes.note(job, record)
    return outcomes


def _finish(
    pending: list[Job],
    store: Store,
    settings: Settings,
    workers: int,
    executor: futures.Executor | None,
) -> Generator[tuple[Job, Record]]:
    """Each job with its record, as they are finished here or by other processes."""
    # Failures from before this call do not count.
    earlier = {job: store.failure(job) for job in pending}
    running: dict[futures.Future[Record], tuple[Job, ExitStack]] = {}
    own = futures.ThreadPoolExecutor(workers)
    # Threads wait for the processes here; an executor's workers are out of reach.
    cancelled = threading.Event() if executor is None else None
    try:
        while pending or running:
            store.refresh()
            for job in list(pending):
                if len(running) >= workers:
                    break
                with ExitStack() as claim:
                    if not claim.enter_context(store.claim(job)):
                        continue
                    pending.remove(job)
                    # Whoever had the claim may have finished between the two looks.
                    store.refresh()
                    record = store.result(job) or store.failure(job)
                    if record is not None and record != earlier[job]:
                        yield job, record
                        continue
                    future = (executor or own).submit(run_job, job, settings, cancelled)
                    running[future] = job, claim.pop_all()
            if pending and not running:
                time.sleep(_POLL)  # other processes have the rest
            for future in futures.wait(running, _POLL, futures.FIRST_COMPLETED).done:
                job, claim = running.pop(future)
                with claim:
                    try:
                        record = future.result()
                    except Exception as error:  # the executor lost the job
                        lost = f"{type(error).__name__}: {error}"
                        record = failed_record(job, lost, 1)
                    store.add(record)
                yield job, record
    finally:
        if cancelled is not None:
            cancelled.set()
        for future, (_, claim) in running.items():
            future.cancel()
            claim.close()
        own.shutdown()
