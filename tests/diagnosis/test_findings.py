"""Sentences from numbers typed by hand."""

from typing import Any

import pytest

from elugcn.diagnosis.findings import findings, people


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


def klass(name: str, nodes: int, elu: float, **more: Any) -> dict[str, Any]:
    usual = {"labels": 5, "lpa_nodes": nodes, "pulled_to": None, "pulled_share": None}
    row = {"name": name, "nodes": nodes, "elu": elu, "nelu": 1 - elu}
    return row | usual | more


def band(name: str, nodes: int, elu: float) -> dict[str, Any]:
    return {"name": name, "nodes": nodes, "elu": elu}


def result(**parts: Any) -> dict[str, Any]:
    quiet = {
        "overall": overall(80, 20),
        "classes": [klass("a", 50, 0.8), klass("b", 50, 0.8)],
        "degrees": [],
        "distances": [],
        "graphs": {"original": {"homophily": None, "complexity": None}, "elu": None},
    }
    return quiet | parts


def test_nothing_special_is_one_sentence() -> None:
    assert findings(result()) == ["Labels and GCN agree on 80 % of the nodes (ELU)."]


def test_the_class_that_its_labels_do_not_reach() -> None:
    classes = [
        klass("1", 300, 0.9),
        klass("3", 200, 0.41, pulled_to="1", pulled_share=0.62),
        klass("4", 4, 0.0, pulled_to="1", pulled_share=1.0),  # too small to speak of
    ]
    first, second = findings(
        result(overall=overall(352, 152, elu_gcn=0.876, nelu_gcn=0.72), classes=classes)
    )
    assert first == (
        "Labels and GCN agree on 70 % of the nodes (ELU); there the GCN is right on "
        "88 %, and on 72 % where they disagree (NELU)."
    )
    assert second == (
        "Class 3 has 5 labels and reaches 41 % of the 200 nodes the GCN puts in it; "
        "62 % of its NELU nodes are pulled to class 1."
    )


def test_what_concerns_more_nodes_comes_first() -> None:
    said = findings(
        result(
            overall=overall(600, 300, 100, unreachable_gcn=0.5, nelu_gcn=0.4,
                            nelu_lpa=0.5),
            classes=[
                klass("a", 500, 0.5, pulled_to="b", pulled_share=0.75, labels=1),
                klass("b", 500, 0.7, lpa_nodes=700),
                klass("c", 0, 0.0, labels=0, nelu=None),
            ],
        )
    )  # fmt: skip
    assert said[1:] == [
        "Class c has no training label: nothing tells the model about it.",
        "Class a has 1 label and reaches 50 % of the 500 nodes the GCN puts in it; "
        "75 % of its NELU nodes are pulled to class b.",
        "Labels of class b drown others: they are the strongest on 70 % of the nodes, "
        "and the GCN gives it 50 %.",
        "No label reaches 100 nodes (10 %): only features speak, and the GCN is right "
        "on 50 %.",
        "Where they disagree the labels are right more often than the GCN (50 % "
        "against 40 %): it leaves information unused.",
    ]


def test_bands() -> None:
    distances = [
        band("0", 100, 1.0), band("1", 300, 0.92), band("2", 300, 0.85),
        band("5+", 200, 0.6), band("none", 100, 0.0), band("4", 3, 0.1),
    ]  # fmt: skip
    degrees = [band("1", 500, 0.58), band("4–7", 500, 0.8), band("64+", 5, 0.0)]
    said = findings(result(distances=distances, degrees=degrees))
    assert said[1:] == [
        "80 % of the nodes with 4 to 7 neighbours are ELU, and 58 % of those with 1 "
        "neighbour.",
        "92 % of the nodes 1 edge from a label are ELU, and 60 % of those 5 or more "
        "edges from a label.",
    ]
    close = [band("1", 500, 0.8), band("2", 500, 0.7)]
    assert len(findings(result(distances=close, degrees=close[:1]))) == 1


@pytest.mark.parametrize(("after", "word"), [(1.44, "lower"), (7.0, "no lower")])
def test_both_graphs(after: float, word: str) -> None:
    graphs = {
        "original": {"homophily": 0.824, "complexity": 6.12},
        "elu": {"homophily": 0.767, "complexity": after},
    }
    assert findings(result(graphs=graphs))[-1] == (
        "82 % of a node's neighbours are of its own class; in the ELU graph it has "
        "77 % of the weight, summed by class, and the complexity of the classes is "
        f"{word} ({after:.2g} against 6.1)."
    )
    graphs["elu"]["complexity"] = None  # type: ignore[assignment]
    assert findings(result(graphs=graphs))[-1].endswith("summed by class.")


def test_at_most_eight_and_none_where_nothing_is_reached() -> None:
    many = [
        klass(str(i), 100, 0.5, pulled_to="x", pulled_share=0.5, labels=0)
        for i in range(20)
    ]
    said = findings(
        result(
            overall=overall(0, 0, 7),
            classes=many,
            distances=[band("1", 500, 0.9), band("2", 500, 0.1)],
            degrees=[band("1", 500, 0.9), band("2–3", 500, 0.1)],
        )
    )
    assert said[0].startswith("Classes 0, 1, 2, 3, 4, … have no training label")
    assert said[1] == "No label reaches 7 nodes (100 %): only features speak."
    assert len(said) <= 8
    agreed = [klass("a", 50, 1.0), klass("b", 50, 1.0)]
    alone = result(overall=overall(9, 0, 1), classes=agreed)
    assert findings(alone)[1].startswith("No label reaches 1 node (10 %)")


def test_shares_for_people() -> None:
    said = [people(v) for v in (0.0, 0.004, 0.414, 0.996, 1.0)]
    assert said == ["0 %", "under 1 %", "41 %", "over 99 %", "100 %"]
