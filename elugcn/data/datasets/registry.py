"""What datasets there are, and what is known of each without reading it."""

import csv
import difflib
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic.dataclasses import dataclass

from elugcn.data.datasets.files import locate
from elugcn.data.datasets.sbm import SBMOptions
from elugcn.errors import InputError

_PLANETOID_PARTS = ("x", "y", "tx", "ty", "allx", "ally", "graph", "test.index")


@dataclass(frozen=True, kw_only=True)
class DatasetInfo:
    """What is known of a dataset without reading it."""

    name: str  # as load_dataset takes it
    family: str  # decides which function reads it
    source: str  # where the data was published
    n_splits: int  # how many splits are reported
    # Whether the splits are published ones (0 to n_splits - 1), or drawn with the
    # number of the split as seed (any number).
    fixed_splits: bool = False
    has_direction: bool = False  # whether the edges were published with a direction
    description: str
    files: tuple[str, ...] = ()  # what must be on disk, as folder/file
    options: tuple[str, ...] = ()  # further options that load_dataset takes
    # None if not known. Each undirected edge is counted once; the splits are those of
    # split 0; homophily is the share of edges between nodes of the same class, among
    # those between nodes with a class.
    n_nodes: int | None = None
    n_edges: int | None = None
    n_features: int | None = None
    n_classes: int | None = None
    n_train: int | None = None
    n_val: int | None = None
    n_test: int | None = None
    homophily: float | None = None


def _read() -> dict[str, DatasetInfo]:
    """The table of the package, in the order of the documentation."""
    known = {}
    with (resources.files("elugcn") / "data_files" / "datasets.csv").open() as file:
        for row in csv.DictReader(file):
            facts: dict[str, Any] = {k: v for k, v in row.items() if v}
            if name := facts.pop("file", ""):
                pickles = tuple(f"{name}.{part}" for part in _PLANETOID_PARTS)
                planetoid = row["family"] == "planetoid"
                facts["files"] = pickles if planetoid else (name,)
            if row["family"] == "sbm":
                facts["options"] = tuple(SBMOptions.model_fields)
            known[row["name"]] = DatasetInfo(**facts)
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
    return all(locate(file, data_dir) for file in dataset_info(name).files)
