"""Tables of the diagnosis: by hand, and counted with scikit-learn and networkx."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.metrics import recall_score

from elugcn.api import Fitted, fit, json_safe, load, save
from elugcn.data.validation import CheckedGraph
from elugcn.elu.utilization import definition_one
from elugcn.errors import InputError
from elugcn.insight import DiagnosisContext, diagnose
from elugcn.insight.diagnosis import by_band
from tests.insight.conftest import by_hand, row_of_six, small

# Nodes 0 to 5; node 4 hears no label, and node 3 hears the other side.
LPA = torch.tensor([[1.0, 0], [1, 0], [1, 0], [0.9, 0.1], [0, 0], [0, 1]])
GCN = torch.tensor([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2], [0.1, 0.9], [0.3, 0.7],
                    [0.2, 0.8]])  # fmt: skip


def values(rows: list[dict[str, Any]], *keys: str) -> list[tuple[Any, ...]]:
    return [tuple(row[key] for key in keys) for row in rows]


def test_a_row_of_six_by_hand() -> None:
    six = diagnose(by_hand(row_of_six(), LPA, GCN))
    # ELU: 0, 2 and 5; 0 and 5 train, so node 2 alone counts.
    # NELU: 1, where label propagation is right, and 3, where the GCN is.
    kinds = list(six["overall"].values())
    assert values(kinds, "nodes", "gcn_accuracy", "lpa_accuracy") == [
        (3, 1.0, 1.0), (2, 0.5, 0.5), (1, None, None),
    ]  # fmt: skip
    assert kinds[0]["share"] == 0.5
    # The GCN says right of 1, 3, 4 and 5.
    shares = ("name", "nodes", "elu", "nelu", "unreachable", "accuracy")
    assert values(six["classes"], *shares) == [
        ("left", 2, 1.0, 0.0, 0.0, 1.0), ("right", 4, 0.25, 0.5, 0.25, 0.5),
    ]  # fmt: skip
    pulled = ("labels", "lpa_nodes", "pulled_to", "pulled_share")
    assert values(six["classes"], *pulled) == [
        (1, 4, None, None), (1, 1, "left", 1.0),
    ]  # fmt: skip
    table = six["confusion"]
    assert (table["counts"], table["unreachable"]) == ([[2, 0], [2, 1]], [0, 1])
    assert values(six["degrees"], "name", "nodes", "elu", "nelu") == [
        ("1", 2, 1.0, 0.0), ("2–3", 4, 0.25, 0.5),
    ]  # fmt: skip
    assert six["degrees"][1]["accuracy"] == pytest.approx(2 / 3)
    named = values(six["distances"], "name", "nodes")
    assert named == [("0", 2), ("1", 2), ("2", 2)]


def test_validation_nodes_that_trained_the_answer() -> None:
    """Node 1 is a validation node: its label was used, so it is not evaluated."""
    fitted = by_hand(row_of_six(), LPA, GCN)
    fitted.result.metadata = {"refit": True, "trials": []}
    six = diagnose(fitted)
    assert six["model"] == "linear model"
    kinds = list(six["overall"].values())
    # Of the NELU nodes 1 and 3 the second alone counts, where the GCN is right.
    assert values(kinds, "nodes", "gcn_accuracy", "lpa_accuracy") == [
        (3, 1.0, 1.0), (2, 1.0, 0.0), (1, None, None),
    ]  # fmt: skip
    assert values(six["classes"], "labels") == [(2,), (1,)]
    named = values(six["distances"], "name", "nodes")
    assert named == [("0", 3), ("1", 2), ("2", 1)]
    assert fitted.data.train_mask.sum() == 2


def test_bands_without_a_known_label() -> None:
    data = small([-1] * 10)
    use = definition_one(torch.zeros(10).long(), torch.zeros(10).long())
    found = torch.tensor([0, 1, 2, 3, 4, 7, 30, 64, -1, -1])
    rows = by_band(use, data, found, (0, 1, 2, 4, 8, 16, 64))
    assert values(rows, "name", "nodes", "elu", "accuracy") == [
        ("0", 1, 1.0, None), ("1", 1, 1.0, None), ("2–3", 2, 1.0, None),
        ("4–7", 2, 1.0, None), ("16–63", 1, 1.0, None), ("64+", 1, 1.0, None),
        ("none", 2, 1.0, None),
    ]  # fmt: skip


def test_every_number_of_a_fitted_graph(
    fitted: Fitted, context: DiagnosisContext
) -> None:
    said = diagnose(fitted)
    assert json.loads(json.dumps(json_safe(said), allow_nan=False)) == json_safe(said)
    data, use = fitted.data, fitted.result.label_utilization
    assert use is not None
    status, gcn, lpa = use.status.numpy(), use.gcn.numpy(), use.lpa.numpy()
    y, train = data.y.numpy(), data.train_mask.numpy()
    for name, value in (("elu", 1), ("nelu", 0), ("unreachable", -1)):
        row, of = said["overall"][name], (y >= 0) & ~train & (status == value)
        assert row["nodes"] == (status == value).sum() > 0
        assert row["gcn_accuracy"] == pytest.approx((gcn == y)[of].mean())
        assert row["lpa_accuracy"] == pytest.approx((lpa == y)[of].mean())
    for key in ("classes", "degrees", "distances"):
        assert sum(row["nodes"] for row in said[key]) == 150
        for row in said[key]:
            assert row["elu"] + row["nelu"] + row["unreachable"] == pytest.approx(1)
    # ELU nodes of a predicted class: recall of label propagation, the GCN as truth.
    recall = recall_score(gcn, lpa, labels=[0, 1, 2], average=None, zero_division=0)
    assert [row["elu"] for row in said["classes"]] == pytest.approx(recall)
    graph = nx.DiGraph(data.edge_index.T.tolist())
    hops = nx.multi_source_dijkstra_path_length(graph, set(np.flatnonzero(train)))
    assert context.distance.tolist() == [hops.get(i, -1) for i in range(150)]
    assert sum(r["nodes"] for r in said["distances"][:-1]) == len(hops) < 150


@pytest.mark.parametrize(
    "options",
    [{"lpa_steps": 3, "lpa_alpha": 0.7}, {"lpa_graph": "coupled", "self_loops": False}],
    ids=["edges", "shared neighbours"],
)
def test_what_a_fit_did_not_keep_is_computed_again(
    fitted: Fitted, options: dict[str, Any]
) -> None:
    graph = CheckedGraph(fitted.data, ())
    kept = DiagnosisContext(fit(graph, "elu-graph", {"epochs": 1} | options))
    result = replace(kept.fitted.result, label_utilization=None)
    again = DiagnosisContext(replace(kept.fitted, result=result))
    torch.testing.assert_close(again.lpa, kept.lpa)
    assert again.use.names() == kept.use.names()


def test_without_a_label_to_compare_with(fitted: Fitted) -> None:
    data = fitted.data.clone()
    data.y = torch.where(data.train_mask, data.y, -1)
    said = diagnose(replace(fitted, data=data))
    assert all(r["gcn_accuracy"] is None for r in said["overall"].values())
    assert said["graphs"]["original"]["homophily"] is None
    assert said["graphs"]["elu"]["complexity"] is None
    assert not any("right" in s or "its class" in s for s in said["findings"])


def test_another_method_takes_the_part_of_the_gcn(fitted: Fitted) -> None:
    plain = fit(CheckedGraph(fitted.data, ()), "gcn", {"epochs": 20}, n_threads=1)
    said, use = diagnose(plain), fitted.result.label_utilization
    assert use is not None
    assert said["overall"]["elu"]["nodes"] == int(use.elu.sum())
    assert said["graphs"]["elu"] is None
    assert not any("ELU graph" in s for s in said["findings"])


def test_a_saved_model_does_not_contain_its_graph(
    fitted: Fitted, tmp_path: Path
) -> None:
    save(fitted, tmp_path / "model")
    with pytest.raises(InputError, match="does not contain its graph"):
        diagnose(load(tmp_path / "model"))
