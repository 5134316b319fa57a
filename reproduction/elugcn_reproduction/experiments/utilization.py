"""Label utilization (figure 2), and what ELU-GCN gains on NELU nodes."""

from __future__ import annotations

import numpy as np

from elugcn.evaluation.statistics import (
    Difference,
    Pair,
    Summary,
    paired_difference,
    summarize,
    without_minus_zero,
)
from elugcn_reproduction.experiments.accuracy import PAPER_DATASETS
from elugcn_reproduction.experiments.base import Experiment, Finished, Planned, Scope
from elugcn_reproduction.experiments.measured import (
    Measured,
    by_dataset,
    flat,
    plan_measured,
    several,
    show,
    summary,
    values,
    with_std,
)
from elugcn_reproduction.figures import CONTROL, draw_gains, draw_utilization
from elugcn_reproduction.page import Page

SETS = {"elu": "ELU", "nelu": "NELU", "unreachable": "unreachable"}
TEST_SETS = {"nelu": "NELU", "elu": "ELU", "unreachable": "unreachable",
             "all": "all test"}  # fmt: skip
Gain = tuple[Summary, Difference | None]
Gains = dict[str, dict[str, Gain]]  # by dataset and set of test nodes


def plan(scope: Scope) -> list[Planned]:
    """ELU-GCN as it is tuned; Definition 1 is of the GCN it trains first."""
    return plan_measured(scope, "utilization", PAPER_DATASETS)


def write_utilization(finished: list[Finished], page: Page) -> None:
    """Shares of the three sets of nodes and the GCN's accuracy on each."""
    found = by_dataset(finished)
    shares, accuracy = (
        {d: {s: summary(runs, s, key) for s in SETS} for d, runs in found.items()}
        for key in ("share", "gcn_accuracy")
    )
    columns = [f"{s}_share" for s in SETS] + [f"gcn_accuracy_{s}" for s in SETS]
    rows = {d: [*shares[d].values(), *accuracy[d].values()] for d in found}
    page.csv(
        ["dataset", *with_std(columns), "runs"],
        [[d, *flat(row), len(found[d])] for d, row in rows.items()],
    )
    page.text(_shares_in_words(accuracy, shares))
    page.figure(
        draw_utilization(
            list(found),
            {name: [shares[d][s] for d in found] for s, name in SETS.items()},
            {name: [accuracy[d][s] for d in found] for s, name in SETS.items()},
        ),
        "Share of ELU, NELU and unreachable nodes, and the GCN's accuracy on each",
    )
    page.text(
        "Shares among the nodes outside the training set, and the GCN's accuracy on "
        "the test nodes of each set, in percent, mean ± standard deviation over runs. "
        "Unreachable: no training label gets there in the steps of label propagation, "
        "so Definition 1 does not apply."
    )
    titles = [f"{name} share" for name in SETS.values()]
    titles += [f"GCN on {name}" for name in SETS.values()]
    page.table(
        ["dataset", *titles, "runs"],
        [[d, *map(show, row), len(found[d])] for d, row in rows.items()],
    )


