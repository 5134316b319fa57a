"""Do the runs of a comparison that the store does not have yet."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from elugcn.data.datasets import load_dataset
from elugcn.errors import InputError
from elugcn.evaluation.child import COMMAND, Child, Forked, Spawned
from elugcn.evaluation.claims import Claim
from elugcn.evaluation.jobs import Job
from elugcn.evaluation.monitor import SILENT, Monitor
from elugcn.evaluation.nursery import AVAILABLE, discard, nursery
from elugcn.evaluation.store import Record, Store
from elugcn.fitting import choose_device

_POLL = 0.05  # seconds between two looks at the children
_WAIT = 0.5  # seconds between two looks at what other processes do


@dataclass
class Outcomes:
    """What there is for each job: a result, or the reason why there is none."""

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
    monitor: Monitor = SILENT,
    command: Sequence[str] = COMMAND,
) -> Outcomes:
    """Do every job that has no result yet, each in a process of its own.

    Jobs that another process is doing are waited for. Jobs that failed in an earlier
    call are tried again, once.

    Args:
        jobs: what is to be done, in this order.
        store: where results are and go.
        workers: how many jobs at once.
        data_dir: where dataset files are.
        n_threads: threads of each job.
        device: ``auto``, ``cpu`` or ``cuda``.
        monitor: is told how far it is.
        command: what a worker process runs.

    Raises:
        InputError: a record is damaged, the store can't be written to, a dataset
            can't be loaded.
    """
    if workers < 1:
        raise InputError(f"jobs must be at least 1; got {workers}")
    if n_threads < 1:
        raise InputError(f"threads must be at least 1; got {n_threads}")
    choose_device(device)
    store.check_place()
    outcomes = Outcomes()
    for job in jobs:
        record = store.result(job)
        if record is not None:
            outcomes.done[job] = record
            store.tidy(job)
    pending = [job for job in dict.fromkeys(jobs) if job not in outcomes.done]
    place = None if data_dir is None else str(data_dir)
    if pending:
        store.check_writable()
        check_data_of(pending, place)
    settings = {"data_dir": place, "n_threads": n_threads, "device": device}
    if pending and _forks(command):
        # Before any claim: an interrupt then always knows what to end.
        nursery(n_threads)
    crew = _Crew(pending, store, outcomes, workers, settings, command)
    with monitor.watching(pending, outcomes.done.values()) as report:
        try:
            while crew.step():
                report(crew.finished, crew.running)
                time.sleep(_POLL)
            report(crew.finished, crew.running)
        except BaseException:
            discard(n_threads)
            raise
        finally:
            crew.stop()
    return outcomes


def stored_outcomes(jobs: Sequence[Job], store: Store) -> Outcomes:
    """What the store has of the jobs; nothing is run and nothing is written.

    Raises:
        InputError: a record is damaged.
    """
    store.check_place()
    outcomes = Outcomes()
    for job in dict.fromkeys(jobs):
        record = store.result(job)
        if record is not None:
            outcomes.done[job] = record
        elif (failure := store.failure(job)) is not None:
            outcomes.failed[job] = failure
    return outcomes


def check_data_of(jobs: Iterable[Job], data_dir: str | None) -> None:
    """Load each dataset once: what is wrong with it is said before any run.

    It also fetches what is missing before several workers would.
    """
    first = {job.dataset: job for job in reversed(list(jobs))}
    for job in reversed(first.values()):
        load_dataset(
            job.dataset,
            job.split,
            data_dir,
            labels_per_class=job.labels_per_class,
            **job.data_options,
        )


def _forks(command: Sequence[str]) -> bool:
    return tuple(command) == COMMAND and AVAILABLE


class _Crew:
    """The children at work, the claims they need, and what is left to do."""

    def __init__(
        self,
        pending: list[Job],
        store: Store,
        outcomes: Outcomes,
        workers: int,
        settings: dict[str, str | int | None],
        command: Sequence[str],
    ) -> None:
        self.pending = pending
        self.finished: list[tuple[Job, Record]] = []
        self._store, self._outcomes = store, outcomes
        self._workers, self._settings, self._command = workers, settings, command
        self._children: list[tuple[Claim, Child]] = []
        self._began = time.time()
        self._look = 0.0

    @property
    def running(self) -> list[Job]:
        """What is being done here and now."""
        return [child.job for _, child in self._children]

    def step(self) -> bool:
        """Collect, start, beat; False when nothing is left to do."""
        for entry in [e for e in self._children if e[1].finished()]:
            self._collect(*entry)
            self._children.remove(entry)
            self._look = 0.0
        if len(self._children) < self._workers and time.monotonic() >= self._look:
            self._start_some()
            self._look = time.monotonic() + _WAIT
        for claim, _ in self._children:
            claim.beat()
        return bool(self._children or self.pending)

    def stop(self) -> None:
        """End the children that are left and give their claims back."""
        while self._children:
            claim, child = self._children.pop()
            child.kill()
            claim.release()

    def _child(self, job: Job) -> Child:
        if not _forks(self._command):
            return Spawned(job, self._settings, self._command)
        threads = int(self._settings.get("n_threads") or 1)
        return Forked(job, self._settings, nursery(threads))

    def _start_some(self) -> None:
        """Start what no other process is doing, while there are workers."""
        for job in list(self.pending):
            if len(self._children) >= self._workers:
                return
            if self._settled(job):
                self.pending.remove(job)
                continue
            claim = self._store.claim(job)
            if claim is None:
                continue
            self.pending.remove(job)
            # Its owner may have finished between the look and the claim.
            if self._settled(job):
                claim.release()
                continue
            try:
                child = self._child(job)
            except BaseException:
                claim.release()
                raise
            self._children.append((claim, child))

    def _settled(self, job: Job) -> bool:
        """Whether another process has done the job, or failed, since we began."""
        record = self._store.result(job)
        if record is None:
            path = self._store.failed_path(job)
            if not path.exists() or path.stat().st_mtime < self._began:
                return False
            record = self._store.failure(job)
            if record is None:
                return False
        self._note(job, record)
        return True

    def _collect(self, claim: Claim, child: Child) -> None:
        record = child.outcome()
        if record["status"] == "done":
            if not self._store.add(child.job, record):
                record = self._store.result(child.job) or record
        else:
            self._store.add_failure(child.job, record)
        claim.release()
        self._note(child.job, record)

    def _note(self, job: Job, record: Record) -> None:
        self.finished.append((job, record))
        done = record["status"] == "done"
        (self._outcomes.done if done else self._outcomes.failed)[job] = record
