"""Means, spreads and paired differences of accuracies, in percent."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

Pair = tuple[int, int]  # split and seed
MIN_WILCOXON_PAIRS = 6  # with fewer, no outcome of the test is below 5 %


@dataclass(frozen=True)
class Summary:
    """Mean and unbiased standard deviation of some runs; None where there is none."""

    mean: float | None
    std: float | None
    runs: int


@dataclass(frozen=True)
class Difference:
    """How much better a method is than another on the same splits and seeds.

    Attributes:
        mean: Mean difference in percentage points.
        low: Lower end of the 95 % t confidence interval.
        high: Upper end of it.
        t_pvalue: Of the paired t-test; None where all differences are equal.
        wilcoxon_pvalue: Of the signed-rank test; None below 6 pairs, or where all
            differences are 0.
        pairs: How many pairs there were.
    """

    mean: float
    low: float
    high: float
    t_pvalue: float | None
    wilcoxon_pvalue: float | None
    pairs: int


def summarize(fractions: Sequence[float]) -> Summary:
    """Fractions in [0, 1] as mean ± unbiased standard deviation in percent."""
    values = 100.0 * np.asarray(fractions, dtype=np.float64)
    n = values.size
    return Summary(
        mean=float(values.mean()) if n else None,
        std=float(values.std(ddof=1)) if n > 1 else None,
        runs=n,
    )


def paired_difference(
    ours: Mapping[Pair, float], theirs: Mapping[Pair, float], level: float = 0.95
) -> Difference | None:
    """The difference on the (split, seed) that both have; None with fewer than two.

    Args:
        ours: Accuracy of each run of a method, a fraction.
        theirs: The same of the method that it is compared with.
        level: Of the confidence interval.
    """
    common = sorted(ours.keys() & theirs.keys())
    n = len(common)
    if n < 2:
        return None
    a = 100.0 * np.array([ours[p] for p in common], dtype=np.float64)
    b = 100.0 * np.array([theirs[p] for p in common], dtype=np.float64)
    # Accuracies are counts. Equal differences may differ in the last digits here;
    # ranks and variances must not see that.
    d = np.round(a - b, 9)
    mean = float(d.mean())
    spread = float(d.std(ddof=1)) / math.sqrt(n)
    half = float(stats.t.ppf(0.5 + level / 2, n - 1)) * spread
    varied = bool(np.ptp(d) > 0)
    return Difference(
        mean=mean,
        low=mean - half,
        high=mean + half,
        t_pvalue=float(stats.ttest_rel(a, b).pvalue) if varied else None,
        wilcoxon_pvalue=_wilcoxon(d),
        pairs=n,
    )


def _wilcoxon(d: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float | None:
    if d.size < MIN_WILCOXON_PAIRS or not d.any():
        return None
    return float(stats.wilcoxon(d).pvalue)


def without_minus_zero(value: float, digits: int) -> float:
    """Rounded for a table; −0 becomes 0."""
    return round(value, digits) + 0.0
