"""The ablation: the paper's three rows, what it leaves out, and what lies beyond."""

from __future__ import annotations

from itertools import product
from typing import Any

from elugcn.elu.options import THE_TEXT
from elugcn.evaluation import Published
from elugcn.evaluation.tables import blocks, markdown_block
from elugcn.methods.presets import preset
from elugcn_reproduction.experiments.accuracy import (
    draw_accuracies,
    write_csv,
    write_notes,
)
from elugcn_reproduction.experiments.base import (
    SINGLE,
    Experiment,
    Finished,
    Planned,
    Row,
    Scope,
    compare_finished,
    datasets_of,
    only_methods,
    plan_rows,
    two_views,
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
    "auto": "auto",
}
PAPER, LEFT_OUT, BEYOND = "paper", "left out", "beyond"
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
    BEYOND: (
        "## Beyond the paper",
        "Members of the family that `auto` chooses from, each alone with a fixed "
        "η, on the backbone tuned for the GCN: two views, ELU nodes as training "
        "targets, rounds, random propagation with consistency, also with normalised "
        "features; the direction of edges, where the tuned options use it; and "
        "`auto`, a mean of its members weighted by their validation accuracy.",
    ),
}
# Of the form that the text prints; the other one has the public code's.
_PAPER_FORM: dict[str, Any] = {"form": "paper", "beta": 1.0, "k": 2, "damping": 0.0}
_RANDOM: dict[str, Any] = {
    "direction": "given",  # several steps of propagation cannot keep directions apart
    "order": 8,
    "drop_node": 0.5,
    "dropout": 0.5,
    "draws": 2,
    "lambda_cons": 1.0,
    "lambda_con": 0.0,
    "warmup": 100,
    "eta": 0.0,
}
# The same with normalised features, once propagated, as GRAND's authors on Pubmed.
_NORMALISED: dict[str, Any] = _RANDOM | {
    "sample": 500,
    "norm": "batch",
    "dropout": 0.8,
    "input_dropout": 0.5,
    "lr": 0.2,
}


def rows(dataset: str) -> dict[str, list[Row]]:
    """The rows of each group; they depend on the tuned options of the dataset."""
    alone = two_views(dataset)
    random, normalised = SINGLE | _RANDOM, SINGLE | _NORMALISED
    forms: dict[str, dict[str, Any]] = {"paper": _PAPER_FORM, "transposed": {}}

    def changed(name: str, **options: Any) -> Row:
        return Row(name, BASE, options)

    def member(name: str, **options: Any) -> Row:
        return Row(name, "auto", alone | options)

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
    beyond = [
        member("two views"),
        member("two views, ELU targets", pseudo_weight=0.5),
        member("two views, 2 rounds", rounds=2),
        member("two views, ELU targets, 2 rounds", pseudo_weight=0.5, rounds=2),
        Row("random propagation", "auto", random),
        Row("random, ELU targets", "auto", random | {"pseudo_weight": 0.5}),
        Row(
            "random, ELU targets, 2 rounds",
            "auto",
            random | {"pseudo_weight": 0.5, "rounds": 2},
        ),
        Row("random, normalised", "auto", normalised),
        Row(
            "random, normalised, ELU targets",
            "auto",
            normalised | {"pseudo_weight": 0.5},
        ),
        *_directed(dataset),
        Row("auto, best member alone", "auto", {"ensemble": False}),
        Row("auto", "auto"),
    ]
    return {PAPER: paper, LEFT_OUT: left_out, BEYOND: beyond}


def _directed(dataset: str) -> list[Row]:
    """What the direction of edges adds, where the tuned options use it."""
    rows = []
    for method in ("gcn", "auto"):
        tuned = preset(method, dataset)
        if tuned.get("direction", "given") not in ("given", "both"):
            options = {"direction": "both"}
            rows.append(Row(f"{method}, direction ignored", method, options))
        if tuned.get("lpa_graph", "edges") != "edges":
            options = {"lpa_graph": "edges"}
            rows.append(Row(f"{method}, labels along edges", method, options))
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
