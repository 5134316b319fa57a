from typing import Any

import pytest
import torch

from elugcn.config import resolve_config
from elugcn.data.checks import CheckedGraph, check_data
from elugcn.data.datasets import load_dataset
from elugcn.errors import InputError
from elugcn.fitting import Fitted, fit_graph
from elugcn.methods.base import make_problem
from elugcn.methods.nodeformer import NodeFormerConfig, NodeFormerPredictor
from elugcn.nn.nodeformer import NodeFormer


def draw(split: int = 0, n: int = 150) -> CheckedGraph:
    return check_data(load_dataset("sbm", split=split, n=n, n_classes=3, n_features=16))


def fit(graph: CheckedGraph, seed: int = 0, **options: Any) -> Fitted:
    config = resolve_config("nodeformer", options={"draws": 3} | options)
    return fit_graph(graph, "nodeformer", config, seed=seed)


def test_it_learns() -> None:
    graph = draw()
    right = fit(graph, epochs=25).accuracy(graph.data.test_mask)
    assert right is not None
    assert right > 0.75  # a third is the majority


def test_seeds() -> None:
    graph = draw()
    one, two = (fit(graph, 5, epochs=3).prediction.logits for _ in range(2))
    assert torch.equal(one, two)
    assert not torch.equal(one, fit(graph, 6, epochs=3).prediction.logits)


def test_predictor_repeats_its_graph_and_survives_saving() -> None:
    graph, other = draw(), draw(split=1, n=90)
    fitted = fit(graph, epochs=3, rb_order=2, jump=True, heads=2)
    predictor = fitted.prediction.predictor
    assert isinstance(predictor, NodeFormerPredictor)
    torch.testing.assert_close(predictor.logits(graph.data), fitted.prediction.logits)
    again = NodeFormerPredictor.restore(*predictor.state())
    assert torch.equal(again.logits(other.data), predictor.logits(other.data))


def test_the_links_have_a_say() -> None:
    """Trained with their likelihood, attention finds them likelier than without."""
    graph = draw()
    config = resolve_config("nodeformer")
    problem = make_problem(graph.data, config, torch.device("cpu"))

    def likelihood(weight: float) -> float:
        fitted = fit(graph, epochs=15, patience=15, lambda_link=weight)
        predictor = fitted.prediction.predictor
        assert isinstance(predictor, NodeFormerPredictor)
        assert isinstance(predictor.model, NodeFormer)
        inputs = (problem.x, problem.adj, problem.train_index)
        return float(predictor.model.with_links(*inputs)[1].detach())

    assert likelihood(20.0) > likelihood(0.0) + 0.01


@pytest.mark.parametrize(
    "wrong",
    [
        {"heads": 0},
        {"features": 0},
        {"draws": 0},
        {"links": 0},
        {"num_layers": 0},
        {"rb_order": -1},
        {"lambda_link": -0.1},
        {"tau": 0.0},
    ],
)
def test_refusals(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        NodeFormerConfig(**wrong)


def test_an_order_too_high_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elugcn.core.wider.MAX_ENTRIES", 100)
    with pytest.raises(InputError, match="rb_order=2"):
        fit(draw(), epochs=1, rb_order=2)
