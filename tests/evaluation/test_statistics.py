import numpy as np
import pytest
from scipy import stats

from elugcn.evaluation import paired_difference, summarize
from elugcn.evaluation.statistics import Summary


def test_summary_by_hand() -> None:
    assert summarize([]) == Summary(None, None, 0)
    assert summarize([0.5]) == Summary(50.0, None, 1)
    assert summarize([0.8, 0.82, 0.84]) == pytest.approx((82.0, 2.0, 3))
    # The standard error of 1 and 3: √2 / √2.
    assert summarize([1.0, 3.0], scale=1.0).standard_error == pytest.approx(1.0)
    assert summarize([1.0]).standard_error == 0.0


def test_difference_by_hand() -> None:
    ours = {(0, 0): 0.81, (0, 1): 0.83, (0, 2): 0.9}
    theirs = {(0, 1): 0.80, (0, 0): 0.80, (0, 9): 0.1}
    found = paired_difference(ours, theirs)
    assert found is not None
    # Differences 1 and 3: mean 2, std √2, standard error 1, t(1) at 97.5 % = 12.7062.
    # t = 2 with one degree of freedom: p = 1 − 2·atan(2)/π.
    got = (found.mean, found.low, found.high, found.t_pvalue, found.pairs)
    p = 1 - 2 * np.arctan(2) / np.pi
    assert got == pytest.approx((2.0, 2 - 12.7062, 2 + 12.7062, p, 2))
    assert paired_difference(ours, {(0, 0): 0.4}) is None


def test_difference_against_scipy() -> None:
    a, b = np.random.default_rng(0).uniform(0.7, 0.8, (2, 10))
    found = paired_difference(*({(i, i): v[i] for i in range(10)} for v in (a, b)))
    assert found is not None
    test = stats.ttest_rel(100 * a, 100 * b)
    expected = (test.pvalue, *test.confidence_interval(0.95))
    assert (found.t_pvalue, found.low, found.high) == pytest.approx(expected)


@pytest.mark.parametrize("by", [0.0, 0.1], ids=str)
def test_equal_differences_have_no_p_value(by: float) -> None:
    theirs = {(0, i): 0.1 * i for i in range(7)}
    found = paired_difference({k: v + by for k, v in theirs.items()}, theirs)
    assert found is not None
    assert (found.mean, found.low, found.high) == pytest.approx((100 * by,) * 3)
    assert found.t_pvalue is None
