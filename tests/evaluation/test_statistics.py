import numpy as np
import pytest
from scipy import stats

from elugcn.evaluation import paired_difference, summarize
from elugcn.evaluation.statistics import Summary, without_minus_zero


def test_summary_by_hand() -> None:
    assert summarize([]) == Summary(None, None, 0)
    assert summarize([0.5]) == Summary(50.0, None, 1)
    mean, std, runs = summarize([0.8, 0.82, 0.84])
    assert (mean, std, runs) == (pytest.approx(82.0), pytest.approx(2.0), 3)
    assert summarize([1.0, 3.0], scale=1.0).mean == 2.0
    # The standard error of 1 and 3: √2 / √2.
    assert summarize([1.0, 3.0], scale=1.0).standard_error == pytest.approx(1.0)
    assert summarize([1.0]).standard_error == 0.0


def test_difference_by_hand() -> None:
    ours = {(0, 0): 0.81, (0, 1): 0.83, (0, 2): 0.9}
    theirs = {(0, 1): 0.80, (0, 0): 0.80, (0, 9): 0.1}
    found = paired_difference(ours, theirs)
    assert found is not None
    # Differences 1 and 3: mean 2, std √2, standard error 1, t(1) at 97.5 % = 12.7062.
    assert found.mean == pytest.approx(2.0)
    assert (found.low, found.high) == pytest.approx((2 - 12.7062, 2 + 12.7062))
    # t = 2 with one degree of freedom: p = 1 − 2·atan(2)/π.
    assert found.t_pvalue == pytest.approx(1 - 2 * np.arctan(2) / np.pi)
    assert found.pairs == 2


@pytest.mark.parametrize("n", [2, 5, 6, 10])
def test_difference_against_scipy(n: int) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.uniform(0.7, 0.8, n), rng.uniform(0.68, 0.79, n)
    found = paired_difference(
        {(i, i): a[i] for i in range(n)}, {(i, i): b[i] for i in range(n)}
    )
    assert found is not None
    test = stats.ttest_rel(100 * a, 100 * b)
    interval = test.confidence_interval(0.95)
    assert found.t_pvalue == pytest.approx(test.pvalue)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))


def test_too_few_pairs() -> None:
    assert paired_difference({(0, 0): 0.5, (0, 1): 0.5}, {(0, 0): 0.4}) is None
    assert paired_difference({}, {}) is None


def test_equal_differences() -> None:
    same = {(0, i): 0.1 * i for i in range(7)}
    found = paired_difference(same, same)
    assert found is not None
    assert (found.mean, found.low, found.high) == (0, 0, 0)
    assert found.t_pvalue is None
    found = paired_difference({k: v + 0.1 for k, v in same.items()}, same)
    assert found is not None
    assert (found.mean, found.low, found.high) == pytest.approx((10, 10, 10))
    assert found.t_pvalue is None


@pytest.mark.parametrize(
    ("value", "shown"), [(-0.04, "0.0"), (-0.06, "-0.1"), (0.0, "0.0"), (2.34, "2.3")]
)
def test_no_minus_before_a_zero(value: float, shown: str) -> None:
    assert f"{without_minus_zero(value, 1):.1f}" == shown
