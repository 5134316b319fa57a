"""From rows and datasets to runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from elugcn.config import resolve_config
from elugcn.data.datasets import dataset_info
from elugcn.evaluation.jobs import Job, make_jobs
from elugcn.experiments.base import QUICK_EPOCHS, Planned, Row, Scope
from elugcn.methods.elu_config import ELUGCNConfig
from elugcn.methods.registry import METHODS, get_method

# The member of a tuned ELU-GCN that is the paper's objective.
TWO_VIEWS = "two views"
# Nothing is chosen among members: what a row says is what is trained.
SINGLE: dict[str, Any] = {
    "variants": [],
    "keep_gcn": False,
    "ensemble": False,
    "refit_eta": False,
}


def datasets_of(
    scope: Scope, full: Sequence[str], quick: Sequence[str]
) -> tuple[str, ...]:
    """The datasets the user names, else those of the experiment."""
    names = scope.datasets or (quick if scope.quick else full)
    return tuple(dict.fromkeys(dataset_info(name).name for name in names))


def method_rows(
    scope: Scope, full: Iterable[str], quick: Iterable[str] | None = None
) -> list[Row]:
    """A row for each method the user names, else for those of the experiment.

    Methods of the experiment that this version does not have are left out.
    """
    if scope.methods:
        return [Row(name, name) for name in dict.fromkeys(scope.methods)]
    names = quick if scope.quick and quick is not None else full
    return [Row(name, name) for name in names if name in METHODS]


def only_methods(scope: Scope, rows: Iterable[Row]) -> list[Row]:
    """The rows of an experiment with rows of its own, for the methods asked for."""
    known = [row for row in rows if row.method in METHODS]
    if not scope.methods:
        return known
    for name in scope.methods:
        get_method(name)
    return [row for row in known if row.method in scope.methods]


def plan_rows(
    rows: Iterable[Row],
    dataset: str,
    scope: Scope,
    *,
    group: str = "",
    labels_per_class: int | None = None,
    measure: str | None = None,
) -> list[Planned]:
    """Every run of some rows on a dataset; ``--quick`` caps the epochs.

    Args:
        rows: what is compared.
        dataset: name of the dataset.
        scope: what the user asked for.
        group: what else tells the runs apart.
        labels_per_class: draw this many training labels instead of the split's own.
        measure: what to measure on each fitted model.
    """
    planned = []
    for row in rows:
        jobs = make_jobs(
            [row.method],
            [dataset],
            scope.seeds,
            labels_per_class=labels_per_class,
            options={row.method: row.options},
            measure=measure,
        )
        for job in jobs:
            chosen = capped(job, QUICK_EPOCHS) if scope.quick else job
            planned.append(Planned(row.name, chosen, group))
    return planned


def capped(job: Job, epochs: int) -> Job:
    """The job with at most that many epochs, in every member of its method."""
    config = _capped(job.config, epochs)
    if "variants" in config:
        config["variants"] = [_capped(one, epochs) for one in config["variants"]]
    return replace(job, config=config)


def _capped(values: dict[str, Any], epochs: int) -> dict[str, Any]:
    if "epochs" not in values:
        return dict(values)
    return values | {"epochs": min(int(values["epochs"]), epochs)}


def two_views(dataset: str) -> dict[str, Any]:
    """The options of the two-view setting alone, as tuned for a dataset.

    It is one of the members that the tuned method chooses from; where it is not
    listed, the method's own values are the setting.
    """
    config = resolve_config("elu-gcn", dataset)
    assert isinstance(config, ELUGCNConfig)
    named = [dict(v) for v in config.variants if v.get("name") == TWO_VIEWS]
    options = named[0] if named else {}
    options.pop("name", None)
    # Without a contrast there would be nothing to take away from it.
    weight = options.get("lambda_con", config.lambda_con) or 0.1
    return SINGLE | options | {"lambda_con": weight}
