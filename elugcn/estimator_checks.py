"""What the estimator's own parameters may be; the method checks its options itself."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

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
