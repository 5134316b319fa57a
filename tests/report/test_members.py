"""Members of the default: in sentences, by hand, and on the page."""

from pathlib import Path
from typing import Any

import pytest
import torch

from elugcn.api import Fitted
from elugcn.insight import (
    Members,
    elu_text,
    left_out_text,
    measured_text,
    members_text,
)
from elugcn.report import write_report
from elugcn.report.evaluation import evaluate
from elugcn.report.verdict import verdict
from tests.insight.conftest import mask
from tests.report.conftest import EVIL, contents, records
from tests.report.test_page import Page


def trial(name: str, weight: float, elu: bool = False, **more: Any) -> dict[str, Any]:
    usual = {
        "method": "linear",
        "score": 0.8,
        "loss": 0.5,
        "epochs": 12,
        "seconds": 1.0,
    }
    return {"name": name, "weight": weight, "elu": elu} | usual | more


TRIALS = [
    trial("far", 0.4, loss=0.53, epochs=300),
    trial("idle", 0.0, loss=0.9, score=0.6125),
    trial("short", 0.1, score=float("nan"), loss=None),
    trial("two views", 0.3, True, method="elu-gcn", epochs=200),
    trial("deep", 0.2),
]


def details(**more: Any) -> dict[str, Any]:
    elu = {"weight": 0.3, "score": 0.93, "loss": 0.4, "score_without": 0.91,
           "loss_without": 0.45}  # fmt: skip
    usual = {"judged_on": "500 validation nodes", "refit": False, "left_out": []}
    elu |= more.pop("elu", {})
    return usual | {"elu": elu, "trials": TRIALS} | more


def members(**more: Any) -> Members:
    found = Members.of(details(**more))
    assert found is not None
    return found


def test_the_heaviest_members_are_named() -> None:
    line = "Members: 40% far; 30% two views; 20% deep; 1 more (of 5 tried)."
    assert members_text(members()) == line
    one = members(trials=[trial("far", 1.0)])
    assert members_text(one) == "Members: 100% far (of 1 tried)."
    assert members().longest == "far"


FOLDS = "48 labelled nodes, in 5 folds"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({}, ""),
        ({"judged_on": FOLDS}, f"Validation is cross-validation: {FOLDS}."),
        ({"judged_on": FOLDS, "refit": True},
         f"Validation is cross-validation: {FOLDS}. Validation nodes trained the "
         "answer, too."),
        ({"refit": True},
         "They judged first; then validation nodes trained the answer, too."),
        ({"elu": {"score": None}, "judged_on": "0 validation nodes"},
         "There are no nodes to validate on: the first member is the answer."),
    ],
)  # fmt: skip
def test_what_a_score_was_measured_on(more: dict[str, Any], says: str) -> None:
    assert measured_text(members(**more)) == says


@pytest.mark.parametrize(
    ("elu", "says"),
    [
        ({}, "add 2.0 points of validation accuracy (93.0% instead of 91.0%, 10 of 500 "
             "nodes)."),
        ({"score_without": 0.92}, "add 1.0 point of validation accuracy (93.0% instead "
                                  "of 92.0%, 5 of 500 nodes)."),
        ({"score_without": 0.95}, "cost 2.0 points of validation accuracy (93.0% "
         "instead of 95.0%, 10 of 500 nodes). They were chosen for a lower log-loss."),
        ({"score_without": 0.926}, "carry 30% of the answer and change validation "
         "accuracy by less than half a point (93.0% instead of 92.6%)."),
        ({"weight": 0.0}, "add nothing here."),
        ({"score_without": None}, "carry 30% of the answer."),
    ],
)  # fmt: skip
def test_what_elu_adds(elu: dict[str, Any], says: str) -> None:
    assert elu_text(members(elu=elu), "accuracy", 500) == f"ELU members {says}"


def test_what_elu_adds_is_not_said_where_it_is_not_known() -> None:
    assert elu_text(members(trials=[trial("far", 1.0)]), "accuracy", 500) == ""
    assert elu_text(members(elu={"score": None}), "accuracy", 0) == ""
    said = elu_text(members(judged_on=FOLDS), "roc_auc", 48)
    assert said == (
        "ELU members add 2.0 points of cross-validated ROC AUC (93.0% instead of 91.0%)."
    )


def test_what_was_left_out() -> None:
    assert left_out_text(members()) == ""
    said = left_out_text(members(left_out=list("abcde")))
    assert said == "Not tried, because they would take too long: a; b; c; 2 more."


