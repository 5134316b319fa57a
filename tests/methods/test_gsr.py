"""GSR's stages: held-out edges, the contrast, the slow copy, the refined graph."""

import copy
import math
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from sklearn.metrics import roc_auc_score
from torch import Tensor

from elugcn.config import resolve_config
from elugcn.core.refine import undirected
from elugcn.core.sparse import CSR, normalized_adjacency
from elugcn.data.checks import CheckedGraph, check_data
from elugcn.data.datasets import load_dataset
from elugcn.errors import InputError
from elugcn.fitting import Fitted, fit_graph
from elugcn.methods import gsr as module
from elugcn.methods.base import Run, make_problem
from elugcn.methods.gsr import GSRConfig, pretrained, refined
from elugcn.methods.gsr_pretrain import (
    LAST_LR,
    TAU,
    HeldOut,
    Pretraining,
    Views,
    contrast,
    follow,
    pretrain,
    rate,
)
from elugcn.methods.neural import NetworkPredictor
from elugcn.nn import GCN
from elugcn.training.progress import SILENT

FEW = {"pretrain_steps": 5, "pretrain_batch": 64, "negatives": 50, "structure_dim": 8}


def draw(split: int = 0, n: int = 150) -> CheckedGraph:
    return check_data(load_dataset("sbm", split=split, n=n, n_classes=3, n_features=16))


def fit(graph: CheckedGraph, seed: int = 0, **options: Any) -> Fitted:
    config = resolve_config("gsr", options=FEW | options)
    return fit_graph(graph, "gsr", config, seed=seed)


def how(**options: Any) -> Pretraining:
    given = {"width": 8, "steps": 3, "batch": 16, "negatives": 30, "intra": 0.75}
    given |= {"lr": 1e-3, "weight_decay": 5e-4, "momentum": 0.999}
    return Pretraining(**(given | options))


def test_held_out_edges_carry_no_message_either_way() -> None:
    torch.manual_seed(0)
    data = draw(n=60).data
    graph = undirected(normalized_adjacency(data.edge_index, 60))
    held = HeldOut(graph)
    entries = held.pairs[torch.randperm(held.pairs.numel())[:20]]
    entries = torch.where(torch.rand(20) < 0.5, entries, held.turned[entries])
    left = graph.to_dense()
    left[graph.row[entries], graph.col[entries].long()] = 0.0
    left[graph.col[entries].long(), graph.row[entries]] = 0.0
    assert int(graph.to_dense().sum() - left.sum()) == 40
    root = left.sum(dim=1).clamp(min=1e-9).rsqrt() * (left.sum(dim=1) > 0)
    out = held.without(entries)
    torch.testing.assert_close(out.to_dense(), root[:, None] * left * root)
    expected = normalized_adjacency(data.edge_index, 60, self_loops=False)
    torch.testing.assert_close(held.whole.to_dense(), expected.to_dense())


def test_contrast_by_hand() -> None:
    """One query, a positive at 60°, a negative at 90°; another negative is itself."""
    query = torch.tensor([[1.0, 0.0]])
    key = torch.tensor([[0.5, 3**0.5 / 2]])
    others = torch.tensor([[0.0, 1.0], [0.5, 3**0.5 / 2]])
    same = torch.tensor([[False, True]])
    expected = -math.log(math.exp(0.5 / TAU) / (math.exp(0.5 / TAU) + 1.0))
    out = contrast(query, key, others, same)
    assert float(out) == pytest.approx(expected, rel=1e-4)
    # Were it counted, half of the probability would go to it.
    wrong = contrast(query, key, others, torch.zeros_like(same))
    assert float(wrong) > math.log(2)


