from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elugcn.config import resolve_config
from elugcn.data.checks import CheckedGraph, check_data
from elugcn.data.datasets import load_dataset
from elugcn.errors import InputError
from elugcn.evaluation.cells import Cell, Comparison
from elugcn.evaluation.paper import published
from elugcn.evaluation.statistics import Summary
from elugcn.evaluation.tables import render
from elugcn.experiments.rows import draw_comparison
from elugcn.fitting import Fitted, fit_graph
from elugcn.methods.bagcn import BAGCNConfig, BAGCNPredictor, bagcn_loss
from elugcn.methods.registry import METHODS
from elugcn.nn.bagcn import BAGCN, Both
from elugcn.nn.losses import info_nce
from elugcn.nn.projection import ProjectionHead


def draw(split: int = 0, n: int = 200) -> CheckedGraph:
    return check_data(load_dataset("sbm", split=split, n=n, n_classes=3, n_features=16))


def fit(graph: CheckedGraph, seed: int = 0, **options: Any) -> Fitted:
    config = resolve_config("bagcn", options=options)
    return fit_graph(graph, "bagcn", config, seed=seed)


def test_it_learns() -> None:
    graph = draw()
    right = fit(graph, epochs=40).accuracy(graph.data.test_mask)
    assert right is not None
    assert right > 0.8  # a third is the majority


def test_seeds() -> None:
    graph = draw()
    one, two = (fit(graph, 5, epochs=3).prediction.logits for _ in range(2))
    assert torch.equal(one, two)
    assert not torch.equal(one, fit(graph, 6, epochs=3).prediction.logits)


def test_predictor_repeats_its_graph_and_survives_saving() -> None:
    graph, other = draw(), draw(split=1, n=90)
    fitted = fit(graph, epochs=7, refresh=3, roles=8, k=4, beta=0.9)
    predictor = fitted.prediction.predictor
    assert isinstance(predictor, BAGCNPredictor)
    torch.testing.assert_close(predictor.logits(graph.data), fitted.prediction.logits)
    again = BAGCNPredictor.restore(*predictor.state())
    assert torch.equal(again.logits(other.data), predictor.logits(other.data))


def test_shortcuts_are_searched_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    search = BAGCN.shortcuts

    def count(self: BAGCN, *arguments: Any) -> Any:
        calls.append(1)
        return search(self, *arguments)

    monkeypatch.setattr(BAGCN, "shortcuts", count)
    fit(draw(n=60), epochs=10, refresh=4)
    # Before training, after four and eight epochs, and after the last.
    assert len(calls) == 4


def test_selected_is_what_is_used() -> None:
    # Shortcuts of earlier weights would say something else about the selected ones,
    # most of all where features say nothing.
    data = draw(n=120).data
    data.x = torch.randn(120, 16, generator=torch.Generator().manual_seed(0))
    graph = check_data(data)
    fitted = fit(graph, epochs=12, refresh=5, lr=0.1, beta=3.0)
    seen = {int(r["epoch"]): r["val_accuracy"] for r in fitted.prediction.history}
    validated = [v for v in seen.values() if v == v]
    assert [e for e, v in seen.items() if v == v] == [4, 9, 11]
    assert len(set(validated)) > 1
    assert fitted.accuracy(graph.data.val_mask) == max(validated) < 1


def test_loss_is_the_sum_of_its_terms() -> None:
    torch.manual_seed(0)
    logits, local, distant = torch.randn(3, 12, 4)
    near, far = torch.randn(2, 12, 5)
    both = Both(logits, local, distant, near, far)
    nodes, target = torch.tensor([1, 4, 7]), torch.tensor([0, 3, 2])
    head = nn.Linear(5, 5)
    ce = [F.cross_entropy(z[nodes], target) for z in (logits, local, distant)]
    # All nodes are anchors, and the order of the rows does not count.
    contrast = info_nce(head(near), head(far), 0.4)
    config = BAGCNConfig(mu=0.7, omega=0.2, tau=0.4)
    expected = ce[0] + 0.2 * (ce[1] + ce[2]) + 0.7 * contrast
    torch.testing.assert_close(bagcn_loss(both, head, nodes, target, config), expected)
    bare = BAGCNConfig(mu=0.0, omega=0.0)
    assert torch.equal(bagcn_loss(both, head, nodes, target, bare), ce[0])
    # A sample of anchors is another contrast: two among two are easier to tell.
    few = BAGCNConfig(mu=1.0, omega=0.0, tau=0.4, anchors=2)
    with torch.no_grad():
        easier = bagcn_loss(both, head, nodes, target, few) - ce[0]
        assert float(easier) < float(contrast.detach())


def test_the_projection_is_trained_along(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adam's first step moves a weight that counts by the learning rate."""
    made: list[tuple[ProjectionHead, Tensor]] = []

    def make(channels: int) -> ProjectionHead:
        head = ProjectionHead(channels)
        made.append((head, head.linear.weight.detach().clone()))
        return head

    monkeypatch.setattr("elugcn.methods.bagcn.ProjectionHead", make)
    fit(draw(n=60), epochs=1, lr=0.03)
    ((head, first),) = made
    moved = (head.linear.weight.detach() - first).abs()
    assert float(moved.median()) == pytest.approx(0.03, rel=0.01)


def one_cell(method: str) -> Comparison:
    cell = Cell(method, "cora", Summary(80.0, 1.0, 2), paper=published(method, "cora"))
    return Comparison((method,), ("cora",), {(method, "cora"): cell})


@pytest.mark.parametrize("form", ["markdown", "latex", "terminal"])
def test_tables_say_that_it_is_reconstructed(form: str) -> None:
    text = render(one_cell("bagcn"), form)
    assert "BAGCN (reconstructed)" in text
    assert "bagcn" not in text
    assert "83.70" in text  # the paper's
    assert "reconstructed" in METHODS["bagcn"].summary


@pytest.mark.parametrize(
    ("method", "name"),
    [
        ("bagcn", "BAGCN (reconstructed)"),
        ("cogsl", "CoGSL (sparse variant)"),
        ("gcn", "gcn"),
    ],
)
def test_figures_use_the_same_names(method: str, name: str) -> None:
    axis = draw_comparison(one_cell(method)).axes[0]
    assert [label.get_text() for label in axis.get_yticklabels()] == [name]
    assert name in render(one_cell(method), "markdown")


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": 0},
        {"roles": 0},
        {"refresh": 0},
        {"anchors": 1},
        {"beta": -0.1},
        {"mu": -1.0},
        {"omega": -1.0},
        {"tau": 0.0},
        {"input_dropout": 1.0},
    ],
)
def test_refusals(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        BAGCNConfig(**wrong)
