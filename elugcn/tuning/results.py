"""What a search leaves: its trials as CSV, the best options as YAML, a summary."""

from __future__ import annotations

import csv
import json
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from elugcn.atomic import whole_file
from elugcn.errors import InputError
from elugcn.tuning.search import Search, Trial
from elugcn.tuning.searchfile import Budget

_PACKAGES = ("elugcn", "torch")


def check_out(out: Path) -> None:
    """Refuse a directory that can't be written to, before hours of work."""
    place = out.resolve()
    while not place.exists():
        place = place.parent
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        raise InputError(f"--out {out}: {place} is not a writable directory")


def csv_path(out: Path, search: Search) -> Path:
    """``<dataset>-<method>.csv``."""
    return out / f"{search.space.dataset}-{search.space.method}.csv"


def yaml_path(out: Path, search: Search) -> Path:
    """``<dataset>-<method>.yaml``."""
    return csv_path(out, search).with_suffix(".yaml")


def write_trials(search: Search, out: Path) -> None:
    """One line a trial; accuracies in [0, 1], of validation nodes only."""
    out.mkdir(parents=True, exist_ok=True)
    columns = search.space.columns
    with whole_file(csv_path(out, search)) as file:
        writer = csv.writer(file, lineterminator="\n")
        head = ("trial", "val_accuracy", "std", "seconds")
        writer.writerow([*head, *columns, "best", "error"])
        for trial in search.trials:
            writer.writerow(
                [
                    trial.number,
                    "" if trial.failed else f"{trial.value:.6f}",
                    "" if trial.std is None else f"{trial.std:.6f}",
                    f"{trial.evaluation.seconds:.1f}",
                    *(trial.shown.get(column, "") for column in columns),
                    "*" if trial is search.best else "",
                    trial.evaluation.error or "",
                ]
            )


def write_best(
    search: Search, out: Path, budget: Budget, space_file: str | None
) -> None:
    """Every option of the best trial, the searched ones first, for ``--config``.

    All of them are there, so that the file means the same when presets or defaults
    change. A search without a best trial leaves no file.
    """
    best = search.best
    if best is None:
        yaml_path(out, search).unlink(missing_ok=True)
        return
    searched = {key.partition(".")[0] for key in search.space.columns}
    first = {key: best.config[key] for key in best.config if key in searched}
    rest = {key: best.config[key] for key in best.config if key not in searched}
    with whole_file(yaml_path(out, search)) as file:
        for line in _header(search, best, budget, space_file):
            file.write(f"# {line}\n")
        for title, options in (("Searched", first), ("The rest", rest)):
            if options:
                file.write(f"# {title}:\n{dump(options)}")


def dump(options: dict[str, Any]) -> str:
    """Options as lines of YAML."""
    return yaml.safe_dump(
        options, sort_keys=False, allow_unicode=True, default_flow_style=False
    )


def summary_of(search: Search, out: Path) -> dict[str, Any]:
    """A search as JSON holds it."""
    best = search.best
    shown = {} if best is None else best.shown
    failed = [trial for trial in search.trials if trial.failed]
    return {
        "method": search.space.method,
        "dataset": search.space.dataset,
        "trials": len(search.trials),
        "failed": len(failed),
        "errors": list(dict.fromkeys(str(t.evaluation.error) for t in failed)),
        "best_trial": None if best is None else best.number,
        "val_accuracy": None if best is None else best.value,
        "std": None if best is None else best.std,
        "seconds": round(sum(t.evaluation.seconds for t in search.trials), 3),
        "searched": {key: _value(text) for key, text in shown.items()},
        "options": {} if best is None else best.config,
        "csv": str(csv_path(out, search)),
        "yaml": None if best is None else str(yaml_path(out, search)),
    }


def _value(shown: str) -> Any:
    """A number, boolean or null as JSON has it; words as they are."""
    try:
        return json.loads(shown)
    except ValueError:
        return shown


def _header(search: Search, best: Trial, budget: Budget, file: str | None) -> list[str]:
    # Without a file it is the package's own, which the command finds by itself.
    space = "" if file is None else f" --space {Path(file).name}"
    method, dataset = search.space.method, search.space.dataset
    records = [r for t in search.trials for r in t.evaluation.records]
    versions = []
    for name in _PACKAGES:
        found = sorted({str(record["packages"].get(name)) for record in records})
        versions.append(f"{name} {' and '.join(found)}")
    # The date of the last run, not of today: the same search writes the same file.
    last = max((str(record.get("date", "")) for record in records), default="")
    versions.append(f"optuna {version('optuna')}")
    return [
        f"Trial {best.number} of {len(search.trials)} of {method} on {dataset}: "
        f"validation accuracy {best.value:.4f}.",
        f"elugcn tune --methods {method} --datasets {dataset} \\",
        f"  --trials {search.total} --runs {budget.runs} --first {budget.first} "
        f"--search-seed {budget.search_seed}{space}",
        f"{', '.join(versions)}; last run {last}",
    ]
