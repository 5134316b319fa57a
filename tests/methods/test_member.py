"""One member of the family: its rounds, its η, its options, by hand and by twins."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.core.elu_graph import learn_elu_graph
from elugcn.data.checks import CheckedGraph
from elugcn.errors import InputError
from elugcn.methods import elu_gcn, elu_member
from elugcn.methods.base import Problem, Run, make_problem
from elugcn.methods.elu_candidates import Candidate, choose
from elugcn.methods.elu_config import ELUGCNConfig
from elugcn.methods.elu_member import choose_eta, fit_member
from elugcn.methods.elu_predictor import ELUGCNPredictor
from elugcn.storage import load_fitted, save_fitted
from tests.methods.test_methods import fit
from tests.methods.test_sampled import MEMBER, draw

Draw = Callable[..., CheckedGraph]
CPU = torch.device("cpu")
# One member, whose second view has a say.
ALONE = {"variants": (), "keep_gcn": False, "epochs": 6, "form": "transposed"}


def test_a_round_starts_from_the_output_of_the_last(checked: Draw) -> None:
    graph = checked(0, homophily=0.5)
    config = ELUGCNConfig(
        variants=(),
        rounds=2,
        eta=0.4,
        refit_eta=False,
        epochs=6,
        form="transposed",
        scaling="none",
    )
    problem = make_problem(graph.data, config, CPU)
    torch.manual_seed(0)
    reach = elu_gcn._reach(problem, config, Run(), False)
    one, two = fit_member(problem, "m", config, Run(), reach)
    assert (one.name, two.name) == ("m, round 1", "m, round 2")
    first = one.logits.argmax(dim=1)
    assert not torch.equal(first, reach.gcn.logits.argmax(dim=1))
    assert torch.equal(two.utilization.gcn, first)
    assert isinstance(two.predictor, ELUGCNPredictor)
    assert two.predictor.source is one.predictor
    labels = problem.train_labels
    labels = torch.where(
        (labels < 0) & (first == reach.lpa.argmax(dim=1)), first, labels
    )
    expected = learn_elu_graph(
        F.softmax(one.logits, dim=1),
        labels,
        lpa=reach.lpa,
        k=config.k,
        beta=config.beta,
        form="transposed",
    )
    torch.testing.assert_close(two.graph.to_dense(), expected.to_dense())


def eta_problem(n_val: int = 2) -> tuple[Problem, list[Tensor]]:
    """Node 0 is right for η > 0.52, node 1 for η < 0.58 (class 0 both)."""
    mask = torch.arange(3) < n_val
    views = [
        torch.tensor([[0.0, 13.0], [29.0, 0.0], [0.0, 9.0]]),
        torch.tensor([[12.0, 0.0], [0.0, 21.0], [0.0, 9.0]]),
    ]
    y = torch.zeros(3, dtype=torch.long)
    return cast(Problem, SimpleNamespace(val_mask=mask, y=y)), views


@pytest.mark.parametrize("own", [0.1, 0.9])
def test_eta_by_hand(own: float) -> None:
    config = ELUGCNConfig(variants=(), eta=own)
    p, views = eta_problem()
    assert choose_eta(p, views, config) == (pytest.approx(0.55), 1.0)
    # Node 0 alone: 0.55 to 1 are as good, the nearest to the trained one is taken.
    p, views = eta_problem(1)
    assert choose_eta(p, views, config) == (pytest.approx(max(own, 0.55)), 1.0)
    p, views = eta_problem()
    assert choose_eta(p, views, replace(config, refit_eta=False)) == (own, 0.5)
    assert choose_eta(p, views[:1], config) == (0.0, 0.5)
    eta, accuracy = choose_eta(*eta_problem(0), config)
    assert eta == own
    assert math.isnan(accuracy)


def test_the_chosen_eta_is_used(checked: Draw, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elu_member, "choose_eta", lambda *rest: (0.85, 0.5))
    graph = checked()
    fitted = fit(graph, "elu-gcn", eta=0.2, **ALONE)
    predictor = fitted.prediction.predictor
    assert isinstance(predictor, ELUGCNPredictor)
    assert predictor.eta == fitted.prediction.facts["eta"] == 0.85
    torch.testing.assert_close(
        predictor.logits(graph.data), fitted.prediction.logits, rtol=1e-4, atol=1e-4
    )


def test_members_have_seeds_of_their_own(
    checked: Draw, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Candidate] = []
    real = choose
    monkeypatch.setattr(
        elu_gcn, "choose", lambda c, *rest: (seen.extend(c), real(c, *rest))[1]
    )
    fit(checked(), "elu-gcn", epochs=3, variants=[{"name": "a"}, {"name": "b"}])
    assert not torch.equal(seen[0].logits, seen[1].logits)


@pytest.mark.parametrize(
    "own", [{"scaling": "none"}, {"scaling": "mean"}, {"h_output": "logits"}], ids=str
)
def test_options_of_the_graph_reach_the_predictor(
    own: dict[str, Any], checked: Draw
) -> None:
    graph = checked()
    fitted = fit(graph, "elu-gcn", eta=0.3, refit_eta=False, **ALONE, **own)
    assert fitted.prediction.predictor is not None
    again = fitted.prediction.predictor.logits(graph.data)
    torch.testing.assert_close(again, fitted.prediction.logits, rtol=1e-4, atol=1e-4)


def test_rounds_of_two_views_are_saved(checked: Draw, tmp_path: Path) -> None:
    fitted = fit(
        checked(),
        "elu-gcn",
        epochs=4,
        variants=(),
        keep_gcn=False,
        eta=0.4,
        refit_eta=False,
        rounds=3,
    )
    save_fitted(fitted, tmp_path)
    before, after = (
        fitted.prediction.predictor,
        load_fitted(tmp_path).prediction.predictor,
    )
    assert before is not None
    assert after is not None
    other = checked(1).data
    assert torch.equal(after.logits(other), before.logits(other))


def test_warmup_reaches_a_sampled_member() -> None:
    def logits(weight: float, warmup: int) -> Tensor:
        member = MEMBER | {"rounds": 1, "lambda_cons": weight, "warmup": warmup}
        return fit(
            draw(), "elu-gcn", variants=[member], epochs=1, keep_gcn=False
        ).prediction.logits

    assert torch.equal(logits(0.0, 10), logits(5.0, 10))  # nothing of it in epoch 0
    assert not torch.equal(logits(0.0, 0), logits(5.0, 0))


def test_contrast_counts_where_the_second_view_has_no_say(checked: Draw) -> None:
    same = {
        "variants": (),
        "keep_gcn": False,
        "refit_eta": False,
        "eta": 0.0,
        "lambda_con": 1.0,
        "entropy_weight": 0.0,
        "epochs": 5,
    }
    with_it, without = (
        fit(checked(), "elu-gcn", contrast_weight=w, **same).prediction.logits
        for w in (1.0, 0.0)
    )
    assert not torch.allclose(with_it, without, atol=1e-4)


def test_options_of_the_mlp() -> None:
    config = ELUGCNConfig(
        mlp_hidden_channels=5,
        mlp_dropout=0.11,
        mlp_lr=0.022,
        mlp_weight_decay=0.033,
        mlp_activation="none",
        hidden_channels=7,
        dropout=0.2,
        lr=0.3,
        weight_decay=0.4,
    )
    mlp = config.mlp()
    assert (
        mlp.hidden_channels,
        mlp.dropout,
        mlp.lr,
        mlp.weight_decay,
        mlp.activation,
    ) == (5, 0.11, 0.022, 0.033, "none")


@pytest.mark.parametrize("normalization", ["none", "l2"])
@pytest.mark.parametrize("damping", [0.0, 0.3])
def test_options_reach_the_graph(
    normalization: str, damping: float, checked: Draw
) -> None:
    """Algorithm 1 with dense matrices."""
    graph = checked(0)
    data = graph.data
    fitted = fit(
        graph,
        "elu-graph",
        variants=(),
        epochs=5,
        form="paper",
        init="mlp",
        k=3,
        beta=0.5,
        scaling="none",
        expand_labels=False,
        normalization=normalization,
        damping=damping,
    )
    h = F.softmax(fitted.prediction.logits, dim=1).double()
    y = F.one_hot(data.y, 3).double()[data.train_mask]
    q = h.clone()
    q[data.train_mask] = y
    eye = torch.eye(len(h), dtype=torch.float64)
    p = h.T @ torch.linalg.inv(h @ h.T + 0.5 * eye)
    for _ in range(3):
        new = q @ p @ q
        if normalization == "l2":
            new = new / new.norm(dim=1, keepdim=True)
        q = (1 - damping) * new + damping * q
        q[data.train_mask] = y
    assert fitted.prediction.graph is not None
    torch.testing.assert_close(
        fitted.prediction.graph.to_dense().double(), q @ p, rtol=1e-3, atol=1e-5
    )


WILD = {"name": "wild", "lr": 1e30, "eta": 0.0, "lambda_con": 0.0}


@pytest.mark.parametrize("rounds", [1, 2])
def test_a_member_that_diverges_does_not_spoil_the_others(
    checked: Draw, rounds: int
) -> None:
    graph = checked(0, n=150, feature_noise=30.0, homophily=0.34)
    fitted = fit(graph, "elu-gcn", epochs=10, variants=[WILD | {"rounds": rounds}])
    facts = fitted.prediction.facts
    assert facts["chosen"] == "gcn"
    (lost,) = facts["diverged"]
    assert lost.startswith("wild")
    with pytest.raises(InputError, match="diverged"):  # nothing else is there
        fit(graph, "elu-gcn", epochs=10, variants=[WILD], keep_gcn=False)


def test_the_mode_of_a_graph_is_that_of_its_member(checked: Draw) -> None:
    member = {"name": "a", "graph_mode": "topk"}
    fitted = fit(checked(), "elu-gcn", epochs=2, variants=[member], keep_gcn=False)
    assert fitted.prediction.graph_mode == "topk"


def test_nodes_that_nothing_reaches_have_a_prediction(
    checked: Draw, tmp_path: Path
) -> None:
    """Â²H without self-loops says nothing of a node without neighbours."""
    graph = checked()
    edges = graph.data.edge_index
    graph.data.edge_index = edges[:, (edges != 0).all(dim=0)]
    fitted = fit(
        graph, "elu-gcn-paper", epochs=3, gcn_prediction="propagated", self_loops=False
    )
    use = fitted.prediction.utilization
    assert use is not None
    assert int(use.gcn.min()) >= 0
    save_fitted(fitted, tmp_path)
    again = load_fitted(tmp_path).prediction.utilization
    assert again is not None
    assert torch.equal(again.gcn, use.gcn)
