"""Datasets by name: ``load_dataset("cora")``.

Every dataset is a ``torch_geometric.data.Data`` with

- ``x``: float32 [n, d], as published (not scaled);
- ``edge_index``: int64 [2, E], sorted, distinct, without self-loops, in both directions
  unless ``directed``;
- ``y``: int64 [n], -1 where unknown;
- ``train_mask``, ``val_mask``, ``test_mask``: bool [n], disjoint;
- ``name``, ``class_names``, ``directed``, ``split``;
- ``links``: int64 [2, E], the edges in their published direction, where there is one.
"""

from numbers import Integral
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from elugcn.data.datasets import readers
from elugcn.data.datasets.files import find_file
from elugcn.data.datasets.registry import (
    DatasetInfo,
    dataset_info,
    is_on_disk,
    list_datasets,
)
from elugcn.data.datasets.sbm import draw_sbm
from elugcn.data.splits import draw_per_class, generator
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
    """Load a dataset, downloading it into the user's cache if needed.

    Args:
        name: One of ``list_datasets()``.
        split: Number of a published split, or seed of a drawn one.
        data_dir: Directory with the raw files; else $ELUGCN_DATA, else the cache.
        labels_per_class: Train on this many random nodes per class instead, drawn with
            seed ``split`` among the labelled nodes outside validation and test.
        directed: Treat edges as directed, where they were published so.
        download: Whether missing files may be downloaded.
        **options: Further options of the dataset (see ``DatasetInfo.options``).
    """
    info = dataset_info(name)
    split = _whole("split", split, 0)
    if labels_per_class is not None:
        labels_per_class = _whole("labels_per_class", labels_per_class, 1)
    _check_request(info, split, labels_per_class is not None, directed, options)

    paths = [find_file(relative, data_dir, download) for relative in info.files]
    match info.family:
        case "planetoid":
            data = readers.read_planetoid(info.name, *paths)
        case "wikipedia":
            data = readers.read_wikipedia(paths[0], split, directed)
        case "amazon":
            data = readers.read_amazon(paths[0], split)
        case "facebook":
            data = readers.read_facebook(paths[0], split)
        case "development":
            data = readers.read_development(paths[0], split)
        case "digits":
            data = readers.read_digits(split)
        case "karate":
            data = readers.read_karate(split)
        case _:
            data = draw_sbm(split, **options)
    data.name, data.split = info.name, split

    known = data.pop("label_known") if "label_known" in data else data.y >= 0
    if labels_per_class is not None:
        eligible = (known & ~data.val_mask & ~data.test_mask).numpy()
        rng, names = generator(split, "labels"), data.class_names
        what, y = "labels_per_class", data.y.numpy()
        train = draw_per_class(y, labels_per_class, eligible, rng, names, what)
        data.train_mask = torch.from_numpy(train)
    return data


def _whole(name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"{name}={value!r}: expected a whole number, {least} or more")
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
    if directed and not info.has_direction:
        raise InputError(f"directed=True: dataset {info.name} has no directed version")
    if not info.fixed_splits or split < info.n_splits:
        return
    found = f"split={split}: dataset {info.name} has"
    last = info.n_splits - 1
    if last:
        published = f"{last + 1} published splits"
        raise InputError(f"{found} {published}; expected 0 to {last}")
    if not drawn:
        raise InputError(
            f"{found} one published split; expected 0 (with labels_per_class, any "
            "split is a random draw)"
        )
