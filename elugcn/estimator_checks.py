"""What the estimator may be given; the method checks its options itself."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from torch_geometric.data import Data
from torch_geometric.data.data import BaseData

from elugcn.data.holdout import SPLITS
from elugcn.data.registry import dataset_info
from elugcn.errors import InputError
from elugcn.fitting import MAX_SEED


def seed_of(random_state: Any) -> int:
    """The seed; None draws one."""
    if random_state is None:
        return int(np.random.default_rng().integers(MAX_SEED))
    if not is_whole(random_state) or not 0 <= random_state <= MAX_SEED:
        raise InputError(
            f"random_state must be None or a whole number from 0 to {MAX_SEED}; "
            f"got {random_state!r}"
        )
    return int(random_state)


def preset_of(name: str | None) -> str | None:
    """The dataset whose tuned values are asked for; it must be one."""
    if name is None:
        return None
    try:
        return dataset_info(name).name
    except InputError as error:
        raise InputError(f"preset: {error}") from None


def check_parameters(
    n_neighbors: Any, n_threads: Any, validation_fraction: Any, options: Any
) -> None:
    """Refuse values of a kind that nothing later would name."""
    for name, value in (("n_neighbors", n_neighbors), ("n_threads", n_threads)):
        fine = is_whole(value) and value >= 1
        if not fine and (name, value) != ("n_threads", None):
            raise InputError(f"{name} must be a whole number from 1 on; got {value!r}")
    share = validation_fraction
    if not isinstance(share, Real) or not 0 <= float(share) < 1:
        raise InputError(
            f"validation_fraction must be a number from 0 to below 1; got {share!r}"
        )
    if options is not None and not isinstance(options, Mapping):
        raise InputError(f"options must map names to values; got {options!r}")


def is_whole(value: Any) -> bool:
    """Whether it is an integer, Python's or numpy's."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def column_names(X: Any) -> list[str] | None:
    """Names of the columns of a data frame, if all are strings, as scikit-learn's."""
    columns = getattr(X, "columns", None)
    if columns is None or not hasattr(X, "to_numpy"):
        return None
    names = list(columns)
    return names if all(isinstance(name, str) for name in names) else None


def check_column_names(found: list[str] | None, fitted: Sequence[str] | None) -> None:
    """Refuse a frame whose columns are others, or stand in another order."""
    if found is None or fitted is None or found == list(fitted):
        return
    for expected, name in zip(fitted, found, strict=False):
        if expected != name:
            moved = "its columns stand in another order" if name in fitted else ""
            raise InputError(
                f"X has a column {name!r} where the model was fitted with "
                f"{expected!r}" + (f": {moved}" if moved else "")
            )
    # More or fewer: said by their number.


def without_labels(data: Data) -> Data:
    """The graph to predict on: what it says of classes and splits is not read."""
    counted = data.x is not None or data.get("num_nodes", None) is not None
    if not counted:
        return data  # labels tell how many nodes there are
    bare = copy.copy(data)
    for name in ("y", *SPLITS):
        if name in bare:
            bare[name] = None
    return bare


def refuse_other_graphs(X: Any) -> None:
    """Several graphs, or a graph of several kinds of nodes, are none of ours."""
    several = isinstance(X, list | tuple) and X and isinstance(X[0], BaseData)
    if several:
        raise InputError(
            f"X is a list of {len(X)} graphs: expected one; "
            "torch_geometric.data.Batch.from_data_list makes one of them"
        )
    if isinstance(X, BaseData) and not isinstance(X, Data):
        raise InputError(
            f"X is a {type(X).__name__}: expected a Data with one kind of node and "
            "edge, as its to_homogeneous() may make"
        )
