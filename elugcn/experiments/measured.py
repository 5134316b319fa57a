"""What the experiments that measure a fitted ELU-GCN share: their plan, their sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from elugcn.errors import InputError
from elugcn.evaluation.statistics import Pair, without_minus_zero
from elugcn.experiments.base import Finished, Planned, Row, Scope
from elugcn.experiments.planning import datasets_of, only_methods, plan_rows

METHOD = "elu-gcn"
PAPER = (
    "cora",
    "citeseer",
    "pubmed",
    "computers",
    "photo",
    "chameleon",
    "squirrel",
)
QUICK = ("cora", "citeseer")

Measured = Mapping[str, Any]
Number = tuple[float | None, float | None]  # mean and standard deviation


def plan_measured(
    scope: Scope,
    measure: str,
    datasets: Sequence[str] = PAPER,
    options: Callable[[str], Mapping[str, Any]] | None = None,
) -> list[Planned]:
    """ELU-GCN on every dataset and seed, measured; nothing if it is not asked for.

    Args:
        scope: what the user asked for.
        measure: what each run measures.
        datasets: those of the full version.
        options: of a dataset, values that differ from its tuned ones.
    """
    planned = []
    for dataset in datasets_of(scope, datasets, QUICK):
        given = {} if options is None else options(dataset)
        rows = only_methods(scope, [Row(METHOD, METHOD, given)])
        planned += plan_rows(rows, dataset, scope, measure=measure)
    return planned


def by_dataset(finished: Sequence[Finished]) -> dict[str, dict[Pair, Measured]]:
    """What was measured, by dataset, then by split and seed; in the plan's order."""
    out: dict[str, dict[Pair, Measured]] = {}
    for one in finished:
        job, measured = one.planned.job, one.record.get("measured")
        if measured is None:
            raise InputError(
                f"the record of {job.title} is damaged, it has no measured "
                f"{job.measure}; delete it to run it again"
            )
        out.setdefault(job.dataset, {})[job.split, job.seed] = measured
    return out


def values(runs: Mapping[Pair, Measured], *keys: str) -> dict[Pair, float]:
    """The number under these keys in every run that has it."""
    found = {pair: _under(measured, keys) for pair, measured in runs.items()}
    return {pair: float(v) for pair, v in found.items() if v is not None}


def summary(runs: Mapping[Pair, Measured], *keys: str, scale: float = 1.0) -> Number:
    """Mean and standard deviation of the number under these keys."""
    return mean_std([scale * v for v in values(runs, *keys).values()])


def mean_std(numbers: Sequence[float]) -> Number:
    """Mean and unbiased standard deviation; None where there are too few."""
    array = np.asarray(numbers, dtype=np.float64)
    mean = float(array.mean()) if array.size else None
    return mean, float(array.std(ddof=1)) if array.size > 1 else None


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


def _under(measured: Measured, keys: Sequence[str]) -> Any:
    value: Any = measured
    for key in keys:
        value = None if value is None else value.get(key)
    return value
