"""The summary in sentences, from numbers typed by hand."""

from dataclasses import replace
from typing import Any

import pytest

from elugcn.api import Fitted
from elugcn.report.content import Content
from elugcn.report.evaluation import Calibration
from elugcn.report.verdict import accuracy_percent, verdict
from tests.insight.conftest import mask
from tests.report.conftest import contents


@pytest.fixture
def content(six: Fitted) -> Content:
    six.baselines = {"gcn": six.data.y}
    return contents(six)


def score(name: str, accuracy: float, **more: Any) -> dict[str, Any]:
    return {"name": name, "accuracy": accuracy, "balanced": 0.5, "clear": True} | more


def on(content: Content, nodes: int, *scores: dict[str, Any], **more: Any) -> Content:
    """The content with these scores on so many test nodes."""
    assert content.evaluation is not None
    scored = [*scores, score("largest class", more.pop("largest", 0.2))]
    parts: dict[str, Any] = {"classes": []} | more
    found = replace(content.evaluation, nodes=nodes, scores=scored, **parts)
    return replace(content, evaluation=found)


def test_accuracies_have_the_digits_they_deserve() -> None:
    cases = [(0.8512, 1000), (0.8512, 100), (0.9999, 1000), (None, 0)]
    said = [accuracy_percent(*case) for case in cases]
    assert said == ["85.1%", "85%", ">99.9%", "–"]


OURS, MLP = score("elu-gcn", 0.85), score("mlp", 0.5)
CLASSES = [
    {"name": "a", "nodes": 1200, "recall": 0.9},
    {"name": "b", "nodes": 300, "recall": 0.35},
    {"name": "c", "nodes": 3, "recall": 0.0},  # too few to mention
]
FIRST: dict[str, tuple[Any, dict[str, Any], str]] = {
    "more": ([OURS, score("gcn", 0.75), MLP], {},
             "This is 10.0 points more than a plain GCN (75.0%)."),
    "less": ([OURS, score("gcn", 0.95), MLP], {},
             "This is 10.0 points less than a plain GCN (95.0%)."),
    "one point": ([OURS, score("gcn", 0.84)], {},
                  "This is 1.0 point more than a plain GCN (84.0%)."),
    "chance": ([OURS, score("gcn", 0.86, clear=False)], {},
               "The difference to a plain GCN (86.0%) is within chance."),
    "a weak class": ([score("gcn", 0.8)], {"classes": CLASSES},
                     "The weakest class is “b”: 35% of its 300 nodes are found."),
    "uneven": ([score("gcn", 0.93)],
               {"largest": 0.92, "uneven": True, "classes": CLASSES},
               "The classes are uneven: always predicting the largest one has an "
               "accuracy of 92.0%. Recall: a 90%, b 35%, c 0%."),
}  # fmt: skip


@pytest.mark.parametrize(("scores", "more", "says"), FIRST.values(), ids=FIRST)
def test_the_first_paragraph_is_about_accuracy(
    content: Content, scores: list[Any], more: dict[str, Any], says: str
) -> None:
    assert verdict(on(content, 1503, *scores, **more))[0] == says


def test_the_second_paragraph_is_about_labels(content: Content) -> None:
    elu, nelu, cut = content.statuses
    tested = [
        elu | {"tested": 50, "model_accuracy": 0.9},
        nelu | {"tested": 50, "model_accuracy": 0.5},
        cut | {"nodes": 2000, "share": 0.0004},
    ]
    alone = [elu | {"share": 1.0}, nelu | {"nodes": 0}, cut | {"nodes": 0}]
    start = "Labels are used on 67% of the nodes (ELU). On 17%, label propagation and "
    start += "the GCN disagree (NELU)"
    for statuses, said in (
        (content.statuses, f"{start}. No label reaches 1 node (17%)."),
        (tested, f"{start}; there the model is right on 50% instead of 90%. No label "
                 "reaches 2,000 nodes (<1%)."),
        (alone, "Labels are used on 100% of the nodes (ELU)."),
        ([], "2 of 6 nodes had a label to learn from."),
    ):  # fmt: skip
        assert verdict(replace(content, statuses=statuses))[1] == said


@pytest.mark.parametrize(
    ("nodes", "confidence", "accuracy", "error", "says"),
    [
        (900, 0.86, 0.85, 0.02, "Its probabilities are reliable: on average it is 86% "
                                "confident and 85% right."),
        (900, 0.95, 0.70, 0.25, "Do not rely on its probabilities: the model is "
                                "overconfident;"),
        (900, 0.80, 0.85, 0.05, "Use its probabilities with caution: the model is "
                                "underconfident;"),
        (900, 0.85, 0.85, 0.08, "overconfident on some nodes and underconfident on "
                                "others"),
        (12, 0.95, 0.70, 0.25, "There are too few nodes to judge its probabilities"),
    ],
    ids=["reliable", "overconfident", "underconfident", "mixed", "few"],
)  # fmt: skip
def test_the_third_paragraph_is_about_probabilities(
    content: Content, nodes: int, confidence: float, accuracy: float, error: float,
    says: str,
) -> None:  # fmt: skip
    found = Calibration([(confidence, accuracy, nodes)], confidence, accuracy, error)
    shown = on(content, nodes, score("gcn", 0.9), calibration=found)
    assert says in verdict(shown)[-1]


def test_without_held_out_labels(six: Fitted) -> None:
    six.data.test_mask = six.data.val_mask = mask(6)
    first, _, last = verdict(contents(six))
    assert first == "No labels were held out, so the accuracy of this model is unknown."
    assert last == "Without held-out labels, its probabilities cannot be verified."
