"""The accuracies that the paper prints, by our names of methods and datasets."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources

METHODS = {
    "elu-gcn": "ELU-GCN",
    "elu-gcn-paper": "ELU-GCN",
    "gcn": "GCN",
    "gat": "GAT",
    "appnp": "APPNP",
    "gprgnn": "GPRGNN",
    "pcnet": "PCNet",
    "gcn-lpa": "GCN-LPA",
    "neuralsparse": "NeuralSparse-GCN",
    "ptdnet": "PTDNet-GCN",
    "cogsl": "CoGSL",
    "nodeformer": "NodeFormer",
    "gsr": "GSR",
    "bagcn": "BAGCN",
}
DATASETS = {
    "caltech36": "caltech",
    "hamilton46": "hamilton",
    "tulane29": "tulane",
    "uf21": "uf",
}
NOTES = {
    "caltech36": "the paper's Caltech row prints the sizes of Northeastern19",
}
# The ablation prints the rows of the first table again, and one of its own.
_TABLES = ("classification", "social", "ablation")


@dataclass(frozen=True)
class Published:
    """A cell of the paper's tables in percent; ``mean`` None: out of memory."""

    mean: float | None
    std: float | None


def published(method: str, dataset: str) -> Published | None:
    """What the paper prints for a method on a dataset; None if nothing."""
    name = METHODS.get(method, method)
    return _results().get((name, DATASETS.get(dataset, dataset)))


@cache
def _results() -> dict[tuple[str, str], Published]:
    path = resources.files("elugcn") / "data_files" / "paper_results.csv"
    rows = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
    return {
        (row["method"], row["dataset"]): Published(
            None if row["mean"] == "OOM" else float(row["mean"]),
            float(row["std"]) if row["std"] else None,
        )
        for row in rows
        if row["table"] in _TABLES
    }
