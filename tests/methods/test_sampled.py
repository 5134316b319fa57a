"""Random propagation of a sample against the same objective on all nodes."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.data.validation import CheckedGraph
from elugcn.engine import CSR, Workspace, dropout
from elugcn.errors import InputError
from elugcn.methods.backbone import RandomPropagationConfig, build_sampled
from elugcn.methods.problem import Problem
from elugcn.methods.sampled import Bags, SampledObjective
from elugcn.models.losses import consistency_loss, weighted_cross_entropy

N = 60


@pytest.fixture(scope="module")
def problem(checked: Callable[..., CheckedGraph]) -> Problem:
    graph = checked(0, n=N, n_features=16)
    return Problem.of(graph.data, RandomPropagationConfig(), torch.device("cpu"))


def dense_pi(adj: CSR, order: int) -> Tensor:
    powers = [torch.linalg.matrix_power(adj.to_dense(), k) for k in range(order + 1)]
    return torch.stack(powers).mean(dim=0)


def objective(problem: Problem, warmup: int = 0, **options: Any) -> SampledObjective:
    config = RandomPropagationConfig(
        **({"neighbours": N, "hidden_channels": 8} | options)
    )
    torch.manual_seed(0)
    network = build_sampled(config, problem.shapes)
    weight, target = torch.rand(N) / N, torch.randint(3, (N,))
    return SampledObjective(network, problem, config, weight, target, warmup)


def test_a_bag_is_a_row_of_the_propagated_features(problem: Problem) -> None:
    bags = Bags(problem, order=3, k=N, drop_node=0.5)
    x = problem.x.to_dense()
    pi, nodes = dense_pi(problem.adj, 3), torch.tensor([5, 0, 5, 59])
    with Workspace(3) as workspace:
        drawn = bags.draw(nodes)
        workspace.begin_step(0)
        kept = dropout(torch.ones(N, 1), 0.5)
    assert isinstance(kept, Tensor)
    # What is negligible on the way is let go.
    torch.testing.assert_close(drawn, pi[nodes] @ (kept * x), rtol=0.02, atol=0.02)
    bags.drop_node = 0.0
    torch.testing.assert_close(bags.draw(nodes), (pi @ x)[nodes], rtol=0.02, atol=0.02)


def test_validation_and_prediction_use_the_whole_propagation(problem: Problem) -> None:
    one = objective(problem, order=3, sample=5, neighbours=2)
    one.network.eval()
    with torch.no_grad():
        x = dense_pi(problem.adj, 3) @ problem.x.to_dense()
        logits = one.sampled.rows(x)
        # The objective holds the inputs of a configuration without propagation.
        view = problem.seen_with(RandomPropagationConfig(order=3))
        torch.testing.assert_close(one.sampled(view.inputs), logits)
        torch.testing.assert_close(one.val_logits(), logits[problem.val_index])


def test_a_sample_stands_for_all_nodes(problem: Problem) -> None:
    """Without chance in the network the mean over samples is the loss on all nodes."""
    one = objective(problem, order=3, dropout=0.0, sample=30, lambda_cons=1.0)
    assert one.pseudo_weight is not None
    assert one.pseudo_class is not None
    with torch.no_grad():
        z = one.sampled.rows(one.bags.draw(torch.arange(N)))
        index = problem.train_index
        expected = F.cross_entropy(z[index], problem.y[index])
        expected = expected + consistency_loss([z], 0.5)
        expected += weighted_cross_entropy(z, one.pseudo_class, one.pseudo_weight)
        losses = torch.stack([one.loss(0) for _ in range(500)])
    error = float(losses.std()) / 500**0.5
    assert error < 0.01
    assert float(losses.mean()) == pytest.approx(float(expected), abs=4 * error)


def test_the_warmup_is_of_the_agreement_alone(problem: Problem) -> None:
    one = objective(
        problem, warmup=2, order=2, draws=2, sample=40, norm="batch", lambda_cons=1.0,
        drop_node=0.5,
    )  # fmt: skip
    losses = []
    for epoch in (0, 1, 2, 3):
        torch.manual_seed(7)
        with Workspace(7):
            losses.append(float(one.loss(epoch).detach()))
    assert losses[1] - losses[0] == pytest.approx(losses[2] - losses[1], rel=1e-3)
    assert losses[2] > losses[0] + 1e-4
    assert losses[3] == losses[2]


def test_features_that_do_not_fit_are_refused(
    problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elugcn.methods.sampled.MAX_DENSE_ENTRIES", 100)
    with pytest.raises(InputError, match=r"60 × 16 numbers are too many; use sample=0"):
        Bags(problem, 2, 8, 0.5)