def test_loss_weighs_within_and_across_views() -> None:
    torch.manual_seed(0)
    views = Views((3, 4), 6)
    queries = [torch.randn(5, 6) for _ in range(2)]
    keys = [F.normalize(torch.randn(5, 6)) for _ in range(2)]
    others = [F.normalize(torch.randn(9, 6)) for _ in range(2)]
    same = torch.rand(5, 9) < 0.2
    own = [
        contrast(F.normalize(q), k, o, same)
        for q, k, o in zip(queries, keys, others, strict=True)
    ]
    crossed = [
        contrast(F.normalize(views.decoders[a](queries[a])), keys[b], others[b], same)
        for a, b in ((0, 1), (1, 0))
    ]
    for w in (0.0, 0.75, 1.0):
        expected = w * (own[0] + own[1]) / 2 + (1 - w) * (crossed[0] + crossed[1]) / 2
        torch.testing.assert_close(views.loss(queries, keys, others, same, w), expected)


def test_a_decoder_has_an_elu_after_both_layers() -> None:
    torch.manual_seed(0)
    decode = Views((3, 4), 6).decoders[1]
    first, shift, second, last = decode.parameters()
    x = 3 * torch.randn(5, 6)
    z = x
    for weight, bias in ((first, shift), (second, last)):
        z = z @ weight.T + bias
        z = torch.where(z > 0, z, z.exp() - 1)
    assert bool((z < 0).any())
    torch.testing.assert_close(decode(x), z)


def test_the_copy_follows_slowly() -> None:
    fast, slow = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    before = copy.deepcopy(slow)
    follow(slow, fast, momentum=0.9)
    for new, old, goal in zip(
        slow.parameters(), before.parameters(), fast.parameters(), strict=True
    ):
        torch.testing.assert_close(new, 0.9 * old + 0.1 * goal)


def test_rate_falls_to_the_last() -> None:
    config = how(steps=100)
    assert rate(0, config) == pytest.approx(1e-3)
    assert rate(50, config) == pytest.approx(LAST_LR + (1e-3 - LAST_LR) / 4)
    assert rate(100, config) == pytest.approx(LAST_LR)
    assert rate(0, how(lr=1e-5)) == rate(3, how(lr=1e-5)) == pytest.approx(1e-5)


def test_pretraining_ranks_neighbours_above_others() -> None:
    torch.manual_seed(0)
    data = draw().data
    graph = undirected(normalized_adjacency(data.edge_index, 150))
    xs = (data.x, torch.randn(150, 8))
    once = torch.ones(150, 150, dtype=torch.bool).triu(1)
    linked = (graph.to_dense() > 0)[once]

    def ranked(steps: int) -> list[float]:
        torch.manual_seed(1)
        config = how(steps=steps, lr=0.01, batch=64, negatives=50)
        views = pretrain(xs, (16, 8), graph, config, SILENT)
        with torch.no_grad():
            embeddings = views.embeddings(xs, HeldOut(graph).whole)
        cosines = [F.normalize(z) @ F.normalize(z).T for z in embeddings]
        return [roc_auc_score(linked, cosine[once]) for cosine in cosines]

    for after, before in zip(ranked(40), ranked(0), strict=True):
        assert after > before + 0.02


def test_encoders_do_not_see_the_edges_they_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without, forward = HeldOut.without, GCN.forward
    made: list[tuple[int, CSR]] = []
    seen: list[CSR] = []

    def watched(held: HeldOut, entries: Tensor) -> CSR:
        made.append((entries.numel(), without(held, entries)))
        return made[-1][1]

    def encode(model: GCN, x: Tensor, adj: CSR, *rest: Any) -> list[Tensor]:
        seen.append(adj)
        return forward(model, x, adj, *rest)

    monkeypatch.setattr(HeldOut, "without", watched)
    monkeypatch.setattr(GCN, "forward", encode)
    data = draw().data
    graph = undirected(normalized_adjacency(data.edge_index, 150))
    pretrain((data.x, data.x), (16, 16), graph, how(steps=2), SILENT)
    assert len(seen) == 8  # two steps, two views, queries and keys
    for adj in seen:
        assert [count for count, graph in made if graph is adj] == [16]


@dataclass
class Step:
    """What a step of the pre-training looked at, and whose weights it began with."""

    encoders: torch.nn.ModuleList
    adj: CSR
    keys: list[Tensor]
    others: list[Tensor]
    same: Tensor


