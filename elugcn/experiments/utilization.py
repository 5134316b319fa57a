"""Figure 2: how many nodes use the labels, and how well the GCN does on them."""

from __future__ import annotations

from elugcn.experiments.base import Experiment, Finished, Planned, Scope
from elugcn.experiments.measured import (
    Number,
    by_dataset,
    plan_measured,
    several,
    show,
    summary,
)
from elugcn.experiments.output import Page
from elugcn.report.blocks import Series, utilization_figure

SETS = ("elu", "nelu", "unreachable")
_NAMES = {"elu": "ELU", "nelu": "NELU", "unreachable": "unreachable"}


def plan(scope: Scope) -> list[Planned]:
    """ELU-GCN as it is tuned; Definition 1 is of the GCN it trains first."""
    return plan_measured(scope, "utilization")


def write(finished: list[Finished], page: Page) -> None:
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
        "utilization",
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
    page.text(_seen(accuracy, shares))
    names = list(found)
    page.figure(
        "utilization",
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


def _seen(
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


EXPERIMENT = Experiment(
    name="utilization",
    title="Label utilization",
    question=(
        "How many nodes make use of the labels (Definition 1), and is the GCN better "
        "on them? (Figure 2 of the paper)"
    ),
    plan=plan,
    write=write,
)
