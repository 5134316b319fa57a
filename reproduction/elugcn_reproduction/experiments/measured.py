"""What the experiments that measure a fitted model share: their plan, their sums."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from elugcn.errors import InputError
from elugcn.evaluation.statistics import Pair, Summary, summarize
from elugcn.evaluation.tables import plus_minus
from elugcn_reproduction.experiments.base import (
    Finished,
    Planned,
    Row,
    Scope,
    datasets_of,
    only_methods,
    plan_rows,
)

METHOD = "elu-gcn"
QUICK = ("cora", "citeseer")

Measured = Mapping[str, Any]


def plan_measured(
    scope: Scope,
    measure: str,
    datasets: Sequence[str],
    options: Callable[[str], Mapping[str, Any]] = lambda dataset: {},
) -> list[Planned]:
    """The method ``elu-gcn`` on every dataset and seed, measured.

    Args:
        scope: What the user asked for.
        measure: A function of ``measures.py``.
        datasets: Those of the full version.
        options: Of a dataset, values that differ from its tuned ones.
    """
    measure = f"elugcn_reproduction.measures:{measure}"
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


def summary(runs: Mapping[Pair, Measured], *keys: str, scale: float = 100.0) -> Summary:
    """Mean and standard deviation of the number under these keys."""
    return summarize(values(runs, *keys).values(), scale)


def with_std(names: Iterable[str]) -> list[str]:
    """Columns of a CSV: each name, and the name with ``_std``."""
    return [name + end for name in names for end in ("", "_std")]


def flat(summaries: Iterable[Summary]) -> list[float | None]:
    """Means and standard deviations one after another."""
    return [number for mean, std, _ in summaries for number in (mean, std)]


def show(summary: Summary, digits: int = 1) -> str:
    """``81.5 ± 0.4``."""
    return plus_minus(summary.mean, summary.std, digits)


def several(count: int, total: int) -> str:
    """``on 2 of 3 datasets``, ``on all 3 datasets``, ``on no dataset``."""
    if not count:
        return "on no dataset"
    if total == 1:
        return "on the one dataset"
    if count == total:
        return f"on all {total} datasets"
    return f"on {count} of {total} datasets"
