"""The stages against dense matrices, by hand, and against the methods they contain."""

import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.data.datasets import load_dataset
from elugcn.data.validation import CheckedGraph, check_data
from elugcn.elu.closed_form import learn_elu_graph
from elugcn.elu.options import THE_TEXT
from elugcn.elu.stages import (
    Pretrained,
    TwoViewFit,
    TwoViewTraining,
    choose_eta,
    expand_labels,
    fit_rounds,
    gcn_prediction,
    learn_graph,
    pretrain,
)
from elugcn.elu.trained_model import TwoViewModel
from elugcn.elu.utilization import definition_one
from elugcn.errors import InputError
from elugcn.methods.contract import FitContext
from elugcn.methods.network import NetworkModel
from elugcn.methods.presets import preset
from tests.elu.conftest import fit, problem_of

Draw = Callable[..., CheckedGraph]


@pytest.fixture(scope="module")
def stage0(checked: Draw) -> tuple[Any, Any, Pretrained]:
    """A problem, its configuration and what stage 0 leaves."""
    problem, config = problem_of(
        checked(0, homophily=0.5), rounds=2, eta=0.4, refit_eta=False, epochs=6,
        form="transposed", scaling="none", h_source="mlp", gcn_prediction="propagated",
    )  # fmt: skip
    return problem, config, pretrain(problem, config, FitContext())


# --- stage 0 -----------------------------------------------------------------------


def test_the_propagated_prediction_is_two_steps_of_the_mlps(stage0: Any) -> None:
    problem, config, pretrained = stage0
    prediction = gcn_prediction(problem, config, pretrained)
    adj = problem.adj.to_dense()
    expected = adj @ adj @ F.softmax(pretrained.models["mlp"].logits, dim=1)
    share = expected / expected.sum(dim=1, keepdim=True)
    torch.testing.assert_close(F.softmax(prediction, dim=1), share)


def test_definition_one_judges_the_plain_gcn(checked: Draw) -> None:
    graph = checked(1, homophily=0.4)
    options = {"epochs": 10, "hidden_channels": 12, "dropout": 0.4}
    use = fit(graph, "elu-gcn", **options).label_utilization
    gcn = fit(graph, "gcn", **options)
    assert use is not None
    assert torch.equal(use.gcn, gcn.logits.argmax(dim=1))
    assert use.gcn_proba is not None
    assert torch.equal(use.gcn_proba, gcn.proba)


def test_nodes_that_nothing_reaches_have_a_prediction(checked: Draw) -> None:
    """Â²H without self-loops says nothing of a node without neighbours."""
    graph = checked(0)
    data = graph.data.clone()
    data.edge_index = data.edge_index[:, (data.edge_index != 0).all(dim=0)]
    options = {"epochs": 3, "gcn_prediction": "propagated", "self_loops": False}
    use = fit(CheckedGraph(data, ()), "elu-gcn", **options).label_utilization
    assert use is not None
    assert int(use.gcn.min()) >= 0
    assert use.names()[0] == "unreachable" or data.train_mask[0]


# --- stage 1 -----------------------------------------------------------------------


def test_labels_are_expanded_by_elu_nodes_only(path_graph: Any) -> None:
    problem, config = problem_of(check_data(path_graph))
    # Nodes 1 and 4 agree, node 2 does not, node 3 is not reached.
    use = definition_one(
        torch.tensor([0, 0, 0, -1, 1, 0]), torch.tensor([1, 0, 1, 1, 1, 0])
    )
    labels = expand_labels(problem, use, config)
    assert labels.tolist() == [0, 0, -1, -1, 1, 1]  # nodes 0 and 5 are training nodes
    plain = config.model_copy(update={"expand_labels": False})
    assert expand_labels(problem, use, plain).tolist() == [0, -1, -1, -1, -1, 1]


def test_options_reach_the_graph(checked: Draw) -> None:
    """Algorithm 1 with dense matrices."""
    graph = checked(0)
    train = graph.data.train_mask
    result = fit(
        graph, "elu-graph", epochs=5, form="paper", init="mlp", k=3, beta=0.5,
        scaling="none", expand_labels=False, normalization="l2", damping=0.3,
    )  # fmt: skip
    H = result.proba.double()
    Y = F.one_hot(graph.data.y, 3).double()[train]
    Q = torch.where(train.unsqueeze(1), F.one_hot(graph.data.y, 3), H)
    P = H.T @ torch.linalg.inv(H @ H.T + 0.5 * torch.eye(len(H)))
    for _ in range(3):
        Q = 0.7 * F.normalize(Q @ P @ Q, dim=1) + 0.3 * Q
        Q[train] = Y
    assert result.graph is not None
    torch.testing.assert_close(
        result.graph.to_dense().double(), Q @ P, rtol=1e-3, atol=1e-5
    )


