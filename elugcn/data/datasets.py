"""Every dataset by name: `load_dataset("cora")`.

The loaders return one kind of thing, a `torch_geometric.data.Data` with

- `x`: float32 [n, d], as published (not normalised);
- `edge_index`: int64 [2, E], sorted, no duplicates, no self-loops, both directions of
  every edge unless `directed`;
- `y`: int64 [n], -1 = unknown;
- `train_mask`, `val_mask`, `test_mask`: bool [n], disjoint;
- `name`, `class_names`, `directed`, `split`.
"""

import difflib
from dataclasses import dataclass, fields
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from elugcn.data.amazon import amazon_files, load_amazon
from elugcn.data.embedded import load_digits, load_karate
from elugcn.data.facebook import facebook_files, load_facebook
from elugcn.data.files import find_file, locate
from elugcn.data.planetoid import load_planetoid, planetoid_files
from elugcn.data.sbm import SBMOptions, load_sbm
from elugcn.data.splits import draw_labels
from elugcn.data.wikipedia import load_wikipedia, wikipedia_files
from elugcn.errors import InputError


@dataclass(frozen=True, kw_only=True)
class DatasetInfo:
    """What is known of a dataset without reading it.

    Attributes:
        name: the name `load_dataset` takes.
        description: one line.
        family: which loader reads it.
        files: what must be on disk, as `folder/file`; empty if nothing.
        n_splits: how many splits are reported.
        source: where the data was published.
        fixed_splits: whether the splits are published ones (0 to n_splits - 1), or
            drawn with the number of the split as seed (any number).
        directed_files: the files of the directed version; empty if there is none.
        options: names of the further options `load_dataset` takes.
        n_nodes: nodes after cleaning; None if not known.
        n_edges: undirected edges after cleaning, each counted once.
        n_features: columns of `x`.
        n_classes: number of classes.
        n_train: training nodes of split 0.
        n_val: validation nodes of split 0.
        n_test: test nodes of split 0.
        homophily: share of edges whose ends have the same class, among the edges
            whose ends both have a class.
    """

    name: str
    description: str
    family: str
    files: tuple[str, ...]
    n_splits: int
    source: str
    fixed_splits: bool = False
    directed_files: tuple[str, ...] = ()
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
_PLANETOID = partial(
    DatasetInfo,
    family="planetoid",
    n_splits=1,
    fixed_splits=True,
    source=f"{_GITHUB}/kimiyoung/planetoid",
)
_AMAZON = partial(
    DatasetInfo,
    family="amazon",
    n_splits=10,
    source=f"{_GITHUB}/shchur/gnn-benchmark",
)
_WIKIPEDIA = partial(
    DatasetInfo,
    family="wikipedia",
    n_splits=10,
    fixed_splits=True,
    source=f"{_GITHUB}/yandex-research/heterophilous-graphs",
)
_FACEBOOK = partial(
    DatasetInfo,
    family="facebook",
    n_splits=10,
    source=f"{_GITHUB}/sisaman/pyg-datasets",
)
_SIZES = ("n_nodes", "n_edges", "n_features", "n_classes", "n_train", "n_val", "n_test")


def _sizes(*counts: int) -> dict[str, Any]:
    return dict(zip(_SIZES, counts, strict=True))


