"""The ablation: the paper's three rows, and what it leaves out."""

from __future__ import annotations

from itertools import product
from typing import Any

from elugcn.elu.options import THE_TEXT
from elugcn.evaluation import Published
from elugcn.evaluation.tables import blocks, markdown_block
from elugcn_reproduction.experiments.accuracy import (
    draw_accuracies,
    write_csv,
    write_notes,
)
from elugcn_reproduction.experiments.base import (
    Experiment,
    Finished,
    Planned,
    Row,
    Scope,
    compare_finished,
    datasets_of,
    only_methods,
    plan_rows,
)
from elugcn_reproduction.page import Page
from elugcn_reproduction.published import published

DATASETS = ("cora", "citeseer", "photo", "chameleon")
QUICK_DATASETS = ("cora",)
REFERENCE = "gcn"
BARE, GRAPH, FULL = "backbone alone", "+ ELU graph", "+ contrastive"
BASE = "elu-gcn"
# What the paper prints for a row; the others are ours alone.
PAPERS = {
    REFERENCE: "gcn",
    GRAPH: "+ELU graph",
    FULL: "+contrastive",
}
PAPER, LEFT_OUT = "paper", "left out"
_GROUPS = {
    PAPER: (
        "## The paper's rows",
        "Our tuned GCN; then the method as published, as tuned for each dataset "
        "(`elu-gcn`), built up: its backbone alone (η = λ = 0), with the ELU "
        "graph as a second view (λ = 0), and with the contrast and entropy terms, "
        "which is all of it.",
    ),
    LEFT_OUT: (
        "## What the paper leaves out",
        f"Each row is “{FULL}” with one thing changed: a term of the loss, the form "
        "and the start of the iteration (each form with the ridge, steps and damping "
        "that suit it: those of the public code, or β = 1, k = 2 and none), how the "
        "graph is stored, where H comes from, whether rows of S* are divided by their "
        "sum. The last row changes all of it to what the text prints: no scaling, no "
        "normalisation, H = XΘ₁Θ₂ as it is, the largest 10 % of S*.",
    ),
}
# Of the form that the text prints; the other one has the public code's.
_PAPER_FORM: dict[str, Any] = {"form": "paper", "beta": 1.0, "k": 2, "damping": 0.0}


def rows() -> dict[str, list[Row]]:
    """The rows of each group."""
    forms: dict[str, dict[str, Any]] = {"paper": _PAPER_FORM, "transposed": {}}

    def changed(name: str, **options: Any) -> Row:
        return Row(name, BASE, options)

    paper = [
        Row(REFERENCE, "gcn"),
        changed(BARE, eta=0.0, lambda_con=0.0),
        changed(GRAPH, lambda_con=0.0),
        changed(FULL),
    ]
    left_out = [
        changed("entropy alone", contrast_weight=0.0),
        changed("contrast alone", entropy_weight=0.0),
        *(
            changed(f"form {form}, init {init}", **values, init=init)
            for (form, values), init in product(forms.items(), ("lpa", "zero", "mlp"))
        ),
        *(
            changed(f"graph {mode}", graph_mode=mode)
            for mode in ("implicit", "topk", "paper")
        ),
        changed("H from the GCN", h_source="gcn"),
        changed("H from the MLP", h_source="mlp"),
        changed("S* not scaled", scaling="none"),
        changed("the text to the letter", **THE_TEXT),
    ]
    return {PAPER: paper, LEFT_OUT: left_out}


def plan(scope: Scope) -> list[Planned]:
    """Every row on every dataset."""
    planned = []
    for dataset in datasets_of(scope, DATASETS, QUICK_DATASETS):
        for group, listed in rows().items():
            wanted = only_methods(scope, listed)
            planned += plan_rows(wanted, dataset, scope, group=group)
    return planned


def write(finished: list[Finished], page: Page) -> None:
    """All rows in a figure, then a table per group."""
    comparison = compare_finished(finished, _published, REFERENCE)
    groups = list({f.planned.row: f.planned.group for f in finished}.values())
    page.figure(
        draw_accuracies(
            comparison,
            columns=4,
            breaks=[i for i in range(1, len(groups)) if groups[i] != groups[i - 1]],
        ),
        "Test accuracy of each part of the method, by dataset",
    )
    for group, (heading, words) in _GROUPS.items():
        members = {f.planned.row for f in finished if f.planned.group == group}
        if members:
            part = comparison.only(list(members))
            page.text(f"{heading}\n\n{words}")
            for block in blocks(part):
                page.text(markdown_block(part, block))
    write_notes(page, comparison)
    write_csv(page, comparison)


def _published(row: str, dataset: str) -> Published | None:
    return published(PAPERS[row], dataset) if row in PAPERS else None


ABLATION = Experiment(
    "ablation",
    "Ablation",
    "What does each part of the method add: the ELU graph, the contrast, and the "
    "choices the paper does not study (the paper's ablation table)?",
    plan,
    write,
)
