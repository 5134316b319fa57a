"""A run directory: what was asked, what came out, and on what machine.

``config.yaml`` · ``metrics.json`` · ``predictions.csv`` · ``model.safetensors`` and
``model.json`` · ``history.csv`` · ``environment.json`` · ``report.html``. Whole or
absent.
"""

from __future__ import annotations

import csv
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TextIO

import torch
import yaml

from elugcn import __version__, compiled
from elugcn.atomic import whole_directory
from elugcn.config import SCHEMA, as_plain
from elugcn.fitting import Fitted
from elugcn.storage import json_safe, save_fitted

PREDICTIONS = "predictions.csv"
REPORT = "report.html"
SPLIT_NAMES = {"train_mask": "train", "val_mask": "val", "test_mask": "test"}
_PACKAGES = ("torch", "torch_geometric", "numpy", "scipy", "scikit-learn")


def default_out(dataset: str, method: str, seed: int) -> Path:
    """``runs/<dataset>-<method>-<seed>-<time>``, a name that is not taken yet."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    path = Path("runs") / f"{dataset}-{method}-{seed}-{stamp}"
    number = 2
    while path.exists():
        path = path.with_name(f"{dataset}-{method}-{seed}-{stamp}-{number}")
        number += 1
    return path


def metrics_of(fitted: Fitted, dataset: str, split: int, out: Path) -> dict[str, Any]:
    """The numbers of a run, as ``--json`` prints them; accuracies in [0, 1]."""
    data, prediction = fitted.data, fitted.prediction
    use = prediction.utilization
    stages = ("pretrain", "utilization", "graph", "train", "total")
    seconds = {s: round(prediction.seconds.get(s, 0.0), 4) for s in stages}
    return {
        "dataset": dataset,
        "method": fitted.method,
        "split": split,
        "seed": fitted.seed,
        "n_nodes": int(data.num_nodes),
        "n_edges": data.edge_index.size(1) // (1 if data.directed else 2),
        "n_classes": len(fitted.classes),
        "epochs": prediction.epochs,
        "train_accuracy": fitted.accuracy(data.train_mask),
        "val_accuracy": fitted.accuracy(data.val_mask),
        "test_accuracy": fitted.accuracy(data.test_mask),
        "elu_fraction": None if use is None else use.elu_fraction,
        "unreachable_fraction": None if use is None else use.unreachable_fraction,
        "graph_mode": prediction.graph_mode,
        "seconds": seconds,
        "peak_rss_mb": round(peak_rss_mb(), 1),
        "threads": fitted.threads,
        "device": fitted.device,
        "out": str(out),
        "details": prediction.facts,
        "notes": list(fitted.notes),
    }


def write_run(
    fitted: Fitted,
    metrics: dict[str, Any],
    out: Path,
    graph: dict[str, Any],
    finish: Callable[[Path], None] | None = None,
) -> None:
    """Write every file of the run to a temporary name, then rename.

    ``graph`` is what the user said about the graph, so that the run can be repeated;
    ``finish`` may add a file made from the others before the run appears.
    """
    with whole_directory(out) as folder:
        config = {
            "schema": SCHEMA,
            "method": fitted.method,
            "dataset": metrics["dataset"],
            "split": metrics["split"],
            "seed": fitted.seed,
            "graph": graph,
            "options": as_plain(fitted.config),
        }
        text = yaml.safe_dump(config, sort_keys=False, allow_unicode=True)
        (folder / "config.yaml").write_text(text, encoding="utf-8")
        write_json(folder / "metrics.json", metrics)
        write_json(folder / "environment.json", environment(fitted.threads))
        predictions = folder / PREDICTIONS
        with predictions.open("w", newline="", encoding="utf-8") as file:
            write_predictions(fitted, file)
        write_history(fitted.prediction.history, folder / "history.csv")
        save_fitted(fitted, folder)
        if finish is not None:
            finish(folder)


def prediction_rows(fitted: Fitted) -> list[list[str]]:
    """One row per node: id, prediction, confidence, utilization, split."""
    data, prediction = fitted.data, fitted.prediction
    n = int(data.num_nodes)
    confidence, best = prediction.proba.max(dim=1)
    names = [str(c) for c in class_names(fitted)]
    use = prediction.utilization
    status = [""] * n if use is None else use.names()
    split = [""] * n
    for mask, name in SPLIT_NAMES.items():
        for i in data[mask].nonzero().squeeze(1).tolist():
            split[i] = name
    ids = getattr(data, "node_ids", None) or [str(i) for i in range(n)]
    return [
        [ids[i], names[b], f"{c:.6f}", status[i], split[i]]
        for i, (b, c) in enumerate(zip(best.tolist(), confidence.tolist(), strict=True))
    ]


def class_names(fitted: Fitted) -> list[str]:
    """Readable class names: the dataset's where it has them."""
    names = getattr(fitted.data, "class_names", None)
    return list(names) if names else [str(c) for c in fitted.classes]


def write_predictions(fitted: Fitted, file: TextIO) -> None:
    """``predictions.csv``."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["id", "prediction", "confidence", "utilization", "split"])
    writer.writerows(prediction_rows(fitted))


def write_history(history: list[dict[str, float]], path: Path) -> None:
    """``history.csv``: one line per epoch of the selected model."""
    columns = ["epoch", "loss", "val_accuracy", "val_loss"]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        for record in history:
            values = [record.get(c, float("nan")) for c in columns]
            writer.writerow([int(values[0]), *(f"{v:.6g}" for v in values[1:])])


def write_json(path: Path, content: dict[str, Any]) -> None:
    """JSON with a final newline and null for missing numbers."""
    text = json.dumps(json_safe(content), indent=2, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def environment(n_threads: int) -> dict[str, Any]:
    """Versions, threads and commit, so that a number can be traced."""
    packages = {"elugcn": __version__}
    for name in _PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:  # pragma: no cover - all are dependencies
            continue
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": packages,
        "threads": n_threads,
        "cores": os.cpu_count(),
        "cuda": torch.cuda.is_available(),
        "compiled": compiled.available(),
        "commit": commit(),
        "date": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }


def commit() -> str | None:
    """The git commit of the source tree the package runs from, if there is one."""
    here = Path(__file__).resolve().parent.parent
    if not (here / ".git").exists():
        return None
    command = ["git", "-C", str(here), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def peak_rss_mb() -> float:
    """The most memory this process has held, in MB.

    Linux counts what the parent held when it started this process into the peak that
    ``getrusage`` reports; ``VmHWM`` is this program's alone.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 2**10
    if sys.platform == "win32":  # pragma: no cover
        import psutil

        return float(psutil.Process().memory_info().peak_wset) / 2**20
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10