_REGISTRY: dict[str, DatasetInfo] = {
    info.name: info
    for info in (
        _PLANETOID(
            name="cora",
            description="machine-learning papers citing each other, by subject",
            files=planetoid_files("cora"),
            homophily=0.810,
            **_sizes(2708, 5278, 1433, 7, 140, 500, 1000),
        ),
        _PLANETOID(
            name="citeseer",
            description="computer-science papers citing each other, by subject",
            files=planetoid_files("citeseer"),
            homophily=0.736,
            **_sizes(3327, 4552, 3703, 6, 120, 500, 1000),
        ),
        _PLANETOID(
            name="pubmed",
            description="diabetes papers citing each other, by type of diabetes",
            files=planetoid_files("pubmed"),
            homophily=0.802,
            **_sizes(19717, 44324, 500, 3, 60, 500, 1000),
        ),
        _AMAZON(
            name="computers",
            description="Amazon computers bought together, by category",
            files=amazon_files("computers"),
            homophily=0.777,
            **_sizes(13381, 245778, 767, 10, 200, 300, 12881),
        ),
        _AMAZON(
            name="photo",
            description="Amazon photo equipment bought together, by category",
            files=amazon_files("photo"),
            homophily=0.827,
            **_sizes(7487, 119043, 745, 8, 160, 240, 7087),
        ),
        _WIKIPEDIA(
            name="chameleon",
            description="Wikipedia pages on chameleons, by traffic (repeats pages)",
            files=wikipedia_files("chameleon"),
            directed_files=wikipedia_files("chameleon", directed=True),
            homophily=0.230,
            **_sizes(2277, 31371, 2325, 5, 1092, 729, 456),
        ),
        _WIKIPEDIA(
            name="squirrel",
            description="Wikipedia pages on squirrels, by traffic (repeats pages)",
            files=wikipedia_files("squirrel"),
            directed_files=wikipedia_files("squirrel", directed=True),
            homophily=0.222,
            **_sizes(5201, 198353, 2089, 5, 2496, 1664, 1041),
        ),
        _WIKIPEDIA(
            name="chameleon_filtered",
            description="chameleon without its repeated pages",
            files=wikipedia_files("chameleon_filtered"),
            directed_files=wikipedia_files("chameleon_filtered", directed=True),
            homophily=0.236,
            **_sizes(890, 8854, 2325, 5, 409, 287, 194),
        ),
        _WIKIPEDIA(
            name="squirrel_filtered",
            description="squirrel without its repeated pages",
            files=wikipedia_files("squirrel_filtered"),
            directed_files=wikipedia_files("squirrel_filtered", directed=True),
            homophily=0.207,
            **_sizes(2223, 46998, 2089, 5, 1053, 718, 452),
        ),
        _FACEBOOK(
            name="caltech36",
            description="Facebook friendships at Caltech, by student/faculty flag",
            files=facebook_files("caltech36"),
            homophily=0.759,
            **_sizes(769, 16656, 592, 4, 461, 154, 154),
        ),
        _FACEBOOK(
            name="hamilton46",
            description="Facebook friendships at Hamilton, by student/faculty flag",
            files=facebook_files("hamilton46"),
            homophily=0.811,
            **_sizes(2314, 96394, 1176, 6, 1388, 463, 463),
        ),
        _FACEBOOK(
            name="tulane29",
            description="Facebook friendships at Tulane, by student/faculty flag",
            files=facebook_files("tulane29"),
            homophily=0.804,
            **_sizes(7752, 283918, 3021, 6, 4651, 1550, 1550),
        ),
        _FACEBOOK(
            name="northeastern19",
            description="Facebook friendships at Northeastern, by student/faculty flag",
            files=facebook_files("northeastern19"),
            homophily=0.875,
            **_sizes(13882, 381934, 3210, 6, 8328, 2776, 2776),
        ),
        _FACEBOOK(
            name="uf21",
            description="Facebook friendships at Florida (bring your own UF21.mat)",
            files=facebook_files("uf21"),
        ),
        DatasetInfo(
            name="digits",
            description="images of handwritten digits, 10 nearest neighbours",
            family="digits",
            files=(),
            n_splits=10,
            source="https://scikit-learn.org",
            homophily=0.956,
            **_sizes(1797, 12340, 64, 10, 50, 30, 1717),
        ),
        DatasetInfo(
            name="karate",
            description="Zachary's karate club, four communities",
            family="karate",
            files=(),
            n_splits=10,
            source="https://pytorch-geometric.readthedocs.io",
            homophily=0.756,
            **_sizes(34, 78, 34, 4, 4, 4, 26),
        ),
        DatasetInfo(
            name="sbm",
            description="contextual stochastic block model, drawn to order",
            family="sbm",
            files=(),
            n_splits=10,
            source="generated",
            options=tuple(field.name for field in fields(SBMOptions)),
            homophily=0.800,
            **_sizes(1000, 5000, 64, 5, 50, 50, 900),
        ),
    )
}


def list_datasets() -> list[DatasetInfo]:
    """Every dataset there is, in the order of the documentation."""
    return list(_REGISTRY.values())


def dataset_info(name: str) -> DatasetInfo:
    """What is known of one dataset; upper case and hyphens are accepted.

    Raises:
        InputError: there is no such dataset.
    """
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
