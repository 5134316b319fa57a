"""Shares of nodes, and what ELU-GCN gains on them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from elugcn.errors import InputError
from elugcn.experiments import nelu, utilization
from elugcn.experiments.base import Finished, Scope
from elugcn.experiments.measured import PAPER, by_dataset, several, show
from tests.evaluation.conftest import record_of
from tests.experiments.fake import write_page


def run(
    elu: tuple[float, float, float],
    nelu: tuple[float, float | None, float | None],
    everything: tuple[float, float] = (0.7, 0.7),
) -> dict[str, Any]:
    """Share, GCN's accuracy and final accuracy of each set.

    A second GCN has 4 points more on NELU nodes, 2 less on ELU nodes, 1 more in all.
    """

    def of(gain: float, share: float, *accuracies: float | None) -> dict[str, Any]:
        gcn, ours = accuracies
        second = None if gcn is None else gcn + gain
        keys = ("share", "gcn_accuracy", "accuracy", "second_accuracy")
        return dict(zip(keys, (share, gcn, ours, second), strict=True))

    return {
        "nodes": 100,
        "elu": of(-0.02, *elu),
        "nelu": of(0.04, *nelu),
        "unreachable": of(0.0, 1 - elu[0] - nelu[0], None, None),
        "all": of(0.01, 1.0, *everything),
    }


MEASURED = {
    "karate": [
        run((0.6, 0.9, 0.9), (0.3, 0.5, 0.55), (0.80, 0.82)),
        run((0.5, 0.8, 0.7), (0.4, 0.6, 0.61), (0.70, 0.72)),
        run((0.7, 0.7, 0.7), (0.2, 0.4, 0.46), (0.60, 0.62)),
    ],
    # NELU nodes better than ELU nodes; a run has no test node among them.
    "sbm": [
        run((0.9, 0.3, 0.3), (0.1, None, None)),
        run((0.8, 0.4, 0.4), (0.2, 0.5, 0.5)),
    ],
}


def test_the_plan_is_shared_and_what_the_paper_has() -> None:
    scope = Scope(quick=False, seeds=10)
    plan = utilization.plan(scope)
    assert [p.job for p in plan] == [p.job for p in nelu.EXPERIMENT.plan(scope)]
    assert len(plan) == 10 * len(PAPER)
    assert tuple(dict.fromkeys(p.job.dataset for p in plan)) == PAPER
    assert {(p.job.method, p.job.measure) for p in plan} == {("elu-gcn", "utilization")}
    # Nothing but the epochs of the small version differs from the tuned values.
    quick = utilization.plan(Scope(quick=True, seeds=2))
    assert [p.job.dataset for p in quick] == ["cora"] * 2 + ["citeseer"] * 2
    full = {p.job.dataset: p.job.config for p in plan}
    for p in quick:
        tuned = full[p.job.dataset]
        changed = {k for k, v in p.job.config.items() if v != tuned[k]}
        assert {"epochs"} <= changed <= {"epochs", "variants"}
        for small, large in zip(
            p.job.config["variants"], tuned["variants"], strict=True
        ):
            assert {k for k in large if small[k] != large[k]} <= {"epochs"}
    others = Scope(quick=False, seeds=2, datasets=("karate",), methods=("gcn",))
    assert utilization.plan(others) == []


def test_shares_and_accuracies(tmp_path: Path) -> None:
    page = write_page(utilization.EXPERIMENT, MEASURED, tmp_path)
    header = ["dataset", "elu_share", "elu_share_std", "nelu_share"]
    assert list(page.rows[0])[:4] == header
    assert [r["dataset"] for r in page.rows] == ["karate", "sbm"]
    one, two = page.numbers(0), page.numbers(1)
    assert (one["elu_share"], one["elu_share_std"]) == pytest.approx((60, 10))
    assert (one["nelu_share"], one["unreachable_share"]) == pytest.approx((30, 10))
    assert one["gcn_accuracy_elu"] == pytest.approx(80)
    assert one["gcn_accuracy_nelu_std"] == pytest.approx(10)
    assert (one["runs"], two["runs"]) == (3, 2)
    assert two["gcn_accuracy_nelu"] == 50  # of the one run that has it
    assert page.rows[1]["gcn_accuracy_nelu_std"] == ""
    assert page.rows[0]["gcn_accuracy_unreachable"] == ""
    assert "NELU nodes on all 2 datasets" in page.text
    assert "more accurate on ELU nodes than on NELU nodes on 1 of 2" in page.text
    assert "by -15.0 points (sbm) to +30.0 points (karate)" in page.text
    assert (
        "| karate | 60.0 ± 10.0 | 30.0 ± 10.0 | 10.0 ± 0.0 | 80.0 ± 10.0" in page.text
    )
    assert page.png.startswith(b"\x89PNG")
    assert "</svg>" in page.svg


def test_gains_on_each_set(tmp_path: Path) -> None:
    page = write_page(nelu.EXPERIMENT, MEASURED, tmp_path)
    rows = {
        (r["dataset"], r["nodes"]): page.numbers(i) for i, r in enumerate(page.rows)
    }
    gain = rows["karate", "nelu"]
    d = np.array([5.0, 1.0, 6.0])
    assert (gain["gain"], gain["gain_std"]) == pytest.approx((4, d.std(ddof=1)), 1e-5)
    low, high = stats.t.interval(0.95, 2, d.mean(), d.std(ddof=1) / 3**0.5)
    assert (gain["gain_low"], gain["gain_high"]) == pytest.approx((low, high), 1e-5)
    assert gain["p"] == pytest.approx(stats.ttest_1samp(d, 0).pvalue, 1e-5)
    assert (gain["gcn_accuracy"], gain["accuracy"]) == pytest.approx((50, 54))
    assert rows["karate", "elu"]["gain"] == pytest.approx(-10 / 3, 1e-5)
    assert rows["karate", "all"]["gain_std"] == 0  # not 1e-15
    assert rows["sbm", "nelu"] == {
        "gcn_accuracy": 50,
        "accuracy": 50,
        "gain": 0,
        "second_gcn_gain": 4,
        "runs": 1,
    }
    assert gain["second_gcn_gain"] == pytest.approx(4)
    assert rows["karate", "elu"]["second_gcn_gain"] == pytest.approx(-2)
    assert rows["karate", "unreachable"] == {"runs": 0}
    text = (
        "gains +2.0 points on NELU nodes, -1.7 points on ELU nodes, "
        "+1.0 points on all test nodes; a second GCN gains +4.0 points on NELU "
        "nodes, -2.0 points on ELU nodes, +1.0 points on all test nodes."
    )
    assert text in page.text
    assert r"| karate | second GCN | 4.0 ± 0.0 \[4.0, 4.0\] |" in page.text
    # Three runs of which one gains little: the interval holds zero.
    assert low < 0
    assert "above zero on no dataset and below zero on no dataset" in page.text
    assert "The paper reports +3.7 points on NELU nodes" in page.text


def test_what_is_sure_is_named(tmp_path: Path) -> None:
    def runs(gain: float) -> list[dict[str, Any]]:
        return [
            run((0.5, 0.8, 0.8), (0.5, 0.5, 0.5 + gain + e)) for e in (0, 0.01, -0.01)
        ]

    measured = {"karate": runs(0.1), "sbm": runs(-0.1), "digits": runs(0.0)}
    page = write_page(nelu.EXPERIMENT, measured, tmp_path)
    assert "above zero on karate and below zero on sbm." in page.text


def test_no_nelu_nodes(tmp_path: Path) -> None:
    measured = {"karate": [run((1.0, 0.9, 0.9), (0.0, None, None))] * 2}
    page = write_page(nelu.EXPERIMENT, measured, tmp_path)
    assert "No run has NELU nodes in its test set." in page.text
    page = write_page(utilization.EXPERIMENT, measured, tmp_path)
    assert "No run has both kinds of nodes." in page.text


def test_words() -> None:
    assert [several(*pair) for pair in ((0, 3), (1, 1), (3, 3), (2, 3), (0, 0))] == [
        "on no dataset",
        "on the one dataset",
        "on all 3 datasets",
        "on 2 of 3 datasets",
        "on no dataset",
    ]
    assert [show(None, None), show(1.25, None, 2), show(2, 1)] == [
        "–",
        "1.25",
        "2.0 ± 1.0",
    ]


def test_a_record_without_its_measurement() -> None:
    plan = utilization.plan(Scope(quick=False, seeds=1, datasets=("karate",)))
    finished = [Finished(plan[0], record_of(plan[0].job))]
    with pytest.raises(
        InputError, match="elu-gcn on karate, split 0, seed 0 is damaged"
    ):
        by_dataset(finished)
