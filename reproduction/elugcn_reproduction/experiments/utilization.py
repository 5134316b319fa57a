"""Label utilization (figure 2), and what ELU-GCN gains on NELU nodes."""

from __future__ import annotations

import numpy as np

from elugcn.evaluation.statistics import (
    Difference,
    Pair,
    paired_difference,
    without_minus_zero,
)
from elugcn_reproduction.experiments.accuracy import PAPER_DATASETS
from elugcn_reproduction.experiments.base import Experiment, Finished, Planned, Scope
from elugcn_reproduction.experiments.measured import (
    Measured,
    Number,
    by_dataset,
    mean_std,
    plan_measured,
    several,
    show,
    summary,
    values,
)
from elugcn_reproduction.figures import (
    CONTROL,
    Series,
    bar_figure,
    utilization_figure,
)
from elugcn_reproduction.page import Page

MEASURE = "elugcn_reproduction.measures:utilization"
SETS = ("elu", "nelu", "unreachable")
TEST_SETS = ("nelu", "elu", "unreachable", "all")
_NAMES = {
    "elu": "ELU",
    "nelu": "NELU",
    "unreachable": "unreachable",
    "all": "all test",
}
Gain = tuple[Number, Difference | None]


def plan(scope: Scope) -> list[Planned]:
    """ELU-GCN as it is tuned; Definition 1 is of the GCN it trains first."""
    return plan_measured(scope, MEASURE, PAPER_DATASETS)


def write_utilization(finished: list[Finished], page: Page) -> None:
    """Shares of the three sets of nodes and the GCN's accuracy on each."""
    found = by_dataset(finished)
    shares = {
        d: {s: summary(runs, s, "share", scale=100.0) for s in SETS}
        for d, runs in found.items()
    }
    accuracy = {
        d: {s: summary(runs, s, "gcn_accuracy", scale=100.0) for s in SETS}
        for d, runs in found.items()
    }
    header = ["dataset"]
    header += [f"{s}_share{end}" for s in SETS for end in ("", "_std")]
    header += [f"gcn_accuracy_{s}{end}" for s in SETS for end in ("", "_std")]
    page.csv(
        [*header, "runs"],
        [
            [
                d,
                *(v for s in SETS for v in shares[d][s]),
                *(v for s in SETS for v in accuracy[d][s]),
                len(runs),
            ]
            for d, runs in found.items()
        ],
    )
    page.text(_seen_shares(accuracy, shares))
    names = list(found)
    page.figure(
        utilization_figure(
            names,
            [Series.of(_NAMES[s], [shares[d][s] for d in names]) for s in SETS],
            [Series.of(_NAMES[s], [accuracy[d][s] for d in names]) for s in SETS],
        ),
        "Share of ELU, NELU and unreachable nodes, and the GCN's accuracy on each",
    )
    page.text(
        "Shares among the nodes outside the training set, and the GCN's accuracy on "
        "the test nodes of each set, in percent, mean ± standard deviation over runs. "
        "Unreachable: no training label gets there in the steps of label propagation, "
        "which then says nothing, so that Definition 1 does not apply."
    )
    page.table(
        [
            "dataset",
            *(f"{_NAMES[s]} share" for s in SETS),
            *(f"GCN on {_NAMES[s]}" for s in SETS),
            "runs",
        ],
        [
            [
                d,
                *(show(*shares[d][s]) for s in SETS),
                *(show(*accuracy[d][s]) for s in SETS),
                len(runs),
            ]
            for d, runs in found.items()
        ],
    )


def _seen_shares(
    accuracy: dict[str, dict[str, Number]], shares: dict[str, dict[str, Number]]
) -> str:
    """What the numbers say, beside what the paper says."""
    gaps = {}
    for dataset, of in accuracy.items():
        elu, nelu = of["elu"][0], of["nelu"][0]
        if elu is not None and nelu is not None:
            gaps[dataset] = elu - nelu
    claim = (
        "The paper's figure 2 (Cora, Citeseer, Pubmed) says that every dataset has "
        "NELU nodes and that the GCN is better on ELU nodes than on NELU nodes."
    )
    if not gaps:
        return f"No run has both kinds of nodes. {claim}"
    with_nelu = sum((of["nelu"][0] or 0.0) > 0 for of in shares.values())
    better = sum(gap > 0 for gap in gaps.values())
    low, high = min(gaps, key=gaps.__getitem__), max(gaps, key=gaps.__getitem__)
    return (
        f"There are NELU nodes {several(with_nelu, len(shares))}, and the GCN is more "
        f"accurate on ELU nodes than on NELU nodes {several(better, len(gaps))}: by "
        f"{gaps[low]:+.1f} points ({low}) to {gaps[high]:+.1f} points ({high}). {claim}"
    )


