"""Figure 3: the ELU graph beside the original one, nodes ordered by class."""

from __future__ import annotations

from elugcn.evaluation.statistics import Summary
from elugcn_reproduction.experiments.base import (
    Experiment,
    Finished,
    Planned,
    Scope,
    two_views,
)
from elugcn_reproduction.experiments.measured import (
    Measured,
    by_dataset,
    flat,
    plan_measured,
    several,
    show,
    summary,
    with_std,
)
from elugcn_reproduction.figures import BlockMap, draw_blocks
from elugcn_reproduction.page import Page

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


def plan(scope: Scope) -> list[Planned]:
    """The two-view setting: its graph is always learned and used."""
    return plan_measured(scope, "heatmap", DATASETS, two_views)


def write(finished: list[Finished], page: Page) -> None:
    """Both graphs as blocks, and the share of their weight inside classes."""
    found = by_dataset(finished)
    rows = {
        d: {column: summary(runs, *keys) for column, (_, keys) in _COLUMNS.items()}
        for d, runs in found.items()
    }
    page.csv(
        ["dataset", *with_std(_COLUMNS), "runs"],
        [[d, *flat(rows[d].values()), len(runs)] for d, runs in found.items()],
    )
    page.text(_in_words(rows))
    page.figure(
        draw_blocks(
            [m for d, runs in found.items() for m in _maps(d, runs[min(runs)])]
        ),
        "Block means of the original graph and of the ELU graph, ordered by class",
    )
    page.text(
        "Rows and columns are the nodes with a known class, ordered by class (lines "
        "separate the classes), in about 60 blocks. The colour is the mean entry of a "
        "block in the run of the first seed, exact from the factors of S*. In the "
        "titles: the share of the positive weight that joins nodes of one class."
    )
    page.text(
        "Percent, mean ± standard deviation over runs. Pairs of one class: what a "
        "graph without any structure would have inside classes. S* has negative "
        "entries: its positive entries alone and its absolute entries are summed on "
        "at most 1,024 rows spread evenly over the classes. The share of the signed "
        "sum (`elu_inside` in the CSV) is exact, but exceeds 100 where the entries "
        "between classes are negative in total."
    )
    shown = [column for column in _COLUMNS if column != "elu_inside"]
    page.table(
        ["dataset", *(_COLUMNS[column][0] for column in shown), "runs"],
        [
            [d, *(show(rows[d][column]) for column in shown), len(runs)]
            for d, runs in found.items()
        ],
    )


def _maps(dataset: str, measured: Measured) -> list[BlockMap]:
    """The two panels of a dataset."""
    out = []
    for graph, name, key in (("original", "Â", "inside"),
                             ("elu", "ELU graph", "inside_positive")):  # fmt: skip
        share = measured[graph][key]
        inside = "" if share is None else f"\n{100 * share:.0f} % inside classes"
        sizes = measured["block_class"], measured["block_size"]
        title = f"{dataset}, {name}{inside}"
        out.append(BlockMap(title, measured[graph]["means"], *sizes))
    return out


def _in_words(rows: dict[str, dict[str, Summary]]) -> str:
    """What the numbers say, beside what the paper says."""
    columns = ("elu_inside_positive", "original_inside", "same_class_pairs")
    seen = {
        d: [row[column].mean or 0.0 for column in columns] for d, row in rows.items()
    }
    above = sum(elu > chance for elu, _, chance in seen.values())
    more = sum(elu > original for elu, original, _ in seen.values())
    each = ", ".join(
        f"{d} {elu:.0f} % (Â {original:.0f} %, chance {chance:.0f} %)"
        for d, (elu, original, chance) in seen.items()
    )
    return (
        f"Of the positive weight of the ELU graph, this is inside classes: {each}. "
        f"That is above chance {several(above, len(seen))} and above the original "
        f"graph {several(more, len(seen))}. The paper's figure 3 (Cora, Computers, "
        "Photo, Chameleon) says that the ELU graph is clearly block-diagonal, on the "
        "heterophilous Chameleon too."
    )


HEATMAP = Experiment(
    "heatmap",
    "The ELU graph by class",
    "Does the ELU graph join nodes of one class, where the original graph does and "
    "where it does not? (Figure 3 of the paper)",
    plan,
    write,
)
