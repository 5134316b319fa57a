"""What the experiments that measure a fitted model share: their plan, their sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from elugcn.errors import InputError
from elugcn.evaluation.statistics import Pair, Summary, without_minus_zero
from elugcn_reproduction.experiments.base import (
    Finished,
    Planned,
    Row,
    Scope,
    datasets_of,
    only_methods,
    plan_rows,
)

METHOD = "auto"
QUICK = ("cora", "citeseer")

Measured = Mapping[str, Any]
Number = tuple[float | None, float | None]  # mean and standard deviation


def plan_measured(
    scope: Scope,
    measure: str,
    datasets: Sequence[str],
    options: Callable[[str], Mapping[str, Any]] = lambda dataset: {},
) -> list[Planned]:
    """The method ``auto`` on every dataset and seed, measured.

    Args:
        scope: What the user asked for.
        measure: What each run measures.
        datasets: Those of the full version.
        options: Of a dataset, values that differ from its tuned ones.
    """
    planned = []
    for dataset in datasets_of(scope, datasets, QUICK):
        rows = only_methods(scope, [Row(METHOD, METHOD, options(dataset))])
        planned += plan_rows(rows, dataset, scope, measure=measure)
    return planned


def by_dataset(finished: Sequence[Finished]) -> dict[str, dict[Pair, Measured]]:
    """What was measured, by dataset, then by split and seed; in the plan's order."""
    out: dict[str, dict[Pair, Measured]] = {}
    for one in finished:
        job, measured = one.planned.job, one.record.get("measured")
        if measured is None:
            raise InputError(f"the record of {job.title} has no measured {job.measure}")
        out.setdefault(job.dataset, {})[job.split, job.seed] = measured
    return out


def values(runs: Mapping[Pair, Measured], *keys: str) -> dict[Pair, float]:
    """The number under these keys in every run that has it."""
    found: dict[Pair, float] = {}
    for pair, measured in runs.items():
        value: Any = measured
        for key in keys:
            value = None if value is None else value.get(key)
        if value is not None:
            found[pair] = float(value)
    return found


def summary(runs: Mapping[Pair, Measured], *keys: str, scale: float = 1.0) -> Number:
    """Mean and standard deviation of the number under these keys."""
    return mean_std([scale * v for v in values(runs, *keys).values()])


def mean_std(numbers: Sequence[float]) -> Number:
    """Mean and unbiased standard deviation; None where there are too few."""
    array = np.asarray(numbers, dtype=np.float64)
    mean = float(array.mean()) if array.size else None
    return mean, float(array.std(ddof=1)) if array.size > 1 else None


def standard_error(summary: Summary) -> float:
    """Of the mean; 0 for a single run, which tells none."""
    return 0.0 if summary.std is None else summary.std / summary.runs**0.5


def show(mean: float | None, std: float | None, digits: int = 1) -> str:
    """``81.5 ± 0.4``; a dash where there is nothing, no spread for a single run."""
    if mean is None:
        return "–"
    text = f"{without_minus_zero(mean, digits):.{digits}f}"
    return text if std is None else f"{text} ± {std:.{digits}f}"


def several(count: int, total: int) -> str:
    """``on 2 of 3 datasets``, ``on all 3 datasets``, ``on no dataset``."""
    if not count:
        return "on no dataset"
    if total == 1:
        return "on the one dataset"
    if count == total:
        return f"on all {total} datasets"
    return f"on {count} of {total} datasets"