def write_nelu(finished: list[Finished], page: Page) -> None:
    """Accuracy of both on each set of test nodes, and the paired gain."""
    found = by_dataset(finished)
    gains = {d: {s: _gain(runs, s) for s in TEST_SETS} for d, runs in found.items()}
    second = {
        d: {s: _gain(runs, s, "second_accuracy") for s in TEST_SETS}
        for d, runs in found.items()
    }
    header = ["dataset", "nodes", "gcn_accuracy", "gcn_accuracy_std", "accuracy"]
    header += ["accuracy_std", "gain", "gain_std", "gain_low", "gain_high", "p"]
    header += ["second_gcn_gain", "second_gcn_gain_std", "runs"]
    rows = []
    for d, runs in found.items():
        for s in TEST_SETS:
            gain, interval = gains[d][s]
            ends = (
                (None, None, None)
                if interval is None
                else (interval.low, interval.high, interval.t_pvalue)
            )
            gcn = summary(runs, s, "gcn_accuracy", scale=100.0)
            final = summary(runs, s, "accuracy", scale=100.0)
            count = len(values(runs, s, "accuracy"))
            rows.append([d, s, *gcn, *final, *gain, *ends, *second[d][s][0], count])
    page.csv(header, rows)
    page.text(_seen_gains(gains, second))
    names = list(found)
    ours = [
        Series(_NAMES[s], *_bars([gains[d][s] for d in names]))
        for s in TEST_SETS
        if s != "unreachable"
    ]
    page.figure(
        bar_figure(
            names,
            [
                ours[0],
                Series(CONTROL, *_bars([second[d]["nelu"] for d in names])),
                *ours[1:],
            ],
            "gain over the GCN in points",
        ),
        "Gain of ELU-GCN over its GCN in points on NELU, ELU and all test nodes, and "
        "that of a second GCN on NELU nodes",
    )
    page.text(
        "Accuracy of ELU-GCN minus that of the GCN it trains first, on the same test "
        "nodes of the same run, in points: mean ± standard deviation over runs, with "
        "the paired 95 % interval in brackets, which the error bars show. Which nodes "
        "are NELU is decided by label propagation and that GCN (Definition 1); where "
        "validation prefers the GCN, ELU-GCN returns it and the gain is zero. The GCN "
        "is part of the definition, and NELU nodes are those where it is more often "
        "wrong: any second model that errs elsewhere gains there and loses on ELU "
        "nodes. How much that is, the second GCN shows: the same GCN trained once more "
        "from another seed. What ELU-GCN does for NELU nodes is its gain beyond that."
    )
    page.table(
        ["dataset", "model", *(_NAMES[s] for s in TEST_SETS), "runs"],
        [
            [d, name, *(_show(of[d][s]) for s in TEST_SETS), len(runs)]
            for d, runs in found.items()
            for name, of in (("ELU-GCN", gains), ("second GCN", second))
        ],
    )


def _gain(runs: dict[Pair, Measured], chosen: str, of: str = "accuracy") -> Gain:
    """Mean and spread of the gain in points, and its interval from two runs on."""
    ours = values(runs, chosen, of)
    theirs = values(runs, chosen, "gcn_accuracy")
    # Accuracies are counts: equal ones differ in the last digits here.
    gains = [round(100.0 * (ours[p] - theirs[p]), 9) for p in ours if p in theirs]
    return mean_std(gains), paired_difference(ours, theirs)


def _bars(gains: list[Gain]) -> tuple[list[float | None], list[float | None]]:
    """Heights and half widths of the intervals."""
    halves = [None if d is None else (d.high - d.low) / 2 for _, d in gains]
    return [gain for (gain, _), _ in gains], halves


def _show(gain: Gain) -> str:
    (mean, std), interval = gain
    text = show(mean, std)
    if interval is None:
        return text
    low, high = (without_minus_zero(v, 1) for v in (interval.low, interval.high))
    return f"{text} [{low:.1f}, {high:.1f}]"


def _seen_gains(
    gains: dict[str, dict[str, Gain]], second: dict[str, dict[str, Gain]]
) -> str:
    """What the numbers say, beside what the paper says."""
    claim = (
        "The paper reports +3.7 points on NELU nodes and +2.1 points on all test "
        "nodes, averaged over Cora, Citeseer and Pubmed, and puts most of the gain "
        "down to NELU nodes."
    )
    parts, control = _averages(gains), _averages(second)
    if not any(of["nelu"][0][0] is not None for of in gains.values()):
        return f"No run has NELU nodes in its test set. {claim}"
    sure = [d for d, of in gains.items() if (i := of["nelu"][1]) and i.low > 0]
    worse = [d for d, of in gains.items() if (i := of["nelu"][1]) and i.high < 0]
    text = (
        f"Averaged over {len(gains)} dataset(s), ELU-GCN gains {parts}; a second GCN "
        f"gains {control}. On "
        f"NELU nodes the 95 % interval of the gain is above zero on "
        f"{', '.join(sure) or 'no dataset'} and below zero on "
        f"{', '.join(worse) or 'no dataset'}."
    )
    return f"{text} {claim}"


def _averages(gains: dict[str, dict[str, Gain]]) -> str:
    """``+2.0 points on NELU nodes, …``: means over the datasets that have them."""
    means = {
        s: [m for of in gains.values() if (m := of[s][0][0]) is not None]
        for s in ("nelu", "elu", "all")
    }
    return ", ".join(
        f"{float(np.mean(v)):+.1f} points on {_NAMES[s]} nodes"
        for s, v in means.items()
        if v
    )


UTILIZATION = Experiment(
    name="utilization",
    title="Label utilization",
    question=(
        "How many nodes make use of the labels (Definition 1), and is the GCN better "
        "on them? (Figure 2 of the paper)"
    ),
    plan=plan,
    write=write_utilization,
)
NELU = Experiment(
    name="nelu",
    title="Gain on NELU nodes",
    question=(
        "Does ELU-GCN help where the GCN does not make use of the labels? (The "
        "paper's analysis of the improvement on NELU nodes)"
    ),
    plan=plan,
    write=write_nelu,
)