def test_the_text_to_the_letter(checked: Draw) -> None:
    """Eq. 9, 10 and the threshold with dense matrices, and an H without a ReLU."""
    graph = checked(0, label_rate=0.2)
    result = fit(graph, "elu-gcn", **(dict(THE_TEXT) | {"epochs": 10, "eta": 0.4}))
    model, data = result.model, graph.data
    assert isinstance(model, TwoViewModel)
    assert isinstance(model.source, NetworkModel)
    H = model.source.logits(data).double().numpy()
    X = model.source.scaler(data.x).to_dense().numpy()
    columns = np.column_stack([X, np.ones(len(H))])
    line, *_ = np.linalg.lstsq(columns, H, rcond=None)
    np.testing.assert_allclose(columns @ line, H, atol=1e-4)
    use = result.label_utilization
    assert use is not None
    y = torch.where(data.train_mask, data.y, torch.where(use.elu, use.gcn, -1)).numpy()
    known = y >= 0
    assert 0 < known.sum() < len(y)
    Q = np.zeros_like(H)
    Q[known, y[known]] = 1.0
    Y = Q[known]

    def equation_9(Q: np.ndarray) -> np.ndarray:
        out: np.ndarray = Q @ H.T @ np.linalg.inv(H @ H.T + np.eye(len(H)))
        return out

    for _ in range(2):
        Q = equation_9(Q) @ Q
        Q[known] = Y
    S = equation_9(Q)
    rank = math.ceil(0.9 * S.size)
    S[np.abs(S) < np.sort(np.abs(S), axis=None)[rank - 1] * (1 - 1e-4)] = 0.0
    assert result.graph is not None
    np.testing.assert_allclose(result.graph.to_dense().numpy(), S, atol=1e-5)
    assert not S[~known].any()  # the dead fixed point


@pytest.mark.parametrize("method", ["elu-gcn", "elu-graph"])
@pytest.mark.parametrize("mode", ["paper", "topk"])
def test_memory_is_checked_before_anything_is_trained(
    method: str, mode: str, checked: Draw, monkeypatch: pytest.MonkeyPatch
) -> None:
    little = SimpleNamespace(available=2**20)
    monkeypatch.setattr("psutil.virtual_memory", lambda: little)
    monkeypatch.setattr("elugcn.elu.stages.fit_network", pytest.fail)
    with pytest.raises(InputError, match=r"need about .* GB"):
        fit(checked(0), method, graph_mode=mode)


# --- stage 2 -----------------------------------------------------------------------


def test_a_training_that_pauses_is_the_same(stage0: Any) -> None:
    problem, config, pretrained = stage0
    (whole, *_) = fit_rounds(problem, "m", config, FitContext(), pretrained)
    assert whole.label_utilization is not None
    labels = expand_labels(problem, whole.label_utilization, config)
    source = pretrained.models["mlp"]
    graph = learn_graph(source.logits, labels, pretrained.lpa, config)
    context = FitContext()
    training, other = (
        TwoViewTraining(
            problem, name, config, context, graph, whole.label_utilization, source.model
        )
        for name in ("m", "other")
    )
    assert training.epochs == 6
    for epoch in (1, 2, 6, 6):
        training.run_until(epoch)
        other.run_until(epoch)  # draws random numbers of its own in between
    assert torch.equal(training.finish().logits, whole.logits)
    assert torch.equal(other.finish().logits, whole.logits)
    assert training.best["epoch"] == whole.metadata["best_epoch"]


def test_a_round_starts_from_the_output_of_the_last(stage0: Any) -> None:
    problem, config, pretrained = stage0
    one, two = fit_rounds(problem, "m", config, FitContext(), pretrained)
    assert (one.name, two.name) == ("m, round 1", "m, round 2")
    first = one.logits.argmax(dim=1)
    assert not torch.equal(first, pretrained.models["gcn"].logits.argmax(dim=1))
    assert two.label_utilization is not None
    assert two.graph is not None
    assert torch.equal(two.label_utilization.gcn, first)
    assert isinstance(two.model, TwoViewModel)
    assert two.model.source is one.model
    labels = problem.train_labels
    agree = (labels < 0) & (first == pretrained.lpa.argmax(dim=1))
    expected = learn_elu_graph(
        F.softmax(one.logits, dim=1), torch.where(agree, first, labels),
        lpa=pretrained.lpa, k=config.k, beta=config.beta, form="transposed",
    )  # fmt: skip
    torch.testing.assert_close(two.graph.to_dense(), expected.to_dense())


def eta_problem(n_val: int = 2) -> tuple[Any, list[Tensor]]:
    """Node 0 is right for η > 0.52, node 1 for η < 0.58 (class 0 both)."""
    views = [
        torch.tensor([[0.0, 13.0], [29.0, 0.0], [0.0, 9.0]]),
        torch.tensor([[12.0, 0.0], [0.0, 21.0], [0.0, 9.0]]),
    ]
    problem = SimpleNamespace(
        val_index=torch.arange(n_val),
        val_target=torch.zeros(n_val).long(),
        metric="accuracy",
        num_classes=2,
    )
    return problem, views


