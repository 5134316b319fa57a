"""The ablation: the paper's three rows, what it leaves out, and what lies beyond."""

from __future__ import annotations

from itertools import product
from typing import Any

from elugcn.config import resolve_config
from elugcn.evaluation.tables import accuracy_block, further_blocks
from elugcn.experiments.base import Experiment, Finished, Planned, Row, Scope
from elugcn.experiments.output import Page
from elugcn.experiments.planning import (
    SINGLE,
    datasets_of,
    only_methods,
    plan_rows,
    two_views,
)
from elugcn.experiments.rows import (
    compare_finished,
    draw_comparison,
    say_notes,
    write_csv,
)
from elugcn.methods.elu_config import ELUGCNConfig

DATASETS = ("cora", "citeseer", "photo", "chameleon")
QUICK_DATASETS = ("cora",)
REFERENCE = "gcn"
GRAPH, FULL = "+ ELU graph", "+ contrastive"
# What the paper prints for a row; the others are ours alone.
PAPERS = {
    REFERENCE: "gcn",
    GRAPH: "+ELU graph",
    FULL: "+contrastive",
    "elu-gcn-paper": "elu-gcn-paper",
    "elu-gcn": "elu-gcn",
}
PAPER, LEFT_OUT, BEYOND = "paper", "left out", "beyond"
_GROUPS = {
    PAPER: (
        "## The paper's rows",
        "The plain GCN; the ELU graph as a second view (λ = 0); and the contrast and "
        "entropy terms. The two-view setting is the tuned one of each dataset, with a "
        "fixed η and nothing chosen among members. `elu-gcn-paper` is the method as "
        "published, choice by choice.",
    ),
    LEFT_OUT: (
        "## What the paper leaves out",
        f"Each row is “{FULL}” with one thing changed: a term of the loss, the form "
        "and the start of the iteration, how the graph is stored, where H comes from.",
    ),
    BEYOND: (
        "## Beyond the paper",
        "ELU nodes as training targets, rounds, random propagation with consistency; "
        "the direction of edges, where the tuned values use it; and the default "
        "`elu-gcn`, a mean of its members weighted by their validation accuracy.",
    ),
}
_RANDOM: dict[str, Any] = {
    "direction": "given",  # a propagation of several steps can't keep them apart
    "order": 8,
    "drop_node": 0.5,
    "dropout": 0.5,
    "draws": 2,
    "lambda_cons": 1.0,
    "lambda_con": 0.0,
    "warmup": 100,
    "eta": 0.0,
}


def rows(dataset: str) -> dict[str, list[Row]]:
    """The rows of each group, on top of the two-view setting tuned for the dataset."""
    base = two_views(dataset)
    random = SINGLE | _RANDOM

    def changed(name: str, **options: Any) -> Row:
        return Row(name, "elu-gcn", base | options)

    paper = [
        Row(REFERENCE, "gcn"),
        changed(GRAPH, lambda_con=0.0),
        changed(FULL),
        Row("elu-gcn-paper", "elu-gcn-paper"),
    ]
    left_out = [
        changed("entropy alone", contrast_weight=0.0),
        changed("contrast alone", entropy_weight=0.0),
        *(
            changed(f"form {form}, init {init}", form=form, init=init)
            for form, init in product(("paper", "transposed"), ("lpa", "zero", "mlp"))
        ),
        *(
            changed(f"graph {mode}", graph_mode=mode)
            for mode in ("implicit", "topk", "paper")
        ),
        changed("H from the GCN", h_source="gcn"),
        changed("H from the MLP", h_source="mlp"),
    ]
    beyond = [
        changed("two views, ELU targets", pseudo_weight=0.5),
        changed("two views, 2 rounds", rounds=2),
        changed("two views, ELU targets, 2 rounds", pseudo_weight=0.5, rounds=2),
        Row("random propagation", "elu-gcn", random),
        Row("random, ELU targets", "elu-gcn", random | {"pseudo_weight": 0.5}),
        Row(
            "random, ELU targets, 2 rounds",
            "elu-gcn",
            random | {"pseudo_weight": 0.5, "rounds": 2},
        ),
        *_directed(dataset),
        Row("elu-gcn, best member alone", "elu-gcn", {"ensemble": False}),
        Row("elu-gcn", "elu-gcn"),
    ]
    return {PAPER: paper, LEFT_OUT: left_out, BEYOND: beyond}


def _directed(dataset: str) -> list[Row]:
    """What the direction of edges adds, where the tuned values use it."""
    gcn, elu = (resolve_config(m, dataset) for m in ("gcn", "elu-gcn"))
    rows = []
    if gcn.direction not in ("given", "both"):
        rows.append(Row("gcn, direction forgotten", "gcn", {"direction": "both"}))
    if elu.direction not in ("given", "both"):
        options = {"direction": "both"}
        rows.append(Row("elu-gcn, direction forgotten", "elu-gcn", options))
    if isinstance(elu, ELUGCNConfig) and elu.lpa_graph != "edges":
        options = {"lpa_graph": "edges"}
        rows.append(Row("elu-gcn, labels along edges", "elu-gcn", options))
    return rows


def plan(scope: Scope) -> list[Planned]:
    """Every row on every dataset."""
    planned = []
    for dataset in datasets_of(scope, DATASETS, QUICK_DATASETS):
        for group, listed in rows(dataset).items():
            wanted = only_methods(scope, listed)
            planned += plan_rows(wanted, dataset, scope, group=group)
    return planned


def write(finished: list[Finished], page: Page) -> None:
    """All rows in a figure, then a table a group."""
    comparison = compare_finished(finished, PAPERS, REFERENCE)
    names = comparison.methods
    groups = list({f.planned.row: f.planned.group for f in finished}.values())
    breaks = [i for i in range(1, len(names)) if groups[i] != groups[i - 1]]
    page.figure(
        page.experiment.name,
        draw_comparison(comparison, columns=4, breaks=breaks),
        "Test accuracy of each part of the method, by dataset",
    )
    for group, (heading, words) in _GROUPS.items():
        members = {f.planned.row for f in finished if f.planned.group == group}
        if not members:
            continue
        part = comparison.only(list(members))
        page.text(f"{heading}\n\n{words}")
        page.text(accuracy_block(part))
        for block in further_blocks(part):
            page.text(block)
    say_notes(page, comparison)
    write_csv(page, comparison)


EXPERIMENT = Experiment(
    "ablation",
    "Ablation",
    "What does each part of the method add: the ELU graph, the contrast, and the "
    "choices the paper does not study (the paper's ablation table)?",
    plan,
    write,
)
