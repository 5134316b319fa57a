"""What a comparison consists of: one job per method, dataset, split and seed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

from elugcn.api import MAX_SEED
from elugcn.api.fitting import check_selection
from elugcn.data.datasets import DatasetInfo, dataset_info
from elugcn.errors import InputError
from elugcn.methods.presets import tuned_options
from elugcn.methods.registry import config_for, get_method, resolve_name

Options = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Job:
    """One run to do, with everything that decides its result."""

    method: str
    dataset: str
    split: int = 0
    seed: int = 0
    options: dict[str, Any] = field(default_factory=dict)  # what is not the default
    labels_per_class: int | None = None  # so many are drawn; None: the split's own
    data_options: dict[str, Any] = field(default_factory=dict)
    # ``module:function``, called with the fitted model; the record keeps its result.
    measure: str | None = None
    metric: str = "accuracy"  # what validation selects by
    class_weight: str | None = None

    def __hash__(self) -> int:
        return hash(self.key)

    @cached_property
    def key(self) -> str:
        """Sixteen hex digits: equal for equal jobs, in every process."""
        text = json.dumps(self.plain(), sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @cached_property
    def config(self) -> dict[str, Any]:
        """Every option of the method, as JSON holds it."""
        return config_for(self.method, self.options).model_dump(mode="json")

    @property
    def title(self) -> str:
        """The job in a message."""
        return f"{self.method} on {self.dataset}, split {self.split}, seed {self.seed}"

    def plain(self) -> dict[str, Any]:
        """The job as JSON holds it; stored runs don't have what is newer than they."""
        later = {"metric": "accuracy", "class_weight": None}
        return {k: v for k, v in asdict(self).items() if later.get(k, ...) != v}


def make_jobs(
    methods: Sequence[str],
    datasets: Sequence[str],
    seeds: int = 10,
    *,
    labels_per_class: int | None = None,
    options: Options | None = None,
    data_options: Options | None = None,
    measure: str | None = None,
    first: int = 0,
    metric: str = "accuracy",
    class_weight: str | None = None,
) -> list[Job]:
    """Every run of a comparison, checked before the first one starts.

    Methods have the tuned options of each dataset. Tuned options are for the published
    labels, so methods have their defaults where other labels are drawn.

    Args:
        methods: The rows of the table.
        datasets: The columns.
        seeds: Runs per method and dataset; run i has seed ``first + i``.
        labels_per_class: Draw this many training labels.
        options: Per method, options that differ from the tuned ones.
        data_options: Per dataset, further options of its loader.
        measure: What to measure on every fitted model.
        first: Seed of the first run.
        metric: What validation selects by, and what is compared.
        class_weight: ``"balanced"``, or None.
    """
    names = dict.fromkeys(map(resolve_name, methods))
    infos = {info.name: info for info in map(dataset_info, datasets)}
    for name in names:
        check_selection(name, metric, class_weight)
    if not names or not infos:
        raise InputError("a comparison needs at least one method and one dataset")
    if seeds < 1:
        raise InputError(f"seeds must be at least 1; got {seeds}")
    last = MAX_SEED - seeds + 1
    if not 0 <= first <= last:
        raise InputError(f"first must be 0 to {last}; got {first}")
    if labels_per_class is not None and labels_per_class < 1:
        raise InputError(f"labels_per_class must be at least 1; got {labels_per_class}")
    given = {resolve_name(name): own for name, own in (options or {}).items()}
    extra = {dataset_info(name).name: own for name, own in (data_options or {}).items()}
    for what, known, named in (("method", names, given), ("dataset", infos, extra)):
        for name in named:
            if name not in known:
                raise InputError(
                    f"options are given for {what} {name!r}, which is not compared; "
                    f"compared are {', '.join(known)}"
                )
    jobs = []
    for dataset, info in infos.items():
        source = None if labels_per_class is not None or dataset in extra else dataset
        own = dict(extra.get(dataset, {}))
        for method in names:
            tuned = tuned_options(method, source, given.get(method, {}))
            chosen = differing(method, tuned)
            job = Job(
                method,
                dataset,
                options=chosen,
                labels_per_class=labels_per_class,
                data_options=own,
                measure=measure,
                metric=metric,
                class_weight=class_weight,
            )
            jobs += [
                replace(job, split=split, seed=run_seed)
                for split, run_seed in pairs(info, seeds, labels_per_class, first)
            ]
    return jobs


def pairs(
    info: DatasetInfo, seeds: int, labels_per_class: int | None, first: int = 0
) -> list[tuple[int, int]]:
    """The (split, seed) of each run.

    One published split is run with every seed. Otherwise seed s has split s; published
    splits start again when the seeds go beyond them.
    """
    numbers = range(first, first + seeds)
    drawn = labels_per_class is not None and info.n_splits == 1
    if drawn or not info.fixed_splits:
        return [(s, s) for s in numbers]
    return [(s % info.n_splits, s) for s in numbers]


def differing(method: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that differ from the method's defaults, checked."""
    default = get_method(method).Config().model_dump(mode="json")
    chosen = config_for(method, options).model_dump(mode="json")
    return {key: value for key, value in chosen.items() if value != default[key]}