@pytest.mark.parametrize("trained_with", [0.1, 0.9])
def test_eta_by_hand(trained_with: float) -> None:
    assert choose_eta(*eta_problem(), trained_with) == pytest.approx(0.55)
    # Node 0 alone: 0.55 to 1 are as good, the nearest to the trained one is taken.
    chosen = choose_eta(*eta_problem(1), trained_with)
    assert chosen == pytest.approx(max(trained_with, 0.55))


@pytest.mark.parametrize(
    "options",
    [
        {"scaling": "none", "refit_eta": True},
        {"h_output": "logits", "num_layers": 3, "residual": True},
        {"h_source": "gcn", "direction": "apart", "norm": "layer"},
        {"order": 3, "drop_node": 0.2, "draws": 2, "lambda_cons": 0.5},
        {"eta": 0.0, "lambda_con": 0.5},
    ],
    ids=["none", "deep", "apart", "order", "one view"],
)
def test_the_model_repeats_its_own_graph(
    options: dict[str, Any], checked: Draw
) -> None:
    """In the transposed form a row of S* follows from the row of H."""
    graph = checked(0)
    result = fit(graph, "elu-gcn", epochs=6, **({"eta": 0.3} | options))
    assert result.model is not None
    again = result.model.logits(graph.data)
    torch.testing.assert_close(again, result.logits, rtol=1e-4, atol=1e-4)
    assert isinstance(result.model, TwoViewModel) == (result.metadata["eta"] > 0)


def test_pseudo_labels_and_warmup_reach_a_sampled_network(checked: Draw) -> None:
    base: dict[str, Any] = {
        "order": 2, "sample": 50, "draws": 2, "eta": 0.0, "lambda_con": 0.0,
        "epochs": 1, "hidden_channels": 8, "norm": "batch",
    }  # fmt: skip

    def logits(**options: Any) -> Tensor:
        return fit(checked(0), "elu-gcn", **(base | options)).logits

    # Nothing of the consistency counts in epoch 0 of a warm-up.
    late = {"lambda_cons": 5.0, "warmup": 10}
    assert torch.equal(logits(), logits(**late))
    assert not torch.equal(logits(), logits(lambda_cons=5.0))
    assert not torch.equal(logits(), logits(pseudo_weight=0.5))


def test_what_is_recorded(checked: Draw) -> None:
    result = fit(checked(0), "elu-gcn", epochs=10, rounds=2)
    record = result.metadata
    assert list(record["candidates"]) == ["two-view, round 1", "two-view, round 2"]
    best = max(record["candidates"].values())
    assert record["candidates"][record["chosen"]] == best
    assert record["etas"] == dict.fromkeys(record["candidates"], 0.1)
    assert set(result.seconds) == {"utilization", "pretrain", "graph", "train"}
    assert set(result.baselines) == {"gcn", "mlp", "lpa"}
    assert result.baselines["lpa"].shape == (150,)
    assert 0 <= record["best_epoch"] < result.epochs <= 10


def test_a_round_that_diverges_is_the_last(checked: Draw) -> None:
    graph = checked(0, n=150, feature_noise=30.0, homophily=0.34)
    same = {"eta": 0.0, "lambda_con": 0.0, "rounds": 3, "epochs": 8, "lr": 1e30}
    problem, config = problem_of(graph, **same)
    calm = config.model_copy(update={"lr": 0.01})
    pretrained = pretrain(problem, calm, FitContext())
    fits = fit_rounds(problem, "wild", config, FitContext(), pretrained)
    assert fits[-1].diverged
    assert len(fits) < 3
    assert not any(fit.diverged for fit in fits[:-1])


def test_a_diverged_round_is_not_the_answer(
    checked: Draw, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = TwoViewFit(name="good", val_accuracy=0.5, logits=torch.zeros(150, 3))
    lost = TwoViewFit(
        name="lost", val_accuracy=0.9, logits=torch.full((150, 3), math.nan)
    )
    monkeypatch.setattr("elugcn.elu.method.fit_rounds", lambda *_: [good, lost])
    record = fit(checked(0), "elu-gcn", epochs=1).metadata
    assert (record["chosen"], record["diverged"]) == ("good", ["lost"])


def test_cora_in_thirty_epochs(data_dir: Path) -> None:
    graph = check_data(load_dataset("cora", data_dir=data_dir))
    result = fit(graph, "elu-gcn", **(preset("elu-gcn", "cora") | {"epochs": 30}))
    right = result.logits.argmax(dim=1) == graph.data.y
    assert float(right[graph.data.test_mask].double().mean()) > 0.74
