"""Methods that train one network: objective, pausing, saving, random numbers."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.data.validation import CheckedGraph
from elugcn.methods.backbone import (
    GCNConfig,
    MLPConfig,
    RandomPropagationConfig,
    build_gcn,
    build_mlp,
    build_sampled,
)
from elugcn.methods.contract import FitContext
from elugcn.methods.network import Supervised, SupervisedRows, fit_network
from elugcn.methods.problem import Problem, Shapes
from elugcn.methods.registry import get_method
from elugcn.models.flexible_gcn import FlexibleGCN
from elugcn.models.random_propagation import RandomPropagation, SampledPropagation
from elugcn.models.two_view_gcn import TwoViewGCN
from tests.elu.conftest import fit

CPU = torch.device("cpu")
Draw = Callable[..., CheckedGraph]


# --- which network -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({}, TwoViewGCN),
        ({"order": 3, "drop_node": 0.5}, RandomPropagation),
        ({"drop_node": 0.5}, FlexibleGCN),
        ({"norm": "layer"}, FlexibleGCN),
        ({"direction": "apart"}, FlexibleGCN),
        ({"num_layers": 3, "jump": "cat", "residual": True}, FlexibleGCN),
    ],
    ids=["plain", "order", "drop", "norm", "apart", "deep"],
)
def test_options_say_which_gcn(options: dict[str, Any], kind: type) -> None:
    network = build_gcn(GCNConfig(**options, hidden_channels=5), Shapes(7, 3))
    assert type(network) is kind
    # As many weights as W1, b1, W2 and b2 have, at least.
    assert sum(p.numel() for p in network.parameters()) >= 7 * 5 + 5 + 5 * 3 + 3


def test_options_of_the_mlp_and_of_a_sampled_network() -> None:
    linear = build_mlp(MLPConfig(activation="none", dropout=0.0), Shapes(4, 2)).eval()
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    with torch.no_grad():
        middle = linear.rows((x + y) / 2)
        torch.testing.assert_close(middle, (linear.rows(x) + linear.rows(y)) / 2)
    config = RandomPropagationConfig(order=2, sample=3, hidden_channels=6)
    sampled = build_sampled(config, Shapes(4, 2))
    assert isinstance(sampled, SampledPropagation)
    assert sampled.rows(torch.zeros(5, 4)).shape == (5, 2)


# --- what is minimised -------------------------------------------------------------


@pytest.mark.parametrize(
    "config",
    [
        GCNConfig(),
        GCNConfig(num_layers=3, residual=True),
        GCNConfig(order=2),
        MLPConfig(),
    ],
    ids=["plain", "deep", "order", "mlp"],
)
def test_cross_entropy_on_training_nodes(
    config: GCNConfig | MLPConfig, checked: Draw
) -> None:
    problem = Problem.of(checked(0).data, config, CPU)
    network: Any
    objective: Supervised | SupervisedRows
    if isinstance(config, MLPConfig):
        network = build_mlp(config, problem.shapes).eval()
        objective = SupervisedRows(network, problem)
    else:
        network = build_gcn(config, problem.shapes).eval()
        objective = Supervised(network, problem)
    with torch.no_grad():
        logits = network(problem.inputs)
        expected = F.cross_entropy(
            logits[problem.train_mask], problem.y[problem.train_mask]
        )
        torch.testing.assert_close(objective.loss(0), expected)
        assert torch.equal(objective.logits(), logits)
        # Validation looks at the receptive field of its nodes only.
        torch.testing.assert_close(objective.val_logits(), logits[problem.val_mask])


def test_an_mlp_does_not_see_edges_nor_other_nodes(checked: Draw) -> None:
    graph, other = checked(0), checked(0)
    data = other.data.clone()
    unseen = ~(data.train_mask | data.val_mask)
    data.x = torch.where(unseen.unsqueeze(1), 7.0, data.x)
    data.edge_index = data.edge_index[:, :10]
    # Raw features: scaling would read all of them.
    ours, theirs = (
        fit(g, "mlp", epochs=20, feature_norm="none")
        for g in (graph, CheckedGraph(data, ()))
    )
    assert ours.history == theirs.history
    assert torch.equal(ours.logits[~unseen], theirs.logits[~unseen])
    assert not torch.equal(ours.logits[unseen], theirs.logits[unseen])


# --- training ----------------------------------------------------------------------


def test_stages_have_random_numbers_of_their_own(checked: Draw) -> None:
    config = GCNConfig(epochs=2, hidden_channels=8)
    problem = Problem.of(checked(0).data, config, CPU)

    def logits(stage: int, seed: int = 0) -> Tensor:
        context = FitContext(seed)
        torch.manual_seed(99)  # does not matter
        result, model = fit_network(
            "gcn", config, problem, context, build_gcn, Supervised,
            clock="warm", stage=stage,
        )  # fmt: skip
        assert set(context.seconds) == {"warm"}
        assert result.model is model
        return result.logits

    first = logits(0)
    assert torch.equal(first, logits(0))
    assert torch.equal(logits(4), logits(4))
    assert not torch.equal(first, logits(4))
    assert not torch.equal(first, logits(0, seed=1))
    # The method itself trains stage 0.
    assert torch.equal(
        first, fit(checked(0), "gcn", epochs=2, hidden_channels=8).logits
    )


def test_clocks_add_up() -> None:
    context = FitContext()
    for name in ("a", "b", "a"):
        with context.clock(name):
            pass
    assert set(context.seconds) == {"a", "b"}
    with pytest.raises(KeyError), context.clock("c"):
        raise KeyError
    assert context.seconds["c"] > 0


# --- saving ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("gcn", {}),
        ("gcn", {"norm": "batch", "residual": True, "jump": "max", "num_layers": 3}),
        ("gcn", {"direction": "apart", "feature_norm": "standard"}),
        ("gcn", {"order": 2, "input_dropout": 0.1}),
        ("mlp", {"feature_norm": "standard"}),
    ],
    ids=["plain", "deep", "apart", "order", "mlp"],
)
def test_a_network_is_rebuilt_from_its_description(
    method: str, options: dict[str, Any], checked: Draw
) -> None:
    result = fit(checked(0), method, epochs=4, hidden_channels=8, **options)
    model = result.model
    assert model is not None
    description = json.loads(json.dumps(model.description()))
    tensors = {name: x.clone() for name, x in model.tensors().items()}
    assert description["method"] == method
    again = get_method(method).restore(description, tensors)
    other = checked(1).data
    assert torch.equal(again.logits(other), model.logits(other))
    torch.testing.assert_close(again.logits(checked(0).data), result.logits)
    assert again.description() == model.description()
    del tensors[next(name for name in tensors if name.startswith("network."))]
    with pytest.raises(RuntimeError, match="Missing key"):
        get_method(method).restore(description, tensors)


def test_a_method_without_a_model_has_none_to_restore() -> None:
    with pytest.raises(NotImplementedError, match="lpa has no model to restore"):
        get_method("lpa").restore({}, {})
