"""Figure 3: the ELU graph beside the original one, nodes ordered by class."""

from __future__ import annotations

from elugcn_reproduction.experiments.base import (
    Experiment,
    Finished,
    Planned,
    Scope,
    two_views,
)
from elugcn_reproduction.experiments.measured import (
    Measured,
    Number,
    by_dataset,
    plan_measured,
    several,
    show,
    summary,
)
from elugcn_reproduction.figures import BlockMap, block_figure
from elugcn_reproduction.page import Page

MEASURE = "elugcn_reproduction.measures:heatmap"
DATASETS = ("cora", "citeseer", "photo", "chameleon")
# Column of the CSV: heading of the table, place of the fraction in a run.
_COLUMNS = {
    "homophily": ("edge homophily", ("homophily",)),
    "same_class_pairs": ("pairs of one class", ("same_class_pairs",)),
    "original_inside": ("Â inside classes", ("original", "inside")),
    "elu_inside_positive": ("S* > 0 inside", ("elu", "inside_positive")),
    "elu_inside_absolute": ("|S*| inside", ("elu", "inside_absolute")),
    "elu_inside": ("Σ S* inside", ("elu", "inside")),
}
Row = dict[str, Number]


def plan(scope: Scope) -> list[Planned]:
    """The tuned two-view member alone: its graph is always learned and used."""
    return plan_measured(scope, MEASURE, DATASETS, two_views)


def write(finished: list[Finished], page: Page) -> None:
    """Both graphs as blocks, and the share of their weight inside classes."""
    found = by_dataset(finished)
    rows = {
        d: {c: summary(runs, *k, scale=100.0) for c, (_, k) in _COLUMNS.items()}
        for d, runs in found.items()
    }
    header = ["dataset", *(c + end for c in _COLUMNS for end in ("", "_std")), "runs"]
    page.csv(
        header,
        [
            [d, *(v for c in _COLUMNS for v in rows[d][c]), len(runs)]
            for d, runs in found.items()
        ],
    )
    page.text(_seen(rows))
    maps = [m for d, runs in found.items() for m in _maps(d, runs[min(runs)])]
    page.figure(
        block_figure(maps, columns=4 if len(found) > 1 else 2),
        "Block means of the original graph and of the ELU graph, ordered by class",
    )
    page.text(
        "Rows and columns are the nodes with a known class, ordered by class (lines "
        "part the classes), in about 60 blocks; the colour is the mean entry of a "
        "block in the run of the first seed, exact from the factors of S*. In the "
        "titles: the share of the positive weight that joins nodes of one class."
    )
    page.text(
        "Percent, mean ± standard deviation over runs. Pairs of one class: what a "
        "graph without any structure would have inside classes. S* has negative "
        "entries: its positive entries alone and its absolute entries are summed on "
        "at most 1,024 rows spread evenly over the classes. The share of the signed "
        "sum (`elu_inside` in the CSV) is exact, but passes 100 where what joins "
        "different classes is negative in total."
    )
    shown = [c for c in _COLUMNS if c != "elu_inside"]
    page.table(
        ["dataset", *(_COLUMNS[c][0] for c in shown), "runs"],
        [
            [d, *(show(*rows[d][c]) for c in shown), len(runs)]
            for d, runs in found.items()
        ],
    )


def _maps(dataset: str, measured: Measured) -> list[BlockMap]:
    """The two panels of a dataset."""
    out = []
    for graph, name, share in (
        ("original", "Â", measured["original"]["inside"]),
        ("elu", "ELU graph", measured["elu"]["inside_positive"]),
    ):
        inside = "" if share is None else f"\n{100 * share:.0f} % inside classes"
        out.append(
            BlockMap(
                f"{dataset}, {name}{inside}",
                measured[graph]["means"],
                measured["block_class"],
                measured["block_size"],
            )
        )
    return out


def _seen(rows: dict[str, Row]) -> str:
    """What the numbers say, beside what the paper says."""
    claim = (
        "The paper's figure 3 (Cora, Computers, Photo, Chameleon) says that the ELU "
        "graph is clearly block-diagonal, on the heterophilous Chameleon too."
    )
    seen = {}
    for d, row in rows.items():
        elu, chance = row["elu_inside_positive"][0], row["same_class_pairs"][0]
        original = row["original_inside"][0]
        if elu is not None and chance is not None and original is not None:
            seen[d] = (elu, original, chance)
    above = sum(elu > chance for elu, _, chance in seen.values())
    more = sum(elu > original for elu, original, _ in seen.values())
    each = ", ".join(
        f"{d} {elu:.0f} % (Â {original:.0f} %, chance {chance:.0f} %)"
        for d, (elu, original, chance) in seen.items()
    )
    return (
        f"Of the positive weight of the ELU graph, this is inside classes: {each}. "
        f"That is above chance {several(above, len(seen))} and above the original "
        f"graph {several(more, len(seen))}. {claim}"
    )


HEATMAP = Experiment(
    name="heatmap",
    title="The ELU graph by class",
    question=(
        "Does the ELU graph join nodes of one class, where the original graph does "
        "and where it does not? (Figure 3 of the paper)"
    ),
    plan=plan,
    write=write,
)
