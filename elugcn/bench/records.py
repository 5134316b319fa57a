"""What a benchmark says: flat records, one number each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, astuple, dataclass, field, fields
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Record:
    """One number.

    Ratios are ours over the peer's: below 1 we are faster, or smaller. ``ratio_gcn``
    and ``ratio_gat`` are against PyG's GCN and GAT, ``ratio_time`` and
    ``ratio_memory`` against the dense n×n way of the paper.

    Attributes:
        suite: Which suite measured it.
        dataset: On which graph.
        n: Nodes of that graph.
        metric: What was measured; its ending or ``unit`` tells the unit.
        value: The number.
        unit: ``ms``, ``s``, ``MB``, ``ratio``, ``exponent``, ``epochs``.
    """

    suite: str
    dataset: str
    n: int
    metric: str
    value: float
    unit: str

    def plain(self) -> dict[str, Any]:
        """As JSON holds it."""
        return asdict(self)

    def row(self) -> tuple[Any, ...]:
        """As CSV holds it."""
        return astuple(self)


COLUMNS = tuple(f.name for f in fields(Record))


@dataclass
class Outcome:
    """The records of a suite, and what a reader should know about them."""

    suite: str
    records: list[Record] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(
        self, dataset: str, n: int, metric: str, value: float, unit: str = "ratio"
    ) -> None:
        """Keep a number."""
        self.records.append(Record(self.suite, dataset, n, metric, value, unit))

    def cases(self) -> list[tuple[str, int]]:
        """Dataset and size of every case, in the order of the measurement."""
        return list(dict.fromkeys((r.dataset, r.n) for r in self.records))

    def value(self, dataset: str, n: int, metric: str) -> float | None:
        """One number, if it was measured."""
        for r in self.records:
            if (r.dataset, r.n, r.metric) == (dataset, n, metric):
                return r.value
        return None


def slope(sizes: Sequence[float], values: Iterable[float]) -> float:
    """The exponent e of value ∝ size^e, by least squares in logarithms."""
    x, y = np.log(np.asarray(sizes)), np.log(np.asarray(list(values)))
    x = x - x.mean()
    return float((x * (y - y.mean())).sum() / (x * x).sum())


def shown(value: float | None) -> str:
    """A number for a table: three digits that count, a dash for none."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
