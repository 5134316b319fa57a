"""What a comparison consists of: one job per method, dataset, split and seed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from elugcn.config import as_plain, resolve_config
from elugcn.data.datasets import DatasetInfo, dataset_info
from elugcn.errors import InputError
from elugcn.fitting import MAX_SEED
from elugcn.methods.registry import METHODS

Options = Mapping[str, Mapping[str, Any]]
# Options that methods were given later, at the value that means what was done before.
# There they are left out of a job, so that earlier runs keep their names.
LATER = {
    "sample": 0,
    "neighbours": 32,
    "momentum": 0.999,
    "activation": "relu",
    "mlp_activation": "relu",
}


@dataclass(frozen=True)
class Job:
    """One run to do, with everything that decides its result.

    Attributes:
        method: name of the method.
        dataset: name of the dataset.
        split: which split of it.
        seed: seed of everything random.
        config: the method's configuration, fully resolved, as JSON holds it.
        labels_per_class: draw this many training labels instead of the split's own.
        data_options: further options of the dataset.
        measure: what to measure on the fitted model, a name in
            ``experiments/measures.py``; None: nothing.
    """

    method: str
    dataset: str
    split: int
    seed: int
    config: dict[str, Any]
    labels_per_class: int | None = None
    data_options: dict[str, Any] = field(default_factory=dict)
    measure: str | None = None

    def __hash__(self) -> int:
        return hash((self.dataset, self.split, self.seed, self.config_hash))

    @cached_property
    def config_hash(self) -> str:
        """Twelve hex digits: equal when method, configuration and data are."""
        what = {
            "method": self.method,
            "config": self.config,
            "dataset": self.dataset,
            "labels_per_class": self.labels_per_class,
            "data_options": self.data_options,
        }
        # Runs that measure nothing keep the hash they had before there were measures.
        if self.measure is not None:
            what["measure"] = self.measure
        text = json.dumps(what, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def pair(self) -> tuple[str, str]:
        """Method and dataset: the cell of the table it counts for."""
        return self.method, self.dataset

    @property
    def title(self) -> str:
        """The job in a line for people."""
        return f"{self.method} on {self.dataset}, split {self.split}, seed {self.seed}"

    def plain(self) -> dict[str, Any]:
        """The job as JSON holds it."""
        return asdict(self)


def make_jobs(
    methods: Sequence[str],
    datasets: Sequence[str],
    seeds: int,
    *,
    labels_per_class: int | None = None,
    options: Options | None = None,
    data_options: Options | None = None,
    measure: str | None = None,
    first: int = 0,
) -> list[Job]:
    """Every run of a comparison, checked before the first one starts.

    Args:
        methods: names of methods; the rows of the table.
        datasets: names of datasets; the columns.
        seeds: runs per method and dataset.
        labels_per_class: draw training labels; the tuned values of a dataset, which
            are for its published labels, are then left aside.
        options: per method, values that differ from its configuration.
        data_options: per dataset, further options of its loader.
        measure: what to measure on every fitted model.
        first: seed of the first run; run i has seed ``first + i``.

    Raises:
        InputError: a name, a number or an option is wrong.
    """
    names = [_method(m) for m in dict.fromkeys(methods)]
    infos = {info.name: info for info in map(dataset_info, datasets)}
    if not names or not infos:
        raise InputError("a comparison needs at least one method and one dataset")
    if not 1 <= seeds <= MAX_SEED:
        raise InputError(f"seeds must be at least 1; got {seeds}")
    if not 0 <= first <= MAX_SEED - seeds + 1:
        raise InputError(f"first must be 0 to {MAX_SEED - seeds + 1}; got {first}")
    if labels_per_class is not None and labels_per_class < 1:
        raise InputError(f"labels_per_class must be at least 1; got {labels_per_class}")
    options, data_options = options or {}, data_options or {}
    _among(options, names, "method")
    _among(data_options, list(infos), "dataset")
    jobs = []
    for dataset, info in infos.items():
        extra = dict(data_options.get(dataset, {}))
        preset = dataset if labels_per_class is None and not extra else None
        for method in names:
            chosen = resolve_config(method, preset, None, options.get(method))
            config = _as_before(as_plain(chosen))
            for split, seed in pairs(info, seeds, labels_per_class is not None, first):
                jobs.append(
                    Job(
                        method,
                        dataset,
                        split,
                        seed,
                        config,
                        labels_per_class,
                        extra,
                        measure,
                    )
                )
    return jobs


def pairs(
    info: DatasetInfo, seeds: int, drawn: bool, first: int = 0
) -> list[tuple[int, int]]:
    """The (split, seed) of each run; run i has seed ``first + i``.

    One published split is run with every seed. Otherwise seed s has split s;
    published splits start again when the seeds go beyond them.
    """
    numbers = range(first, first + seeds)
    if not info.fixed_splits or (drawn and info.n_splits == 1):
        return [(s, s) for s in numbers]
    return [(s % info.n_splits, s) for s in numbers]


def _as_before(config: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in config.items() if k not in LATER or v != LATER[k]}


def _method(name: str) -> str:
    if name not in METHODS:
        raise InputError(f"unknown method {name!r}; there are {', '.join(METHODS)}")
    return name


def _among(options: Options, names: Sequence[str], what: str) -> None:
    for name in options:
        if name not in names:
            raise InputError(
                f"options are given for {what} {name!r}, which is not compared; "
                f"compared are {', '.join(names)}"
            )
