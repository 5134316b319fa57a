"""What datasets there are, and what is known of each without reading it."""

import difflib
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

from elugcn.data.datasets.amazon import amazon_files
from elugcn.data.datasets.facebook import facebook_files
from elugcn.data.datasets.files import locate
from elugcn.data.datasets.planetoid import planetoid_files
from elugcn.data.datasets.sbm import SBMOptions
from elugcn.data.datasets.wikipedia import wikipedia_files
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


def _figures(*counts: int, homophily: float) -> dict[str, Any]:
    parts = ("nodes", "edges", "features", "classes", "train", "val", "test")
    sizes = {f"n_{part}": count for part, count in zip(parts, counts, strict=True)}
    return {**sizes, "homophily": homophily}


def _published(
    name: str,
    list_files: Callable[[str], tuple[str, ...]],
    list_directed: Callable[[str], tuple[str, ...]] | None = None,
    **about: Any,
) -> DatasetInfo:
    directed = () if list_directed is None else list_directed(name)
    files = list_files(name)
    return DatasetInfo(name=name, files=files, directed_files=directed, **about)


_planetoid = partial(
    _published,
    list_files=planetoid_files,
    family="planetoid",
    n_splits=1,
    fixed_splits=True,
    source="https://github.com/kimiyoung/planetoid",
)
_amazon = partial(
    _published,
    list_files=amazon_files,
    family="amazon",
    n_splits=10,
    source="https://github.com/shchur/gnn-benchmark",
)
_wikipedia = partial(
    _published,
    list_files=wikipedia_files,
    list_directed=wikipedia_files,
    family="wikipedia",
    n_splits=10,
    fixed_splits=True,
    source="https://github.com/yandex-research/heterophilous-graphs",
)
_facebook = partial(
    _published,
    list_files=facebook_files,
    family="facebook",
    n_splits=10,
    source="https://github.com/sisaman/pyg-datasets",
)

_REGISTRY: dict[str, DatasetInfo] = {
    info.name: info
    for info in (
        _planetoid(
            "cora",
            description="machine-learning papers citing each other, by subject",
            **_figures(2708, 5278, 1433, 7, 140, 500, 1000, homophily=0.810),
        ),
        _planetoid(
            "citeseer",
            description="computer-science papers citing each other, by subject",
            **_figures(3327, 4552, 3703, 6, 120, 500, 1000, homophily=0.736),
        ),
        _planetoid(
            "pubmed",
            description="diabetes papers citing each other, by type of diabetes",
            **_figures(19717, 44324, 500, 3, 60, 500, 1000, homophily=0.802),
        ),
        _amazon(
            "computers",
            description="Amazon computers bought together, by category",
            **_figures(13381, 245778, 767, 10, 200, 300, 12881, homophily=0.777),
        ),
        _amazon(
            "photo",
            description="Amazon photo equipment bought together, by category",
            **_figures(7487, 119043, 745, 8, 160, 240, 7087, homophily=0.827),
        ),
        _wikipedia(
            "chameleon",
            description="Wikipedia pages on chameleons, by traffic (repeats pages)",
            **_figures(2277, 31371, 2325, 5, 1092, 729, 456, homophily=0.230),
        ),
        _wikipedia(
            "squirrel",
            description="Wikipedia pages on squirrels, by traffic (repeats pages)",
            **_figures(5201, 198353, 2089, 5, 2496, 1664, 1041, homophily=0.222),
        ),
        _wikipedia(
            "chameleon_filtered",
            description="chameleon without its repeated pages",
            **_figures(890, 8854, 2325, 5, 409, 287, 194, homophily=0.236),
        ),
        _wikipedia(
            "squirrel_filtered",
            description="squirrel without its repeated pages",
            **_figures(2223, 46998, 2089, 5, 1053, 718, 452, homophily=0.207),
        ),
        _facebook(
            "caltech36",
            description="Facebook friendships at Caltech, by student/faculty flag",
            **_figures(769, 16656, 592, 4, 461, 154, 154, homophily=0.759),
        ),
        _facebook(
            "hamilton46",
            description="Facebook friendships at Hamilton, by student/faculty flag",
            **_figures(2314, 96394, 1176, 6, 1388, 463, 463, homophily=0.811),
        ),
        _facebook(
            "tulane29",
            description="Facebook friendships at Tulane, by student/faculty flag",
            **_figures(7752, 283918, 3021, 6, 4651, 1550, 1550, homophily=0.804),
        ),
        _facebook(
            "northeastern19",
            description="Facebook friendships at Northeastern, by student/faculty flag",
            **_figures(13882, 381934, 3210, 6, 8328, 2776, 2776, homophily=0.875),
        ),
        _facebook(
            "uf21",
            description="Facebook friendships at Florida (bring your own UF21.mat)",
        ),
        DatasetInfo(
            name="digits",
            description="images of handwritten digits, 10 nearest neighbours",
            family="digits",
            files=(),
            n_splits=10,
            source="https://scikit-learn.org",
            **_figures(1797, 12340, 64, 10, 50, 30, 1717, homophily=0.956),
        ),
        DatasetInfo(
            name="karate",
            description="Zachary's karate club, four communities",
            family="karate",
            files=(),
            n_splits=10,
            source="https://pytorch-geometric.readthedocs.io",
            **_figures(34, 78, 34, 4, 4, 4, 26, homophily=0.756),
        ),
        DatasetInfo(
            name="sbm",
            description="contextual stochastic block model, drawn to order",
            family="sbm",
            files=(),
            n_splits=10,
            source="generated",
            options=tuple(field.name for field in fields(SBMOptions)),
            **_figures(1000, 5000, 64, 5, 50, 50, 900, homophily=0.800),
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
