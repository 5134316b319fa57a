"""What a configuration is worth: its runs, done by the harness of comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from elugcn.evaluation import Job, Store, make_jobs, run_jobs
from elugcn.evaluation.child import COMMAND
from elugcn.evaluation.monitor import SILENT, Monitor
from elugcn.evaluation.store import Record
from elugcn.tuning.paths import Options
from elugcn.tuning.search import Evaluation
from elugcn.tuning.space import Space


@dataclass(frozen=True)
class Runner:
    """Evaluates configurations; finished runs are taken from the store.

    Attributes:
        store: where results are and go.
        runs: runs of each configuration.
        first: seed of the first of them.
        workers: runs at once; what comes out does not depend on it.
        n_threads: threads of each run.
        data_dir: where dataset files are.
        device: ``auto``, ``cpu`` or ``cuda``.
        monitor: is told how far the runs of a configuration are.
        command: what a worker process runs.
    """

    store: Store
    runs: int
    first: int
    workers: int = 1
    n_threads: int = 1
    data_dir: Path | None = None
    device: str = "auto"
    monitor: Monitor = SILENT
    command: Sequence[str] = COMMAND

    def __call__(self, space: Space, config: Options) -> Evaluation:
        """Do the runs of a configuration that are not in the store yet."""
        jobs = make_jobs(
            [space.method],
            [space.dataset],
            self.runs,
            options={space.method: config},
            first=self.first,
        )
        failed = {job: known for job in jobs if (known := self._failure(job))}
        outcomes = run_jobs(
            [job for job in jobs if job not in failed],
            self.store,
            workers=self.workers,
            data_dir=self.data_dir,
            n_threads=self.n_threads,
            device=self.device,
            monitor=self.monitor,
            command=self.command,
        )
        failed |= outcomes.failed
        return evaluation_of(jobs, outcomes.done, failed)

    def _failure(self, job: Job) -> Record | None:
        """The failure of an earlier call, if it is the run's own.

        It would fail again; to try it all the same, delete its file. A run that was
        killed from outside is tried again.
        """
        record = self.store.failure(job)
        if record is None or int(record.get("exit_code", 0)) < 0:
            return None
        return record


def evaluation_of(
    jobs: Sequence[Job], done: dict[Job, Record], failed: dict[Job, Record]
) -> Evaluation:
    """Sum up the runs of a configuration; one that failed spoils it."""
    records = tuple(done[job] for job in jobs if job in done)
    errors = [str(failed[job].get("error")) for job in jobs if job in failed]
    # Only validation is looked at: the search never sees a test accuracy.
    accuracies = [record["val_accuracy"] for record in records]
    if not errors and None in accuracies:
        errors = ["there are no validation nodes to judge by"]
    return Evaluation(
        accuracies=() if errors else tuple(map(float, accuracies)),
        seconds=sum(float(r.get("process_seconds", 0.0)) for r in records),
        error="; ".join(dict.fromkeys(errors)) or None,
        records=records,
    )