def test_a_run_without_a_record_has_no_section(six: Fitted) -> None:
    for odd in (None, 5, {}, {"trials": 3}, details(trials=[{"name": "x"}])):
        assert Members.of(odd) is None
        assert contents(six, details=odd).members is None


def page_of(six: Fitted, folder: Path, **more: Any) -> Page:
    six.method = "auto"
    written = write_report(records(folder, details=details(**more)), fitted=six)
    assert "members" in written["sections"]
    return Page(folder / "report.html")


def test_the_section(six: Fitted, tmp_path: Path) -> None:
    trials = [*TRIALS, trial(EVIL, 0.0, True, loss=2.25, seconds=0.034)]
    page = page_of(six, tmp_path, trials=trials, left_out=["slow one"])
    section = page.text.partition("method validation accuracy log-loss")[2]
    rows, _, rest = section.partition("ELU members add")
    assert " ".join(rows.split("together")[0].split()) == (
        "far 40% no linear 80% 0.530 two views 30% yes elu-gcn 80% 0.500 "
        "deep 20% no linear 80% 0.500 short 10% no linear – –"
    )
    assert rows.split("together")[1].split() == ["100%", "93%", "0.400"]
    assert "6 members tried, judged on 500 validation nodes." in rest
    assert "Not tried, because they would take too long: slow one." in rest
    # All of them, by log-loss; one whose loss is unknown comes last.
    listed = rest.partition("seconds weight")[2].partition("The lowest log-loss")[0]
    names = ["two views", "deep", "far", "idle", EVIL, "short"]
    assert sorted(names, key=listed.index) == names
    assert f"{EVIL} yes linear 80% 2.250 12 0.03" in listed
    assert "idle no linear 61% 0.900 12 1.00" in listed
    assert page.tags.count("script") == 1
    assert "img" not in page.tags


def test_cross_validated_numbers_stand_alone(six: Fitted, tmp_path: Path) -> None:
    """Nodes 0, 1 and 5 judge; the models of the folds are right on 0 and 1."""
    six.result.held_out = (
        torch.tensor([5, 0, 1]), torch.tensor([[2.0, 1.0], [2.0, 1.0], [3.0, 1.0]])
    )  # fmt: skip
    six.baselines = {"gcn": six.data.y.clamp(min=0)}
    found = evaluate(six, ["left", "right"])
    assert found is not None
    assert (found.name, found.judged) == ("test", "cross-validated")
    shown = {row["name"]: row["validation"] for row in found.scores}
    two_thirds = pytest.approx(2 / 3)
    expected = {"elu-gcn": two_thirds, "gcn": None, "lpa": None}
    assert shown == expected | {"largest class": two_thirds}
    # Without test nodes, they are what the page leads with. The others have seen them.
    six.data.test_mask = mask(6)
    found = evaluate(six, ["left", "right"])
    assert found is not None
    assert (found.name, found.nodes) == ("cross-validated", 3)
    assert found.headline == [("accuracy", two_thirds)]
    assert [row["name"] for row in found.scores] == ["elu-gcn", "largest class"]
    text = page_of(six, tmp_path, judged_on="3 labelled nodes, in 2 folds").text
    assert "67% accuracy on 3 cross-validated nodes" in text
    assert "predicted by models that were trained without it" in text
    assert "judged on 3 labelled nodes, in 2 folds." in text


def test_validation_nodes_that_trained_the_answer(six: Fitted, tmp_path: Path) -> None:
    """Label propagation trained on node 1, too; the GCN did not."""
    six.result.held_out = torch.tensor([1]), torch.tensor([[0.0, 1.0]])
    six.baselines = {"gcn": six.data.y.clamp(min=0)}
    found = evaluate(six, ["left", "right"])
    assert found is not None
    shown = {row["name"]: row["validation"] for row in found.scores}
    assert shown == {"elu-gcn": 0.0, "gcn": 1.0, "lpa": None, "largest class": 1.0}
    said = verdict(contents(six, details=details(refit=True)))[0]
    assert said == (
        "The difference to a plain GCN (100%; it had fewer labels) is within chance."
    )
    text = page_of(six, tmp_path, refit=True).text
    assert "The validation nodes trained auto, too, after they had judged" in text
    assert "The GCN and the MLP were trained without them." in text