def watch(
    xs: tuple[Tensor, Tensor], config: Pretraining, monkeypatch: pytest.MonkeyPatch
) -> list[Step]:
    """The steps of a pre-training on nine nodes, each joined to two on either side."""
    without, whole = HeldOut.without, Views.loss
    made: list[CSR] = []
    steps: list[Step] = []

    def left(held: HeldOut, entries: Tensor) -> CSR:
        made.append(without(held, entries))
        return made[-1]

    def loss(views: Views, queries: Any, keys: Any, others: Any, *rest: Any) -> Tensor:
        encoders = copy.deepcopy(views.encoders)
        steps.append(Step(encoders, made[-1], keys, others, rest[0]))
        return whole(views, queries, keys, others, *rest)

    monkeypatch.setattr(HeldOut, "without", left)
    monkeypatch.setattr(Views, "loss", loss)
    # No two nodes have the same neighbours, and so the same key.
    ring = torch.eye(9)
    graph = undirected(CSR.from_tensor(sum(ring.roll(i, 0) for i in (1, 2, 7, 8))))
    pretrain(xs, (3, 4), graph, config, SILENT)
    return steps


def test_keys_are_of_the_slow_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    xs = torch.randn(9, 3), torch.randn(9, 4)
    config = how(steps=2, lr=0.1, momentum=0.75)
    first, second = watch(xs, config, monkeypatch)
    pairs = zip(first.encoders, second.encoders, xs, strict=True)
    for view, (old, new, x) in enumerate(pairs):
        slow = copy.deepcopy(old)
        with torch.no_grad():
            for mean, a, b in zip(
                slow.parameters(), old.parameters(), new.parameters(), strict=True
            ):
                mean.copy_(0.75 * a + 0.25 * b)
            z, fast = (F.normalize(f(x, second.adj)[0]) for f in (slow, new))
        for found in (second.keys[view], second.others[view]):
            # Each is the row of some node.
            assert float(torch.cdist(found, z).amin(dim=1).max()) < 1e-3
            assert float(torch.cdist(found, fast).amin(dim=1).max()) > 1e-2


