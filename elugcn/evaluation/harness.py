"""Do the jobs of a comparison that the store does not have yet."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from elugcn.errors import InputError
from elugcn.evaluation.jobs import Job
from elugcn.evaluation.run import (
    Settings,
    failed_record,
    load_job_data,
    run_job,
)
from elugcn.evaluation.store import Record, Store
from elugcn.training.progress import SILENT, Advance, Progress

_POLL = 0.5  # seconds between two looks at what other processes have done


@dataclass
class Outcomes:
    """What there is for each job: a record, or the record of its failure."""

    done: dict[Job, Record] = field(default_factory=dict)
    failed: dict[Job, Record] = field(default_factory=dict)


def run_jobs(
    jobs: Sequence[Job],
    store: Store,
    *,
    workers: int = 1,
    data_dir: str | Path | None = None,
    n_threads: int = 1,
    device: str = "auto",
    timeout: float | None = None,
    executor: Executor | None = None,
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
        executor: Where jobs are sent, e.g. ``dask.distributed``'s
            ``Client.get_executor()``; None: this machine. ``workers`` is then the
            number of jobs that are sent at once.
        progress: Shows how many jobs are finished.

    Raises:
        InputError: The store cannot be written to, or a dataset cannot be loaded.
    """
    if workers < 1:
        raise InputError(f"workers must be at least 1; got {workers}")
    if n_threads < 1:
        raise InputError(f"n_threads must be at least 1; got {n_threads}")
    outcomes = Outcomes()
    for job in jobs:
        record = store.result(job)
        if record is not None:
            outcomes.done[job] = record
    pending = [job for job in dict.fromkeys(jobs) if job not in outcomes.done]
    if not pending:
        return outcomes
    store.check_writable()
    place = None if data_dir is None else str(data_dir)
    if executor is None:
        check_data_of(pending, place)
    settings = Settings(place, n_threads, device, timeout)
    with progress.stage("runs", len(pending)) as advance:
        _Schedule(pending, store, outcomes, settings, advance).run(workers, executor)
    return outcomes


def stored_outcomes(jobs: Sequence[Job], store: Store) -> Outcomes:
    """What the store has of the jobs; nothing is run and nothing is written."""
    outcomes = Outcomes()
    for job in dict.fromkeys(jobs):
        record = store.result(job)
        if record is not None:
            outcomes.done[job] = record
        elif (failure := store.failure(job)) is not None:
            outcomes.failed[job] = failure
    return outcomes


def check_data_of(jobs: Sequence[Job], data_dir: str | None) -> None:
    """Load each dataset once: what is wrong with it is said before any run.

    It also fetches what is missing before several workers would.
    """
    first = {job.dataset: job for job in reversed(jobs)}
    for job in first.values():
        load_job_data(job, data_dir)


class _Schedule:
    """Jobs that wait, jobs that run, and the claims on those that run."""

    def __init__(
        self,
        pending: list[Job],
        store: Store,
        outcomes: Outcomes,
        settings: Settings,
        advance: Advance,
    ) -> None:
        self._pending = pending
        self._store = store
        self._outcomes = outcomes
        self._settings = settings
        self._advance = advance
        self._running: dict[Future[Record], tuple[Job, ExitStack]] = {}
        # Failures from before this call do not count.
        self._earlier = {job: store.failure(job) for job in pending}

    def run(self, workers: int, executor: Executor | None) -> None:
        """Do all jobs, at most ``workers`` at once."""
        cancelled = threading.Event()
        own = ThreadPoolExecutor(workers)
        try:
            while self._pending or self._running:
                if executor is None:
                    self._start(workers, own, cancelled)
                else:
                    self._start(workers, executor, None)
                if not self._running:
                    time.sleep(_POLL)  # other processes have the rest
                finished, _ = wait(self._running, _POLL, FIRST_COMPLETED)
                for future in finished:
                    self._collect(future)
        finally:
            cancelled.set()
            for future, (_, claim) in self._running.items():
                future.cancel()
                claim.close()
            own.shutdown()

    def _start(
        self, workers: int, executor: Executor, cancelled: threading.Event | None
    ) -> None:
        """Start what no other process is doing or has done."""
        self._store.refresh()
        for job in list(self._pending):
            if len(self._running) >= workers:
                return
            with ExitStack() as stack:
                if not stack.enter_context(self._store.claim(job)):
                    continue
                self._pending.remove(job)
                # Whoever had the claim may have finished between the two looks.
                self._store.refresh()
                if self._settled(job):
                    continue
                future = executor.submit(run_job, job, self._settings, cancelled)
                self._running[future] = job, stack.pop_all()

    def _settled(self, job: Job) -> bool:
        """Whether another process has done the job, or failed, in the meantime."""
        record = self._store.result(job)
        if record is None:
            record = self._store.failure(job)
            if record is None or record == self._earlier[job]:
                return False
        self._note(job, record)
        return True

    def _collect(self, future: Future[Record]) -> None:
        job, claim = self._running.pop(future)
        with claim:
            try:
                record = future.result()
            except Exception as error:  # the executor lost the job
                record = failed_record(job, f"{type(error).__name__}: {error}", 1)
            self._store.add(record)
        self._note(job, record)

    def _note(self, job: Job, record: Record) -> None:
        done = record["status"] == "done"
        (self._outcomes.done if done else self._outcomes.failed)[job] = record
        accuracy = record.get("val_accuracy")
        self._advance({} if accuracy is None else {"val_accuracy": float(accuracy)})
