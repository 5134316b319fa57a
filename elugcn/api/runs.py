"""A run directory: what was asked, what came out, and on which machine.

``config.yaml`` · ``metrics.json`` · ``predictions.csv`` · ``model.safetensors`` and
``model.json`` · ``history.csv`` · ``environment.json`` · ``report.html``. It is whole
or absent.
"""

from __future__ import annotations

import csv
import math
import os
import platform
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from itertools import chain, count
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import psutil
import torch
import yaml
from torch import Tensor

from elugcn.api.config_files import SCHEMA
from elugcn.api.files import json_safe, write_json
from elugcn.api.fitting import Fitted, accuracy
from elugcn.api.saving import write_model
from elugcn.atomic import atomic_directory
from elugcn.engine import capabilities
from elugcn.methods.metrics import is_uneven

CONFIG, METRICS, ENVIRONMENT = "config.yaml", "metrics.json", "environment.json"
PREDICTIONS, HISTORY, REPORT = "predictions.csv", "history.csv", "report.html"
SPLIT_NAMES = {"train_mask": "train", "val_mask": "val", "test_mask": "test"}
_STAGES = ("pretrain", "utilization", "graph", "train", "total")
_PACKAGES = ("elugcn", "torch", "torch_geometric", "numpy", "scipy", "scikit-learn")


def default_out(dataset: str, method: str, seed: int) -> Path:
    """``runs/<dataset>-<method>-<seed>-<time>``, a directory that does not exist."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    name = f"{dataset}-{method}-{seed}-{stamp}"
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    return next(path for path in map(Path("runs").joinpath, names) if not path.exists())


def metrics_of(fitted: Fitted, dataset: str, split: int, out: Path) -> dict[str, Any]:
    """The numbers of a run, as ``--json`` prints them. Accuracies are in [0, 1]."""
    data, result = fitted.data, fitted.result
    use = result.label_utilization
    masks = {name: data[mask] & (data.y >= 0) for mask, name in SPLIT_NAMES.items()}

    def scores(metric: str | None = None) -> dict[str, float | None]:
        found = {name: fitted.score(mask, metric) for name, mask in masks.items()}
        return found | {"val": fitted.val_score(metric)}

    return {
        "dataset": dataset,
        "method": fitted.method,
        "split": split,
        "seed": fitted.seed,
        "n_nodes": int(data.num_nodes),
        "n_edges": fitted.graph_summary.num_edges // (1 if data.directed else 2),
        "n_classes": len(fitted.classes),
        "epochs": result.epochs,
        **{f"{name}_accuracy": found for name, found in scores("accuracy").items()},
        "metric": fitted.metric,
        "class_weight": fitted.class_weight,
        **{f"{name}_score": found for name, found in scores().items()},
        **{
            f"{name}_balanced_accuracy": found
            for name, found in scores("balanced_accuracy").items()
        },
        # How many labelled nodes each of these was measured on.
        "measured_on": {name: int(mask.sum()) for name, mask in masks.items()}
        | {"val": len(fitted.validation()[0])},
        "uneven_classes": is_uneven(data.y, data.train_mask),
        "recall": class_recall(fitted, masks["test" if masks["test"].any() else "val"]),
        "elu_fraction": None if use is None else use.elu_fraction,
        "unreachable_fraction": None if use is None else use.unreachable_fraction,
        "graph_mode": result.graph_mode,
        "seconds": {s: round(result.seconds.get(s, 0.0), 4) for s in _STAGES},
        "peak_rss_mb": round(peak_rss_mb(), 1),
        "threads": fitted.threads,
        "device": fitted.device,
        "out": str(out),
        "details": result.metadata,
        # A node without a prediction counts as wrong.
        "baselines": {
            baseline: {
                f"{name}_accuracy": accuracy(classes, data.y, data[f"{name}_mask"])
                for name in ("val", "test")
            }
            for baseline, classes in fitted.baselines.items()
        },
        "notes": list(fitted.notes),
    }


def class_recall(fitted: Fitted, mask: Tensor) -> dict[str, float]:
    """Share of the nodes of each class that are found, by the name of the class."""
    names, y = class_names(fitted), fitted.data.y
    found = (fitted.accuracy(mask & (y == k)) for k in range(len(names)))
    return {k: r for k, r in zip(names, found, strict=True) if r is not None}


def write_run(
    fitted: Fitted,
    metrics: Mapping[str, Any],
    out: Path,
    graph: Mapping[str, Any],
    finish: Callable[[Path], None] | None = None,
) -> None:
    """Write a run to a directory that does not exist or is empty.

    ``graph`` are options that load the graph again; ``finish`` adds files that are made
    from the others.
    """
    with atomic_directory(out) as folder:
        config = {
            "schema": SCHEMA,
            "method": fitted.method,
            "dataset": metrics["dataset"],
            "split": metrics["split"],
            "seed": fitted.seed,
            "metric": fitted.metric,
            "class_weight": fitted.class_weight,
            "graph": json_safe(graph),
            "options": fitted.config.model_dump(mode="json"),
        }
        text = yaml.safe_dump(config, sort_keys=False, allow_unicode=True)
        (folder / CONFIG).write_text(text, encoding="utf-8")
        write_json(folder / METRICS, metrics)
        write_json(folder / ENVIRONMENT, environment(fitted.threads))
        write_model(fitted, folder)
        with (folder / PREDICTIONS).open("w", newline="", encoding="utf-8") as file:
            write_predictions(fitted, file)
        with (folder / HISTORY).open("w", newline="", encoding="utf-8") as file:
            _write_history(fitted.result.history, file)
        if finish is not None:
            finish(folder)


def class_names(fitted: Fitted) -> list[str]:
    """Name of each class: the dataset's, where it has them."""
    names = getattr(fitted.data, "class_names", None)
    return [str(name) for name in (names or fitted.classes)]


