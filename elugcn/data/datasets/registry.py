"""What datasets there are, and what is known of each without reading it."""

import csv
import difflib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from elugcn.data.datasets.files import locate
from elugcn.data.datasets.sbm import SBMOptions
from elugcn.errors import InputError

_PLANETOID_PARTS = ("x", "y", "tx", "ty", "allx", "ally", "graph", "test.index")


@dataclass(frozen=True, kw_only=True)
class DatasetInfo:
    """What is known of a dataset without reading it.

    Attributes:
        name: The name that ``load_dataset`` takes.
        description: One line.
        family: Which loader reads it.
        source: Where the data was published.
        n_splits: How many splits are reported.
        fixed_splits: Whether the splits are published ones (0 to n_splits - 1), or
            drawn with the number of the split as seed (any number).
        files: What must be on disk, as ``folder/file``.
        has_direction: Whether the edges were published with a direction.
        options: Names of the further options that ``load_dataset`` takes.
        n_nodes: Nodes after cleaning; None if not known, as all figures below.
        n_edges: Undirected edges after cleaning, each counted once.
        n_features: Columns of ``x``.
        n_classes: Number of classes.
        n_train: Training nodes of split 0.
        n_val: Validation nodes of split 0.
        n_test: Test nodes of split 0.
        homophily: Share of the edges that join equal classes, among those whose ends
            both have a class.
    """

    name: str
    description: str
    family: str
    source: str
    n_splits: int = 10
    fixed_splits: bool = False
    files: tuple[str, ...] = ()
    has_direction: bool = False
    options: tuple[str, ...] = ()
    n_nodes: int | None = None
    n_edges: int | None = None
    n_features: int | None = None
    n_classes: int | None = None
    n_train: int | None = None
    n_val: int | None = None
    n_test: int | None = None
    homophily: float | None = None


_GITHUB = "https://github.com"
_FAMILIES: dict[str, dict[str, Any]] = {
    "planetoid": {
        "source": f"{_GITHUB}/kimiyoung/planetoid",
        "n_splits": 1,
        "fixed_splits": True,
    },
    "amazon": {"source": f"{_GITHUB}/shchur/gnn-benchmark"},
    "wikipedia": {
        "source": f"{_GITHUB}/yandex-research/heterophilous-graphs",
        "fixed_splits": True,
        "has_direction": True,
    },
    "facebook": {"source": f"{_GITHUB}/sisaman/pyg-datasets"},
    "digits": {"source": "https://scikit-learn.org"},
    "karate": {"source": "https://pytorch-geometric.readthedocs.io"},
    "sbm": {"source": "generated", "options": tuple(SBMOptions.model_fields)},
}


def _files(name: str, family: str) -> tuple[str, ...]:
    if family == "planetoid":
        return tuple(f"planetoid/ind.{name}.{part}" for part in _PLANETOID_PARTS)
    return {
        "amazon": (f"amazon/amazon_electronics_{name}.npz",),
        # Both directions of these links are the edges of the undirected files, whose
        # features, labels and splits are the same.
        "wikipedia": (f"wikipedia/{name}_directed.npz",),
        "facebook": (f"facebook100/{name.capitalize().replace('Uf', 'UF')}.mat",),
    }.get(family, ())


def _read() -> dict[str, DatasetInfo]:
    """The table of the package: names, families, descriptions and figures."""
    with (resources.files("elugcn") / "data_files" / "datasets.csv").open() as file:
        rows = list(csv.DictReader(file))
    known = {}
    for row in rows:
        name, family, about = (row.pop(k) for k in ("name", "family", "description"))
        homophily = row.pop("homophily")
        figures: dict[str, Any] = {k: int(v) for k, v in row.items() if v}
        known[name] = DatasetInfo(
            name=name,
            family=family,
            description=about,
            files=_files(name, family),
            homophily=float(homophily) if homophily else None,
            **figures,
            **_FAMILIES[family],
        )
    return known


_REGISTRY = _read()


def list_datasets() -> list[DatasetInfo]:
    """Every dataset there is, in the order of the documentation."""
    return list(_REGISTRY.values())


def dataset_info(name: str) -> DatasetInfo:
    """What is known of one dataset; upper case and hyphens are accepted."""
    key = str(name).strip().lower().replace("-", "_")
    if key in _REGISTRY:
        return _REGISTRY[key]
    close = difflib.get_close_matches(key, _REGISTRY, n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise InputError(f"unknown dataset {name!r}; known: {', '.join(_REGISTRY)}{hint}")


def is_on_disk(name: str, data_dir: str | Path | None = None) -> bool:
    """Whether loading needs no download: the files exist (contents are not checked)."""
    files = dataset_info(name).files
    return all(locate(relative, data_dir) is not None for relative in files)
