"""Do an experiment: plan it, run what the store does not have, write its page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elugcn.data.datasets import dataset_info, is_on_disk, load_dataset
from elugcn.errors import InputError
from elugcn.evaluation import Job, Outcomes, Store, stored_outcomes
from elugcn_reproduction.experiments.base import Experiment, Finished, Planned, Scope
from elugcn_reproduction.page import Page

# Does the jobs that the store does not have; None: nothing is run.
Run = Callable[[Sequence[Job]], Outcomes] | None


class NothingToShowError(InputError):
    """An experiment has no run to write a page of; the others may have."""


@dataclass
class Report:
    """What came of an experiment.

    Attributes:
        name: Of the experiment.
        planned: How many different runs it needs.
        done: How many of them there are.
        failed: Which failed, and why.
        notes: What its page says at the end.
        files: What was written; nothing if every run failed.
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
    store: Store,
    run: Run,
    folder: Path,
    command: str,
    *,
    data_dir: Path | None = None,
    whole: tuple[Scope, str] | None = None,
) -> Report:
    """Run an experiment and write its page, if any of its runs succeeds.

    Args:
        experiment: Which one.
        scope: How much of it.
        store: Where records are.
        run: Does jobs; None: only what the store has is shown.
        folder: Of the page.
        command: What makes the page again, for the page to say.
        data_dir: Where dataset files are.
        whole: A wider scope and its command: if the store has runs of it beyond
            ``scope``, the page shows them too.

    Raises:
        NothingToShowError: No run of it is asked for, possible, or in the store.
        InputError: A name, a number or a file is wrong.
    """
    plan = experiment.plan(scope)
    if not plan:
        raise NothingToShowError(
            f"{experiment.name} has no run for these --datasets and --methods"
        )
    absent: dict[str, str] = {}
    if run is None:
        outcomes = stored_outcomes([p.job for p in plan], store)
    else:
        plan, absent = _with_data(plan, store, data_dir)
        outcomes = run([p.job for p in plan])
    report = Report(
        experiment.name,
        planned=len({p.job for p in plan}),
        done=len(outcomes.done),
        failed=[f"{job.title}: {r.get('error')}" for job, r in outcomes.failed.items()],
    )
    if whole is not None:
        mine = {p.job for p in plan}
        wider = experiment.plan(whole[0])
        more = stored_outcomes([p.job for p in wider if p.job not in mine], store)
        if more.done:
            plan = list(dict.fromkeys([*wider, *plan]))
            scope, command = whole
            outcomes = Outcomes(
                outcomes.done | more.done, outcomes.failed | more.failed
            )
    finished = [
        Finished(p, outcomes.done[p.job]) for p in plan if p.job in outcomes.done
    ]
    if not finished:
        if report.failed:
            return report
        raise NothingToShowError(_nothing(experiment, store, absent))
    page = Page(
        experiment.name,
        experiment.title,
        experiment.question,
        command,
        scope.quick,
        [outcomes.done[job] for job in dict.fromkeys(f.planned.job for f in finished)],
    )
    experiment.write(finished, page)
    for name in absent:
        files = ", ".join(dataset_info(name).files)
        page.note(f"{name} is left out, its files are not there: {files}")
    for note in _missing(plan, outcomes):
        page.note(note)
    report.notes, report.files = page.notes, page.save(folder)
    return report


def _with_data(
    plan: Sequence[Planned], store: Store, data_dir: Path | None
) -> tuple[list[Planned], dict[str, str]]:
    """The runs that are done or whose data is there; why other datasets are not."""
    unfinished = {p.job for p in plan if store.result(p.job) is None}
    absent: dict[str, str] = {}
    for name in dict.fromkeys(p.job.dataset for p in plan if p.job in unfinished):
        if not is_on_disk(name, data_dir):
            try:
                load_dataset(name, data_dir=data_dir)
            except InputError as error:
                absent[name] = " ".join(str(error).split())
    kept = [p for p in plan if p.job not in unfinished or p.job.dataset not in absent]
    return kept, absent


def _missing(plan: Sequence[Planned], outcomes: Outcomes) -> list[str]:
    """Rows without a run, cells with fewer runs than planned, and why runs failed."""
    total = Counter((p.row, p.job.dataset, p.group) for p in plan)
    done = Counter(
        (p.row, p.job.dataset, p.group) for p in plan if p.job in outcomes.done
    )
    present = {row for row, _, _ in done}
    notes = []
    absent = [row for row in dict.fromkeys(p.row for p in plan) if row not in present]
    if absent:
        notes.append(f"no run yet, and left out: {'; '.join(absent)}")
    none: dict[str, list[str]] = {}
    short = []
    for (row, dataset, group), count in total.items():
        found = done[row, dataset, group]
        if row in present and not found:
            where = f"{dataset} ({group})" if group else dataset
            none.setdefault(where, []).append(row)
        elif row in present and found < count:
            short.append(f"{row} on {dataset} {found} of {count}")
    notes += [f"no run yet on {where}: {'; '.join(r)}" for where, r in none.items()]
    if short:
        notes.append(f"fewer runs than planned: {'; '.join(short)}")
    reasons = Counter(
        f"{p.row} on {p.job.dataset}: {outcomes.failed[p.job].get('error')}"
        for p in plan
        if p.job in outcomes.failed
    )
    return [*notes, *(f"{count} failed, {reason}" for reason, count in reasons.items())]


def _nothing(experiment: Experiment, store: Store, absent: dict[str, str]) -> str:
    """Why there is no page, in a line."""
    if absent:
        name, reason = next(iter(absent.items()))
        return f"{experiment.name}: no dataset is there; {name}: {reason}"
    return (
        f"--no-run: {store.folder} has no run of {experiment.name} yet; run it without "
        "--no-run"
    )
