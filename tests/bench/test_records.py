import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elugcn.bench.records import COLUMNS, Outcome, slope


@given(st.floats(-3, 3), st.floats(0.01, 100), st.integers(2, 6))
def test_a_power_law_has_its_exponent(exponent: float, scale: float, k: int) -> None:
    sizes = [10.0 * 3**i for i in range(k)]
    assert slope(sizes, (scale * n**exponent for n in sizes)) == pytest.approx(
        exponent, abs=1e-9
    )


def test_slope_is_least_squares() -> None:
    sizes, values = [10, 100, 1000], [3.0, 50.0, 210.0]
    expected = np.polyfit(np.log(sizes), np.log(values), 1)[0]
    assert slope(sizes, values) == pytest.approx(expected)


def test_records_are_found_and_plain() -> None:
    outcome = Outcome("step")
    outcome.add("cora", 2708, "floor_ms", 1.5, "ms")
    outcome.add("cora", 2708, "overhead", 2.0)
    outcome.add("sbm", 10, "overhead", 3.0)
    assert outcome.cases() == [("cora", 2708), ("sbm", 10)]
    assert outcome.value("sbm", 10, "overhead") == 3.0
    assert outcome.value("sbm", 11, "overhead") is None
    assert outcome.records[1].plain() == {
        "suite": "step", "dataset": "cora", "n": 2708,
        "metric": "overhead", "value": 2.0, "unit": "ratio",
    }  # fmt: skip
    assert dict(zip(COLUMNS, outcome.records[0].row(), strict=True)) == (
        outcome.records[0].plain()
    )
