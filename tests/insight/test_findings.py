"""Sentences from numbers typed by hand: right in number, order and grammar."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elugcn.insight import findings, format_percent


def overall(elu: int, nelu: int, cut: int = 0, **accuracy: float) -> dict[str, Any]:
    total = elu + nelu + cut
    return {
        name: {
            "nodes": nodes,
            "share": nodes / total,
            "gcn_accuracy": accuracy.get(f"{name}_gcn"),
            "lpa_accuracy": accuracy.get(f"{name}_lpa"),
        }
        for name, nodes in (("elu", elu), ("nelu", nelu), ("unreachable", cut))
    }


def one_class(name: str, nodes: int, elu: float, **more: Any) -> dict[str, Any]:
    row = {"name": name, "nodes": nodes, "elu": elu, "nelu": 1 - elu}
    usual = {"labels": 5, "lpa_nodes": nodes, "pulled_to": "b", "pulled_share": 0.75}
    return row | usual | more


def band(name: str, nodes: int, elu: float, cut: float = 0.0) -> dict[str, Any]:
    return {"name": name, "nodes": nodes, "elu": elu, "unreachable": cut}


def graphs(after: float | None, before: float | None = 6.12) -> dict[str, Any]:
    return {
        "original": {"homophily": 0.824, "complexity": before},
        "elu": {"homophily": 0.767, "complexity": after},
    }


def found(**parts: Any) -> list[str]:
    """The findings of a graph with nothing special but these parts."""
    quiet = {
        "overall": overall(80, 20),
        "classes": [one_class("a", 50, 0.8), one_class("b", 50, 0.8)],
        "degrees": [],
        "distances": [],
        "graphs": {"original": {"homophily": None, "complexity": None}, "elu": None},
    }
    return findings(quiet | parts)


def test_the_model_beside_label_propagation_is_named() -> None:
    parts = {
        "overall": overall(80, 20, elu_gcn=0.9, nelu_gcn=0.4, nelu_lpa=0.7),
        "classes": DOMINANT,
    }
    for model in ("GCN", "linear model"):
        said = found(model=model, **parts)
        assert said[0] == (
            f"Label propagation and the {model} agree on 80% of the nodes (ELU). The "
            f"{model} is right on 90% of these nodes, and on 40% where the two "
            "disagree (NELU)."
        )
        assert f"of the nodes, the {model} 50%." in said[1]
        assert f"The {model} leaves label information unused." in said[2]


FIRST = "Label propagation and the GCN agree on 80% of the nodes (ELU)."
ALONE = "predicted from features alone"
DOMINANT = [
    one_class("a", 50, 0.8, lpa_nodes=30),
    one_class("b", 50, 0.8, lpa_nodes=70),
]
CLOSE = [band("1", 500, 0.8), band("2", 500, 0.7)]
BOTH = (
    "On the original graph, 82% of a node's neighbours have its class; on the ELU "
    "graph, 77% of the weight leads to its class."
)
INDEX = " The ELU graph separates the classes {} (Davies-Bouldin index {} against 6.1; "
UNLABELLED = [
    one_class("a", 100, 0.8),
    *(one_class(f"c{i}", 0, 0.0, labels=0, nelu=None) for i in range(6)),
]
UNKNOWN = "{} no training label, so the model cannot learn {}."


def weak(labels: int) -> dict[str, Any]:
    """A class that its labels do not reach, and one that is too small to mention."""
    more = {"pulled_to": "1", "pulled_share": 0.62, "labels": labels}
    rows = [one_class("1", 300, 0.9), one_class("3", 200, 0.41, **more)]
    return {"overall": overall(352, 152), "classes": [*rows, one_class("4", 4, 0.0)]}


SEVENTY = FIRST.replace("80%", "70%")
WEAK = (
    "Class 3 has {}. Only 41% of the 200 nodes predicted as this class are ELU; label "
    "propagation assigns 62% of its NELU nodes to class 1."
)
CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "nothing special": ({}, [FIRST]),
    "accuracies": (
        {"overall": overall(80, 20, elu_gcn=0.876, nelu_gcn=0.72)},
        [FIRST + " The GCN is right on 88% of these nodes, and on 72% where the two "
         "disagree (NELU)."],
    ),
    "a lonely node": (
        {"overall": overall(80, 20, 1)},
        ["Label propagation and the GCN agree on 79% of the nodes (ELU).",
         f"No label reaches 1 node (1%). It is {ALONE}."],
    ),
    "lonely nodes": (
        {"overall": overall(80, 20, 50, unreachable_gcn=0.5),
         "classes": [one_class("a", 150, 0.9)]},
        ["Label propagation and the GCN agree on 53% of the nodes (ELU).",
         f"No label reaches 50 nodes (33%). They are {ALONE}; the GCN is right on "
         "50%."],
    ),
    "nothing is reached": (
        {"overall": overall(0, 0, 7),
         "classes": [one_class("a", 7, 0.0, nelu=0.0, lpa_nodes=0)]},
        [f"No label reaches 7 nodes (100%). They are {ALONE}."],
    ),
    "a weak class": (weak(1), [SEVENTY, WEAK.format("1 label")]),
    "many labels": (weak(1200), [SEVENTY, WEAK.format("1,200 labels")]),
    "an unknown class": (
        {"classes": UNLABELLED[:2]}, [FIRST, UNKNOWN.format("Class c0 has", "it")],
    ),
    "unknown classes": (
        {"classes": UNLABELLED[:3]}, [FIRST, UNKNOWN.format("Classes c0, c1 have", "them")],
    ),
    "many unknown classes": (
        {"classes": UNLABELLED},
        [FIRST, UNKNOWN.format("Classes c0, c1, c2, c3, c4, … have", "them")],
    ),
    "a dominant class": (
        {"classes": DOMINANT},
        [FIRST, "Labels of class b dominate: label propagation assigns it 70% of the "
         "nodes, the GCN 50%."],
    ),
    "unused labels": (
        {"overall": overall(80, 20, nelu_gcn=0.4, nelu_lpa=0.5)},
        [FIRST, "Where the two disagree, label propagation is right more often than "
         "the GCN (50% against 40%). The GCN leaves label information unused."],
    ),
    "bands": (
        {"distances": [band("0", 100, 1.0), band("1", 300, 0.92), band("2", 300, 0.85),
                       band("5+", 200, 0.6), band("none", 100, 0.0, cut=1.0),
                       band("4", 3, 0.1)],
         "degrees": [band("1", 500, 0.58), band("4–7", 500, 0.8), band("64+", 5, 0.0)]},
        [FIRST,
         "80% of the nodes with 4 to 7 neighbours are ELU, but only 58% of the nodes "
         "with 1 neighbour.",
         "92% of the nodes 1 edge from a label are ELU, but only 60% of the nodes 5 or "
         "more edges from a label."],
    ),
    "small gaps": ({"distances": CLOSE, "degrees": CLOSE[:1]}, [FIRST]),
    "a better graph": (
        {"graphs": graphs(1.44)},
        [FIRST, BOTH + INDEX.format("better", 1.4) + "lower is better)."],
    ),
    "no better graph": (
        {"graphs": graphs(7.0)},
        [FIRST, BOTH + INDEX.format("no better", 7.0) + "lower is better)."],
    ),
    "no index": ({"graphs": graphs(None)}, [FIRST, BOTH]),
}  # fmt: skip


@pytest.mark.parametrize(("parts", "said"), CASES.values(), ids=CASES)
def test_sentences(parts: dict[str, Any], said: list[str]) -> None:
    assert found(**parts) == said


def test_what_concerns_more_nodes_comes_first_and_eight_are_enough() -> None:
    said = found(
        overall=overall(600, 300, 100, nelu_gcn=0.4, nelu_lpa=0.5),
        classes=[
            one_class("a", 450, 0.5, labels=1),
            one_class("b", 450, 0.4, lpa_nodes=700),
            one_class("c", 100, 0.3),
            one_class("d", 0, 0.0, labels=0, nelu=None),
        ],
        distances=[band("1", 500, 0.9), band("2", 500, 0.1)],
        degrees=[band("1", 500, 0.9), band("2–3", 500, 0.1)],
        graphs=graphs(None),
    )
    # Shares of nodes times differences: 0.4, 0.4, 0.27, 0.25, 0.225, then 0.1.
    starts = ["Label propagation and the GCN", "Class d has no", "90% of the nodes 1",
              "90% of the nodes with", "Class b has", "Labels of class b",
              "Class a has", "No label reaches"]  # fmt: skip
    assert len(said) == len(starts) == 8
    for sentence, start in zip(said, starts, strict=True):
        assert sentence.startswith(start)


def test_percentages() -> None:
    said = [format_percent(v) for v in (0.0, 0.004, 0.414, 0.996, 1.0, None)]
    assert said == ["0%", "<1%", "41%", ">99%", "100%", "–"]
    said = [format_percent(v, 1) for v in (0.0004, 0.4144, 0.9996)]
    assert said == ["<0.1%", "41.4%", ">99.9%"]


SHARE = st.floats(0, 1)


@given(st.integers(0, 5), st.integers(0, 5), st.integers(1, 2000), SHARE, SHARE)
def test_sentences_are_english_with_any_number(
    elu: int, nelu: int, cut: int, share: float, accuracy: float
) -> None:
    kinds = overall(elu, nelu, cut, elu_gcn=accuracy, nelu_gcn=share,
                    nelu_lpa=accuracy, unreachable_gcn=share)  # fmt: skip
    classes = [one_class("a", cut, share, labels=nelu), one_class("z", elu, 1 - share)]
    bands = [band(n, cut, s) for n, s in (("1", share), ("2–3", accuracy))]
    for said in found(overall=kinds, classes=classes, degrees=bands, distances=bands):
        assert re.match("[A-Z0-9<>]", said)
        assert said.endswith(".")
        assert not re.search(r"\b1 (nodes|labels|neighbours|edges)\b", said)
        assert not re.search(r"\b[02-9] (node|label|neighbour|edge)\b", said)
        assert "None" not in said
        assert "  " not in said
