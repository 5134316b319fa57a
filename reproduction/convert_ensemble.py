"""Convert the runs of version 0.1's default, which ``auto`` is no longer; used once.

Runs of it with two views and nothing else are runs of ``elu-gcn``: those that an
experiment still has were given that name and its options. The accuracies with few
labels went into ``fewlabels_0_1.csv``. All other runs and the trials were deleted.

    python reproduction/convert_ensemble.py reproduction/results
"""

import csv
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from elugcn_reproduction import __file__ as package
from elugcn_reproduction.experiments import get_experiments
from elugcn_reproduction.experiments.base import Scope

from elugcn.evaluation.jobs import Job, differing
from elugcn.evaluation.store import Record, read_records, write_records
from elugcn.methods.registry import get_method
from elugcn.tuning.trials import PUBLISHED

KEPT = ("sensitivity", "heatmap", "theory")


def convert(old: Record) -> Record:
    """The same run as one of ``elu-gcn``."""
    known = get_method("elu-gcn").Config.model_fields
    config = {name: value for name, value in old["config"].items() if name in known}
    names = ("dataset", "split", "seed", "labels_per_class", "data_options", "measure")
    about = {name: old[name] for name in names}
    job = Job("elu-gcn", options=differing("elu-gcn", config), **about)
    return old | job.plain() | {"key": job.key, "config": config}


def alone(record: Record) -> bool:
    """Whether a run is of two views with a fixed η, and of nothing else."""
    wanted = {"variants": [], "keep_gcn": False, "ensemble": False, "refit_eta": False}
    return wanted.items() <= record["config"].items()


def few_labels(records: Iterable[Record]) -> Iterator[tuple[Any, ...]]:
    """A row for each run with few labels and the default options."""
    for r in records:
        if r["labels_per_class"] is not None and not r["options"]:
            yield (r["dataset"], r["labels_per_class"], r["split"], r["seed"],
                   f"{r['val_accuracy']:.6f}", f"{r['test_accuracy']:.6f}",
                   f"{r['seconds']['total']:.1f}")  # fmt: skip


def main(folder: Path) -> None:
    """Convert the store in place."""
    runs = folder / "runs"
    records = read_records(runs / "auto.parquet")
    with (Path(package).parent / "fewlabels_0_1.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("dataset", "labels_per_class", "split", "seed", "validation",
                         "test", "seconds"))  # fmt: skip
        writer.writerows(sorted(few_labels(records)))
    needed = {
        planned.job.key
        for name in KEPT
        for one in get_experiments(name)
        for planned in one.plan(Scope(False, one.seeds))
    }
    found = [convert(record) for record in records if alone(record)]
    found = [record for record in found if record["key"] in needed]
    assert {record["key"] for record in found} == needed
    kept = read_records(runs / "elu-gcn.parquet")
    assert needed.isdisjoint(record["key"] for record in kept)
    write_records(runs / "elu-gcn.parquet", [*kept, *found])
    (runs / "auto.parquet").unlink()
    trials = read_records(folder / PUBLISHED)
    write_records(folder / PUBLISHED, [t for t in trials if t["method"] != "auto"])
    print(len(records), "runs,", len(found), "converted")


main(Path(sys.argv[1]))