def _shares_in_words(
    accuracy: dict[str, dict[str, Summary]], shares: dict[str, dict[str, Summary]]
) -> str:
    """What the numbers say, beside what the paper says."""
    gaps = {
        d: of["elu"].mean - of["nelu"].mean
        for d, of in accuracy.items()
        if of["elu"].mean is not None and of["nelu"].mean is not None
    }
    claim = (
        "The paper's figure 2 (Cora, Citeseer, Pubmed) says that every dataset has "
        "NELU nodes and that the GCN is better on ELU nodes than on NELU nodes."
    )
    if not gaps:
        return f"No run has both kinds of nodes. {claim}"
    with_nelu = sum((of["nelu"].mean or 0.0) > 0 for of in shares.values())
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
    gains, second = (
        {d: {s: _gain(runs, s, key) for s in TEST_SETS} for d, runs in found.items()}
        for key in ("accuracy", "second_accuracy")
    )
    header = ["dataset", "nodes", *with_std(["gcn_accuracy", "accuracy", "gain"])]
    header += ["gain_low", "gain_high", "p", *with_std(["second_gcn_gain"]), "runs"]
    rows = []
    for d, runs in found.items():
        for s, (gain, interval) in gains[d].items():
            gcn, final = (summary(runs, s, k) for k in ("gcn_accuracy", "accuracy"))
            ends: tuple[float | None, ...] = (None, None, None)
            if interval is not None:
                ends = interval.low, interval.high, interval.t_pvalue
            others = flat([second[d][s][0]])
            rows.append([d, s, *flat([gcn, final, gain]), *ends, *others, final.runs])
    page.csv(header, rows)
    page.text(_gains_in_words(gains, second))
    bars = {"NELU": (gains, "nelu"), CONTROL: (second, "nelu"), "ELU": (gains, "elu"),
            "all test": (gains, "all")}  # fmt: skip
    page.figure(
        draw_gains(
            list(found),
            {name: [of[d][s][0] for d in found] for name, (of, s) in bars.items()},
            {
                name: [_half(of[d][s][1]) for d in found]
                for name, (of, s) in bars.items()
            },
            "gain over the GCN in points",
        ),
        "Gain of ELU-GCN over its GCN in points on NELU, ELU and all test nodes, and "
        "that of a second GCN on NELU nodes",
    )
    page.text(
        "Accuracy of ELU-GCN minus that of the GCN it trains first, on the same test "
        "nodes of the same run, in points: mean ± standard deviation over runs, with "
        "the paired 95 % interval in brackets, which the error bars show. Label "
        "propagation and that GCN decide which nodes are NELU (Definition 1); where "
        "validation prefers the GCN, ELU-GCN returns it and the gain is zero. The GCN "
        "is part of the definition, and NELU nodes are those where it is more often "
        "wrong: any second model that errs elsewhere gains there and loses on ELU "
        "nodes. The second GCN shows how much that is: the same GCN trained once more "
        "from another seed. What ELU-GCN does for NELU nodes is its gain beyond that."
    )
    page.table(
        ["dataset", "model", *TEST_SETS.values(), "runs"],
        [
            [d, name, *(_show(of[d][s]) for s in TEST_SETS), len(runs)]
            for d, runs in found.items()
            for name, of in (("ELU-GCN", gains), ("second GCN", second))
        ],
    )


def _gain(runs: dict[Pair, Measured], chosen: str, of: str) -> Gain:
    """Mean and spread of the gain in points, and its interval from two runs on."""
    ours, theirs = values(runs, chosen, of), values(runs, chosen, "gcn_accuracy")
    # Accuracies are counts: equal ones differ in the last digits here.
    gains = [round(100.0 * (ours[p] - theirs[p]), 9) for p in ours if p in theirs]
    return summarize(gains, 1.0), paired_difference(ours, theirs)


def _half(interval: Difference | None) -> float | None:
    return None if interval is None else (interval.high - interval.low) / 2


def _show(gain: Gain) -> str:
    mean, interval = gain
    if interval is None:
        return show(mean)
    low, high = (without_minus_zero(v, 1) for v in (interval.low, interval.high))
    return f"{show(mean)} [{low:.1f}, {high:.1f}]"


def _gains_in_words(gains: Gains, second: Gains) -> str:
    """What the numbers say, beside what the paper says."""
    claim = (
        "The paper reports +3.7 points on NELU nodes and +2.1 points on all test "
        "nodes, averaged over Cora, Citeseer and Pubmed, and puts most of the gain "
        "down to NELU nodes."
    )
    if not any(of["nelu"][0].runs for of in gains.values()):
        return f"No run has NELU nodes in its test set. {claim}"
    intervals = {d: of["nelu"][1] for d, of in gains.items()}
    above = ", ".join(d for d, i in intervals.items() if i and i.low > 0)
    below = ", ".join(d for d, i in intervals.items() if i and i.high < 0)
    return (
        f"Averaged over {len(gains)} dataset(s), ELU-GCN gains {_averages(gains)}; a "
        f"second GCN gains {_averages(second)}. On NELU nodes the 95 % interval of the "
        f"gain is above zero on {above or 'no dataset'} and below zero on "
        f"{below or 'no dataset'}. {claim}"
    )


def _averages(gains: Gains) -> str:
    """``+2.0 points on NELU nodes, …``: means over the datasets that have them."""
    parts = []
    for s in ("nelu", "elu", "all"):
        means = [of[s][0].mean for of in gains.values() if of[s][0].runs]
        if means:
            mean = float(np.mean(np.array(means, dtype=np.float64)))
            parts.append(f"{mean:+.1f} points on {TEST_SETS[s]} nodes")
    return ", ".join(parts)


UTILIZATION = Experiment(
    "utilization",
    "Label utilization",
    "How many nodes make use of the labels (Definition 1), and is the GCN better on "
    "them? (Figure 2 of the paper)",
    plan,
    write_utilization,
)
NELU = Experiment(
    "nelu",
    "Gain on NELU nodes",
    "Does ELU-GCN help where the GCN does not make use of the labels? (The paper's "
    "analysis of the improvement on NELU nodes)",
    plan,
    write_nelu,
)