def write_predictions(fitted: Fitted, file: TextIO) -> None:
    """One row per node: id, prediction, confidence, utilization, split."""
    data, use = fitted.data, fitted.result.label_utilization
    n = int(data.num_nodes)
    confidence, best = fitted.proba.max(dim=1)
    names = class_names(fitted)
    split = np.full(n, "", dtype=object)
    for mask, name in SPLIT_NAMES.items():
        split[data[mask].numpy(force=True)] = name
    columns = {
        "id": getattr(data, "node_ids", None) or range(n),
        "prediction": [names[c] for c in best.tolist()],
        "confidence": [f"{p:.6f}" for p in confidence.tolist()],
        "utilization": [""] * n if use is None else use.names(),
        "split": split,
    }
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))


def _write_history(history: Sequence[Mapping[str, float]], file: TextIO) -> None:
    columns = ["loss", "val_accuracy", "val_loss"]
    columns += ["val_score"] if any("val_score" in one for one in history) else []
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["epoch", *columns])
    for record in history:
        values = (f"{record.get(name, math.nan):.6g}" for name in columns)
        writer.writerow([int(record["epoch"]), *values])


def environment(n_threads: int) -> dict[str, Any]:
    """Versions, hardware and commit: what a number may depend on."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: version(name) for name in _PACKAGES},
        "threads": n_threads,
        "cores": os.cpu_count(),
        "cuda": torch.cuda.is_available(),
        "engine": capabilities(),
        "commit": _commit(),
        "date": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }


def _commit() -> str | None:
    """The git commit of the source tree that the package runs from."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def peak_rss_mb() -> float:
    """The most memory that this process has held, in MB."""
    status = Path("/proc/self/status")
    if status.exists():
        # getrusage also counts what the parent held when it started this process.
        for line in status.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 2**10
    memory: Any = psutil.Process().memory_info()
    return float(getattr(memory, "peak_wset", memory.rss)) / 2**20
