"""Means, spreads and paired differences of accuracies, in percent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import stats

Pair = tuple[int, int]  # split and seed


class Summary(NamedTuple):
    """Mean and unbiased standard deviation of some runs; None where there is none."""

    mean: float | None
    std: float | None
    runs: int

    @property
    def standard_error(self) -> float:
        """Of the mean; 0 where there is no standard deviation."""
        return 0.0 if self.std is None else self.std / self.runs**0.5


@dataclass(frozen=True)
class Difference:
    """How much better a method is than another on the same splits and seeds."""

    mean: float  # in percentage points
    low: float  # ends of the 95 % t confidence interval
    high: float
    t_pvalue: float | None  # of the paired t-test; None: all differences are equal
    pairs: int


def summarize(values: Iterable[float], scale: float = 100.0) -> Summary:
    """Mean and standard deviation of ``scale`` times the values."""
    scaled = scale * np.array(list(values), dtype=np.float64)
    n = scaled.size
    return Summary(
        mean=float(scaled.mean()) if n else None,
        std=float(scaled.std(ddof=1)) if n > 1 else None,
        runs=n,
    )


def paired_difference(
    ours: Mapping[Pair, float], theirs: Mapping[Pair, float]
) -> Difference | None:
    """The difference on the (split, seed) that both have; None with fewer than two.

    Given are the accuracies of runs as fractions.
    """
    common = sorted(ours.keys() & theirs.keys())
    if len(common) < 2:
        return None
    # Accuracies are counts. Equal differences may differ in the last digits here;
    # the variance must not see that.
    d = np.round([100.0 * (ours[p] - theirs[p]) for p in common], 9)
    low = high = mean = float(d.mean())
    t_pvalue = None
    if np.ptp(d) > 0:
        test = stats.ttest_1samp(d, 0.0)
        t_pvalue = float(test.pvalue)
        low, high = map(float, test.confidence_interval(0.95))
    return Difference(mean, low, high, t_pvalue, d.size)


def without_minus_zero(value: float, digits: int) -> float:
    """Rounded for a table; −0 becomes 0."""
    return round(value, digits) + 0.0