def test_the_positive_is_no_negative(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine nodes of different keys: a negative with the key is the positive itself."""
    torch.manual_seed(0)
    xs = torch.randn(9, 3), torch.randn(9, 4)
    (step,) = watch(xs, how(steps=1, negatives=200), monkeypatch)
    keys, others = torch.cat(step.keys, dim=1), torch.cat(step.others, dim=1)
    assert len(others.unique(dim=0)) == 9
    expected = (keys[:, None] == others).all(dim=2)
    assert bool(expected.any(dim=1).all())
    assert torch.equal(step.same, expected)


def test_a_graph_without_edges_can_be_encoded() -> None:
    graph = undirected(normalized_adjacency(torch.empty(2, 0, dtype=torch.long), 5))
    views = pretrain(
        (torch.randn(5, 3), torch.zeros(5, 2)), (3, 2), graph, how(), SILENT
    )
    assert isinstance(views, Views)


@pytest.mark.parametrize(("add", "remove"), [(0.25, 0.0), (0.0, 0.1), (0.5, 0.2)])
@pytest.mark.parametrize("share", [0.0, 0.4])
def test_pairs_that_come_and_go(add: float, remove: float, share: float) -> None:
    graph = draw()
    options = FEW | {"add": add, "remove": remove, "feature_weight": share}
    config = resolve_config("gsr", options=options)
    assert isinstance(config, GSRConfig)
    problem = make_problem(graph.data, config, torch.device("cpu"))
    torch.manual_seed(0)
    _, views = pretrained(problem, config, Run())
    out = refined(problem, config, views)
    alike = torch.zeros(150, 150)
    for z, weight in zip(views, (share, 1 - share), strict=True):
        cosine = F.normalize(z) @ F.normalize(z).T
        alike += weight * (cosine - cosine.min()) / (1 - cosine.min())
    once = torch.ones(150, 150, dtype=torch.bool).triu(1)
    joined = (problem.adj.to_dense() > 0) & once
    pairs = int(joined.sum())
    assert out.added.size(1) == round(add * pairs)
    assert out.removed.size(1) == round(remove * pairs)
    if add:
        rest = once & ~joined
        rest[*out.added] = False
        assert not bool(joined[*out.added].any())
        assert float(alike[*out.added].min()) >= float(alike[rest].max()) - 1e-5
    if remove:
        assert bool(joined[*out.removed].all())
        kept = joined.clone()
        kept[*out.removed] = False
        assert float(alike[*out.removed].max()) <= float(alike[kept].min()) + 1e-5


def test_it_learns_and_says_what_it_changed() -> None:
    graph = draw()
    fitted = fit(graph, epochs=40, remove=0.1)
    right = fitted.accuracy(graph.data.test_mask)
    assert right is not None
    assert right > 0.75  # a third is the majority
    pairs = graph.data.edge_index.size(1) // 2
    facts = fitted.prediction.facts
    assert facts["pairs_added"] == round(0.25 * pairs)
    assert facts["pairs_removed"] == round(0.1 * pairs)
    assert {"pretrain", "graph", "train"} <= set(fitted.prediction.seconds)


def test_the_first_layer_is_the_encoders(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[GCN] = []
    whole = module.train_network

    def spy(*arguments: Any) -> Any:
        found.append(copy.deepcopy(arguments[3]))
        return whole(*arguments)

    encoders: list[GCN] = []
    stage = module.pretrained

    def listen(*arguments: Any) -> Any:
        views, z = stage(*arguments)
        encoders.append(views.encoders[0])
        return views, z

    monkeypatch.setattr(module, "train_network", spy)
    monkeypatch.setattr(module, "pretrained", listen)
    fit(draw(n=60), epochs=1)
    assert torch.equal(found[0].weights[0], encoders[0].weights[0])
    assert torch.equal(found[0].biases[0], encoders[0].biases[0])


def test_seeds() -> None:
    graph = draw(n=80)
    one, two = (fit(graph, 5, epochs=3).prediction.logits for _ in range(2))
    assert torch.equal(one, two)
    assert not torch.equal(one, fit(graph, 6, epochs=3).prediction.logits)


def test_predictor_is_the_gcn_on_the_graphs_own_edges() -> None:
    graph, other = draw(), draw(split=1, n=90)
    fitted = fit(graph, epochs=5)
    predictor = fitted.prediction.predictor
    assert isinstance(predictor, NetworkPredictor)
    data = other.data
    x, adj = predictor.scaler(data.x), normalized_adjacency(data.edge_index, 90)
    with torch.no_grad():
        expected = predictor.model(x, adj)[0]
    torch.testing.assert_close(predictor.logits(data), expected)
    again = NetworkPredictor.restore(*predictor.state())
    assert torch.equal(again.logits(data), predictor.logits(data))
    # With nothing added or removed the refined graph is the graph.
    plain = fit(graph, epochs=5, add=0.0).prediction
    assert plain.predictor is not None
    torch.testing.assert_close(plain.predictor.logits(graph.data), plain.logits)


@pytest.mark.parametrize(
    "wrong",
    [
        {"add": -0.1},
        {"remove": 1.1},
        {"intra": 2.0},
        {"feature_weight": -1.0},
        {"pretrain_steps": -1},
        {"pretrain_batch": 0},
        {"pretrain_lr": 0.0},
        {"negatives": 0},
        {"structure_dim": 0},
        {"window": 0},
        {"input_dropout": 1.0},
    ],
)
def test_refusals(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        GSRConfig(**wrong)


def test_momentum_is_the_configurations(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(
        "elugcn.methods.gsr_pretrain.follow",
        lambda copy, model, momentum: seen.append(momentum),
    )
    data = draw(n=60).data
    config = GSRConfig(**FEW, momentum=0.75)
    problem = make_problem(data, config, torch.device("cpu"))
    pretrained(problem, config, Run())
    assert seen == [0.75] * FEW["pretrain_steps"]


def test_momentum_below_one() -> None:
    with pytest.raises(InputError, match="momentum must be at least 0 and below 1"):
        GSRConfig(momentum=1.0)
