"""Convert the results of version 0.1 to the store of 0.2; used once.

    git archive aa482ee results | tar -x -C OLD
    python reproduction/convert_0_1.py OLD/results reproduction/results
"""

import csv
import json
import re
import sys
from pathlib import Path

from elugcn.evaluation.jobs import Job, differing
from elugcn.evaluation.store import NESTED, SCHEMA, write_records
from elugcn.methods.registry import get_method
from elugcn.tuning.trials import PUBLISHED

NAMES = {"elu-gcn": "auto", "elu-gcn-paper": "elu-gcn"}
# Options of 0.1 that were removed, at the only value they had.
REMOVED = {"elu-gcn": {"ensemble": False, "keep_gcn": False, "variants": []}}


def measure_of(name):
    """A measure under its name of today."""
    if name is None:
        return None
    if name.startswith("labelling-"):
        strategy = name.removeprefix("labelling-")
        return f"elugcn_reproduction.active_learning:learn_{strategy}"
    return f"elugcn_reproduction.measures:{name}"


def convert_run(old):
    """A record of schema 2."""
    method = NAMES.get(old["method"], old["method"])
    known = get_method(method).Config.model_fields
    for name, value in old["config"].items():
        assert name in known or REMOVED[method][name] == value, (method, name)
    options = differing(method, {k: v for k, v in old["config"].items() if k in known})
    job = Job(
        method,
        old["dataset"],
        old["split"],
        old["seed"],
        options,
        old["labels_per_class"],
        old["data_options"],
        measure_of(old["measure"]),
    )
    head = {
        "schema": SCHEMA,
        "status": old["status"],
        "version": old["packages"]["elugcn"],
        "key": job.key,
        "original_method": old["method"],
    }
    same = ("config", "packages", "commit", "threads", "device", "train_accuracy",
            "val_accuracy", "test_accuracy", "epochs", "seconds", "peak_rss_mb")
    record = head | job.plain() | {name: old[name] for name in same}
    record["metadata"] = old["details"]
    if "measured" in old:
        record["measured"] = old["measured"]
    record |= {"date": old["date"], "process_seconds": old["process_seconds"]}
    return record


def convert_search(path):
    """The trials of a search."""
    text = path.read_text()
    number, best, method, dataset = re.match(
        r"# Trial (\d+) of (\d+) of (\S+) on (\w+)", text
    ).groups()
    settings = {
        key: int(re.search(rf"--{option} (\d+)", text)[1])
        for key, option in (("search_seed", "search-seed"), ("runs", "runs"), ("first", "first"))
    }
    version = re.search(r"# elugcn (\S+),", text)[1]
    trials = []
    for row in csv.DictReader(path.with_suffix(".csv").open()):
        own = {
            key: plain(value)
            for key, value in row.items()
            if key not in ("trial", "val_accuracy", "std", "seconds", "best", "error") and value != ""
        }
        trials.append(
            {
                "method": NAMES.get(method, method),
                "original_method": method,
                "dataset": dataset,
                **settings,
                "number": int(row["trial"]),
                "options": own,
                "val_accuracy": float(row["val_accuracy"]) if row["val_accuracy"] else None,
                "std": float(row["std"]) if row["std"] else None,
                "seconds": float(row["seconds"]) if row["seconds"] else 0.0,
                "error": row["error"] or None,
                "version": version,
            }
        )
    return trials


def plain(text):
    """A cell of the CSV as JSON would have it."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def main(old, new):
    """Convert every run and every trial."""
    by_method, keys = {}, set()
    for path in sorted(old.glob("store/*/*/*.json")):
        record = convert_run(json.loads(path.read_text()))
        assert record["key"] not in keys, path
        keys.add(record["key"])
        by_method.setdefault(record["method"], []).append(record)
    for method, records in by_method.items():
        write_records(new / "runs" / f"{method}.parquet", records)
    trials = [t for path in sorted(old.glob("tuning/*.yaml")) for t in convert_search(path)]
    write_records(new / PUBLISHED, trials)
    print(len(keys), "runs,", len(trials), "trials")


main(Path(sys.argv[1]), Path(sys.argv[2]))
