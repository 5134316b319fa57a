"""Every dataset by name: `load_dataset("cora")`.

The loaders return one kind of thing, a `torch_geometric.data.Data` with

- `x`: float32 [n, d], as published (not normalised);
- `edge_index`: int64 [2, E], sorted, no duplicates, no self-loops, both directions of
  every edge unless `directed`;
- `y`: int64 [n], -1 = unknown;
- `train_mask`, `val_mask`, `test_mask`: bool [n], disjoint;
- `name`, `class_names`, `directed`, `split`;
- `links`: int64 [2, E], the edges in their published direction, where there is one.
"""

from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from elugcn.data.datasets.amazon import load_amazon
from elugcn.data.datasets.embedded import load_digits, load_karate
from elugcn.data.datasets.facebook import load_facebook
from elugcn.data.datasets.files import find_file
from elugcn.data.datasets.planetoid import load_planetoid
from elugcn.data.datasets.registry import (
    DatasetInfo,
    dataset_info,
    is_on_disk,
    list_datasets,
)
from elugcn.data.datasets.sbm import load_sbm
from elugcn.data.splits import draw_labels
from elugcn.data.datasets.wikipedia import load_wikipedia
from elugcn.errors import InputError

__all__ = [
    "DatasetInfo",
    "dataset_info",
    "is_on_disk",
    "list_datasets",
    "load_dataset",
]


def load_dataset(
    name: str,
    split: int = 0,
    data_dir: str | Path | None = None,
    *,
    labels_per_class: int | None = None,
    directed: bool = False,
    download: bool = True,
    **options: Any,
) -> Data:
    """Load a dataset, downloading it into the user's cache if need be.

    Args:
        name: one of `list_datasets()`.
        split: number of a published split, or seed of a drawn one.
        data_dir: directory that has the raw files; else $ELUGCN_DATA, else the cache.
        labels_per_class: train on this many random nodes per class instead, drawn with
            seed `split` among the labelled nodes outside validation and test.
        directed: keep edges in their published direction, where there is one.
        download: whether missing files may be fetched.
        **options: further options of the dataset (see `DatasetInfo.options`).

    Returns:
        The graph, as described at the top of this module.

    Raises:
        InputError: an option is wrong, or a file is missing or damaged.
    """
    info = dataset_info(name)
    split = _whole(split, "split")
    if labels_per_class is not None:
        labels_per_class = _whole(labels_per_class, "labels_per_class")
    _check_request(info, split, labels_per_class is not None, directed, options)

    find = partial(find_file, data_dir=data_dir, download=download)
    match info.family:
        case "planetoid":
            data = load_planetoid(info.name, find)
        case "amazon":
            data = load_amazon(info.name, split, find)
        case "wikipedia":
            data = load_wikipedia(info.name, split, directed, find)
        case "facebook":
            data = load_facebook(info.name, split, find)
        case "digits":
            data = load_digits(split)
        case "karate":
            data = load_karate(split)
        case _:
            data = load_sbm(split, **options)

    known = data.y >= 0
    if "label_known" in data:
        known = data.label_known
        del data.label_known
    if labels_per_class is not None:
        eligible = (known & ~data.val_mask & ~data.test_mask).numpy()
        y: np.ndarray[Any, np.dtype[np.int64]] = data.y.numpy()
        train = draw_labels(y, labels_per_class, split, eligible, data.class_names)
        data.train_mask = torch.from_numpy(train)
    data.name = info.name
    data.split = split
    return data


def _whole(value: object, option: str) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
        raise InputError(f"{option} must be a whole number, 0 or more, not {value!r}")
    return int(value)


def _check_request(
    info: DatasetInfo, split: int, drawn: bool, directed: bool, options: dict[str, Any]
) -> None:
    for option in options:
        if option not in info.options:
            known = ", ".join(info.options) or "none"
            raise InputError(
                f"unknown option {option!r} for dataset {info.name}; known: {known}"
            )
    if directed and not info.directed_files:
        raise InputError(f"dataset {info.name} has no directed version (directed=True)")
    if not info.fixed_splits or split < info.n_splits:
        return
    if info.n_splits > 1:
        raise InputError(
            f"split must be 0 to {info.n_splits - 1} for dataset {info.name}, whose "
            f"splits are published, not {split}"
        )
    if not drawn:
        raise InputError(
            f"split must be 0 for dataset {info.name}, which has one published split, "
            f"not {split} (with labels_per_class, any split is a random draw)"
        )
