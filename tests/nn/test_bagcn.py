"""BAGCN's views against dense matrices."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.core.random import keep_mask
from elugcn.core.sparse import CSR, normalized_adjacency
from elugcn.nn.bagcn import BAGCN, Biaffine

N = 25


@pytest.fixture
def graph() -> tuple[Tensor, CSR]:
    edges = torch.randint(0, N, (2, 60))
    edges = torch.unique(edges[:, edges[0] != edges[1]], dim=1)
    return torch.randn(N, 6), normalized_adjacency(edges, N)


def make(**options: object) -> BAGCN:
    """Weights away from their first values: biases start at zero."""
    model = BAGCN(6, 5, 3, **({"roles": 4, "k": 3} | options))  # type: ignore[arg-type]
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.5)
    return model.eval()


def every_pair() -> CSR:
    return CSR.from_tensor(torch.ones(N, N))


def all_scores(model: BAGCN, x: Tensor) -> Tensor:
    """[p; 1]ᵀ U [r; 1] for every pair, one after the other."""
    z = x @ model.weight + model.bias
    out = torch.empty(N, N)
    one = torch.ones(1)
    for u in range(N):
        for v in range(N):
            p, r = F.relu(z[u, :4]), F.relu(z[v, 4:8])
            out[u, v] = (
                torch.cat([p, one]) @ model.biaffine.weight @ torch.cat([r, one])
            )
    return out


def test_biaffine_scores_are_the_four_terms() -> None:
    """pᵀ U r + aᵀ p + bᵀ r + b₀, for the parts of the one matrix."""
    biaffine = Biaffine(4)
    torch.nn.init.normal_(biaffine.weight)
    p, r = torch.randn(N, 4), torch.randn(N, 4)
    u, a = biaffine.weight[:4, :4], biaffine.weight[:4, 4]
    b, constant = biaffine.weight[4, :4], biaffine.weight[4, 4]
    expected = p @ u @ r.T + (p @ a)[:, None] + r @ b + constant
    out = biaffine(p, r, every_pair()).view(N, N)
    torch.testing.assert_close(out, expected)


def test_gradients_of_the_scores() -> None:
    biaffine = Biaffine(3)
    pairs = CSR.from_tensor((torch.rand(N, N) < 0.2).float())
    p, r = (torch.randn(N, 3, requires_grad=True) for _ in range(2))
    weight = torch.randn(pairs.nnz)
    inputs = [p, r, biaffine.weight]
    ours = torch.autograd.grad((biaffine(p, r, pairs) * weight).sum(), inputs)
    left, right = biaffine.factors(p, r)
    plain = (left[pairs.row] * right[pairs.col.long()]).sum(dim=1)
    theirs = torch.autograd.grad((plain * weight).sum(), inputs)
    for one, two in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("k", [1, 3, 10])
@torch.no_grad()
def test_shortcuts_are_the_best_beyond_the_neighbourhood(
    graph: tuple[Tensor, CSR], k: int
) -> None:
    x, adj = graph
    model = make(k=k)
    scores = all_scores(model, x)
    scores[adj.to_dense() != 0] = -torch.inf
    scores.fill_diagonal_(-torch.inf)
    pairs = model.shortcuts(x, adj).to_dense() != 0
    for u in range(N):
        assert pairs[u].nonzero().squeeze(1).tolist() == sorted(
            scores[u].topk(k).indices.tolist()
        )


@torch.no_grad()
def test_equations(graph: tuple[Tensor, CSR]) -> None:
    x, adj = graph
    model = make(beta=0.7)
    pairs = model.shortcuts(x, adj)
    kept = pairs.to_dense() != 0
    b = all_scores(model, x).masked_fill(~kept, -torch.inf).softmax(dim=1)
    torch.testing.assert_close(b.sum(dim=1), torch.ones(N))
    z = x @ model.weight + model.bias
    near = (x @ model.weight)[:, 8:13]
    a = adj.to_dense()
    hidden = F.relu(a @ near + model.bias[8:13])
    local = a @ hidden @ model.local.weight.T + model.local.bias
    seen = b @ F.relu(z[:, 13:])
    distant = model.distant(seen)
    both = model.views(x, adj, pairs)
    close = {"rtol": 1e-4, "atol": 1e-4}
    torch.testing.assert_close(both.hidden_local, hidden, **close)
    torch.testing.assert_close(both.hidden_distant, seen, **close)
    torch.testing.assert_close(both.local, local, **close)
    torch.testing.assert_close(both.distant, distant, **close)
    torch.testing.assert_close(both.logits, local + 0.7 * distant, **close)
    torch.testing.assert_close(model(x, adj), both.logits)
    sparse = model(CSR.from_tensor(x), adj)
    torch.testing.assert_close(sparse, both.logits, **close)


@torch.no_grad()
def test_rows_of_the_shortcuts_sum_to_one(graph: tuple[Tensor, CSR]) -> None:
    """Where all distant values are one, so is all that is gathered."""
    x, adj = graph
    model = make()
    model.weight[:, 13:] = 0.0
    model.bias[13:] = 1.0
    both = model.views(x, adj, model.shortcuts(x, adj))
    torch.testing.assert_close(both.hidden_distant, torch.ones(N, 5))


@torch.no_grad()
def test_a_node_next_to_all_others_has_no_shortcut() -> None:
    star = torch.stack([torch.zeros(5, dtype=torch.long), torch.arange(1, 6)])
    adj = normalized_adjacency(torch.cat([star, star.flip(0)], dim=1), 6)
    model = make(k=10)
    pairs = model.shortcuts(torch.randn(6, 6), adj)
    expected = 1 - torch.eye(6)
    expected[0] = expected[:, 0] = 0.0
    assert torch.equal((pairs.to_dense() != 0).float(), expected)
    both = model.views(torch.randn(6, 6), adj, pairs)
    assert torch.equal(both.hidden_distant[0], torch.zeros(5))
    assert bool(torch.isfinite(both.logits).all())


def test_dropout_is_for_training(graph: tuple[Tensor, CSR]) -> None:
    x, adj = graph
    model = make(dropout=0.5)
    pairs = model.shortcuts(x, adj)
    assert torch.equal(model(x, adj), model(x, adj))
    model.train()
    one, two = (model.views(x, adj, pairs).logits for _ in range(2))
    assert not torch.equal(one, two)
    # Shortcuts are searched without dropout, whatever the mode.
    assert torch.equal(model.shortcuts(x, adj).col, pairs.col)


@torch.no_grad()
def test_roles_and_hidden_states_are_dropped(graph: tuple[Tensor, CSR]) -> None:
    x, adj = graph
    model = make(dropout=0.5, input_dropout=0.0, beta=0.7)
    pairs = model.shortcuts(x, adj)
    torch.manual_seed(1)
    both = model.train().views(x, adj, pairs)
    torch.manual_seed(1)
    p, r, far, near = (keep_mask((N, w), 0.5, x) for w in (4, 4, 5, 5))
    z = x @ model.weight + model.bias
    asks, asked = F.relu(z[:, :4]) * p, F.relu(z[:, 4:8]) * r
    left, right = (F.pad(t, (0, 1), value=1.0) for t in (asks, asked))
    scores = left @ model.biaffine.weight @ right.T
    b = scores.masked_fill(pairs.to_dense() == 0, -torch.inf).softmax(dim=1)
    distant = model.distant(b @ (F.relu(z[:, 13:]) * far))
    a = adj.to_dense()
    hidden = F.relu(a @ x @ model.weight[:, 8:13] + model.bias[8:13])
    local = a @ (hidden * near) @ model.local.weight.T + model.local.bias
    close = {"rtol": 1e-4, "atol": 1e-4}
    torch.testing.assert_close(both.distant, distant, **close)
    torch.testing.assert_close(both.logits, local + 0.7 * distant, **close)


def test_every_weight_learns(graph: tuple[Tensor, CSR]) -> None:
    x, adj = graph
    model = make(k=5).train()
    both = model.views(x, adj, model.shortcuts(x, adj))
    (both.logits.logsumexp(dim=1).sum()).backward()
    for name, p in model.named_parameters():
        assert p.grad is not None
        assert bool((p.grad != 0).any()), name
    # What the asking node alone adds to its scores cancels.
    assert model.biaffine.weight.grad is not None
    alone = model.biaffine.weight.grad[:, -1]
    assert float(alone.abs().max()) < 1e-3 * float(
        model.biaffine.weight.grad.abs().max()
    )
    assert {id(p) for p in model.first_layer()} == {id(model.weight), id(model.bias)}
