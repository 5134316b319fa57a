"""The trials of all searches: a journal and one Parquet file."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from filelock import FileLock

from elugcn.evaluation.store import append_line, read_lines, read_records, write_records
from elugcn.tuning.search import Search, Trial

JOURNAL, PUBLISHED = "trials.jsonl", "trials.parquet"
_IDENTITY = ("method", "dataset", "search_seed", "runs", "first", "number", "version",
             "metric", "class_weight")  # fmt: skip


def add_trial(folder: Path, search: Search, trial: Trial, **about: Any) -> None:
    """Append a trial to the journal of a folder, with seeds and number of runs."""
    head = {"method": search.method, "dataset": search.dataset}
    with _lock(folder):
        append_line(folder / JOURNAL, head | about | asdict(trial))


def read_trials(folder: Path) -> list[dict[str, Any]]:
    """Every trial of a folder; a repeated trial counts once, as it was last."""
    published = folder / PUBLISHED
    rows = read_records(published) if published.exists() else []
    rows += read_lines(folder / JOURNAL)[0]
    return list({tuple(row.get(k) for k in _IDENTITY): row for row in rows}.values())


def publish_trials(folder: Path) -> None:
    """Move the trials of the journal, if there are any, into the Parquet file."""
    with _lock(folder):
        if trials := read_trials(folder):
            write_records(folder / PUBLISHED, trials)
            (folder / JOURNAL).unlink(missing_ok=True)


def _lock(folder: Path) -> FileLock:
    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / ".trials.lock")
