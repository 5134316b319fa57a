"""Do an experiment: plan it, run what the store does not have, write its page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from elugcn.data.datasets import dataset_info, is_on_disk, load_dataset
from elugcn.errors import InputError
from elugcn.evaluation.harness import Outcomes, run_jobs, stored_outcomes
from elugcn.evaluation.jobs import Job
from elugcn.evaluation.monitor import SILENT, Monitor
from elugcn.evaluation.store import Store
from elugcn.experiments.base import Experiment, Finished, Planned, Scope
from elugcn.experiments.output import Page


class NothingToShowError(InputError):
    """An experiment has no run to write a page of; the others may have."""


@dataclass(frozen=True)
class Circumstances:
    """Where and how the runs are done.

    Attributes:
        store: where results are and go.
        run: whether to run what is missing; else only what is there is shown.
        workers: runs at once.
        data_dir: where dataset files are.
        n_threads: threads of each run.
        device: ``auto``, ``cpu`` or ``cuda``.
        monitor: is told how far it is.
    """

    store: Store
    run: bool = True
    workers: int = 1
    data_dir: Path | None = None
    n_threads: int = 1
    device: str = "auto"
    monitor: Monitor = SILENT


@dataclass
class Report:
    """What came of an experiment.

    Attributes:
        name: of the experiment.
        planned: how many different runs it takes.
        done: how many of them there are.
        failed: which failed, and why.
        notes: what its page says at the end.
        files: what was written; nothing if every run failed.
    """

    name: str
    planned: int = 0
    done: int = 0
    failed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        """The report as JSON holds it."""
        runs = {"planned": self.planned, "done": self.done, "failed": len(self.failed)}
        return {
            "experiment": self.name,
            "runs": runs,
            "notes": self.notes,
            "files": [str(path) for path in self.files],
        }


def reproduce(
    experiment: Experiment,
    scope: Scope,
    circumstances: Circumstances,
    folder: Path,
    command: str,
    whole: tuple[Scope, str] | None = None,
) -> Report:
    """Run an experiment and write its page, if any of its runs succeeds.

    Args:
        experiment: which one.
        scope: how much of it.
        circumstances: where and how.
        folder: of the page.
        command: what makes the page again, for the page to say.
        whole: a wider scope, and the command for it: if the store has runs of it
            beyond ``scope``, the page shows them, too.

    Raises:
        NothingToShowError: no run of it is asked for, possible, or in the store.
        InputError: a name, a number or a file is wrong.
    """
    plan = experiment.plan(scope)
    if not plan:
        raise NothingToShowError(
            f"{experiment.name} has no run for these --datasets and --methods"
        )
    absent: dict[str, str] = {}
    if circumstances.run:
        plan, absent = _with_data(plan, circumstances)
    outcomes = _outcomes([p.job for p in plan], circumstances)
    failed = [
        f"{job.title}: {record.get('error')}" for job, record in outcomes.failed.items()
    ]
    report = Report(
        experiment.name,
        planned=len({p.job for p in plan}),
        done=len(outcomes.done),
        failed=failed,
        notes=[
            f"{name} is left out, its data is not there: "
            f"{', '.join(dataset_info(name).files)}"
            for name in absent
        ],
    )
    if whole is not None:
        wider, more = _with_stored(plan, experiment.plan(whole[0]), circumstances)
        if more.done:
            plan, (scope, command) = wider, whole
            outcomes = Outcomes(
                outcomes.done | more.done, outcomes.failed | more.failed
            )
    report.notes += _missing(plan, outcomes)
    finished = [
        Finished(p, outcomes.done[p.job]) for p in plan if p.job in outcomes.done
    ]
    if not finished:
        if failed:
            return report
        raise NothingToShowError(_nothing(experiment, circumstances, absent))
    unique = {id(f.record): f.record for f in finished}
    page = Page(experiment, scope, command, list(unique.values()))
    experiment.write(finished, page)
    for note in report.notes:
        page.note(note)
    return replace(report, notes=list(page.notes), files=page.save(folder))


def _outcomes(jobs: Sequence[Job], circumstances: Circumstances) -> Outcomes:
    if not circumstances.run:
        return stored_outcomes(jobs, circumstances.store)
    return run_jobs(
        jobs,
        circumstances.store,
        workers=circumstances.workers,
        data_dir=circumstances.data_dir,
        n_threads=circumstances.n_threads,
        device=circumstances.device,
        monitor=circumstances.monitor,
    )


def _with_stored(
    plan: Sequence[Planned], whole: Sequence[Planned], circumstances: Circumstances
) -> tuple[list[Planned], Outcomes]:
    """A wider plan with this one in it, and what the store has of the rest."""
    mine = {p.job for p in plan}
    others = [p for p in whole if p.job not in mine]
    known = set(whole)
    wider = [*whole, *(p for p in plan if p not in known)]
    return wider, stored_outcomes([p.job for p in others], circumstances.store)


def _with_data(
    plan: Sequence[Planned], circumstances: Circumstances
) -> tuple[list[Planned], dict[str, str]]:
    """The runs that are done or whose data is there; why other datasets are not."""
    open_jobs = [p.job for p in plan if not circumstances.store.path(p.job).exists()]
    absent: dict[str, str] = {}
    for name in dict.fromkeys(job.dataset for job in open_jobs):
        if is_on_disk(name, circumstances.data_dir):
            continue
        try:
            load_dataset(name, data_dir=circumstances.data_dir)
        except InputError as error:
            absent[name] = " ".join(str(error).split())
    missing = {job for job in open_jobs if job.dataset in absent}
    return [p for p in plan if p.job not in missing], absent


def _missing(plan: Sequence[Planned], outcomes: Outcomes) -> list[str]:
    """Rows without a run, cells with fewer runs than planned, and why runs failed."""
    total = Counter((p.row, p.job.dataset, p.group) for p in plan)
    done = Counter(
        (p.row, p.job.dataset, p.group) for p in plan if p.job in outcomes.done
    )
    present = {row for row, _, _ in done}
    notes = []
    rows = [row for row in dict.fromkeys(p.row for p in plan) if row not in present]
    if rows:
        notes.append(f"no run yet, and left out: {'; '.join(rows)}")
    none: dict[str, list[str]] = {}
    short = []
    for (row, dataset, group), count in total.items():
        where = f"{dataset} ({group})" if group else dataset
        found = done[row, dataset, group]
        if row in present and not found:
            none.setdefault(where, []).append(row)
        elif row in present and found < count:
            short.append(f"{row} on {where} {found} of {count}")
    notes += [f"no run yet on {where}: {'; '.join(r)}" for where, r in none.items()]
    if short:
        notes.append(f"fewer runs than planned: {'; '.join(short)}")
    reasons = Counter(
        f"{p.row} on {p.job.dataset}: {outcomes.failed[p.job].get('error')}"
        for p in plan
        if p.job in outcomes.failed
    )
    notes += [f"{count} failed, {reason}" for reason, count in reasons.items()]
    return notes


def _nothing(
    experiment: Experiment,
    circumstances: Circumstances,
    absent: dict[str, str],
) -> str:
    """Why there is no page, in a line."""
    if absent:
        name, reason = next(iter(absent.items()))
        return f"{experiment.name}: no dataset is there; {name}: {reason}"
    return (
        f"--no-run: {circumstances.store.folder} has no run of {experiment.name} yet; "
        "run it without --no-run"
    )
