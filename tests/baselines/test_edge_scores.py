"""Scores of edges against an MLP on the two ends side by side."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.baselines.edge_scores import BLOCK, EdgeScorer
from elugcn.engine import CSR, normalized_adjacency


def graph(n: int = 25, count: int = 90) -> tuple[Tensor, CSR]:
    torch.manual_seed(0)
    edges = torch.randint(0, n, (2, count))
    edges = torch.unique(edges[:, edges[0] != edges[1]], dim=1)
    return torch.randn(n, 6), normalized_adjacency(edges, n)


def randomized(joint: bool) -> EdgeScorer:
    """Biases too: they start at zero."""
    scorer = EdgeScorer(6, 4, joint=joint)
    for p in scorer.parameters():
        torch.nn.init.normal_(p)
    return scorer


def written_out(scorer: EdgeScorer, x: Tensor, at: CSR) -> Tensor:
    """Every edge has the features of both ends, the receiving one first."""
    pair = torch.cat([x[at.row], x[at.col.long()]], dim=1)
    u, v = scorer.weight[:, :4], scorer.weight[:, 4:]
    first = torch.cat([u, v]) if scorer.joint else torch.block_diag(u, v)
    hidden = F.relu(pair @ first + scorer.bias)
    out: Tensor = hidden @ scorer.head + scorer.offset
    return out


@pytest.mark.parametrize("joint", [True, False])
def test_scores_are_an_mlp_on_both_ends(joint: bool) -> None:
    x, at = graph()
    scorer = randomized(joint)
    ours, theirs = scorer(x, at), written_out(scorer, x, at)
    torch.testing.assert_close(ours, theirs)
    along = torch.randn_like(ours)
    parameters = list(scorer.parameters())
    one = torch.autograd.grad((ours * along).sum(), parameters)
    two = torch.autograd.grad((theirs * along).sum(), parameters)
    for a, b in zip(one, two, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("joint", [True, False])
def test_scores_in_blocks_and_of_some_edges(joint: bool) -> None:
    x, at = graph(200, 12_000)
    assert at.nnz > BLOCK
    scorer = randomized(joint)
    whole, ends = scorer(x, at), scorer.ends(x)
    blocks = scorer.all_scores(ends, at)
    assert not blocks.requires_grad
    torch.testing.assert_close(blocks, whole)
    some = torch.tensor([3, 0, 20])
    part = scorer.scores(ends, at.row[some], at.col[some])
    torch.testing.assert_close(part, whole[some])


def test_sparse_features_and_no_edges() -> None:
    x, at = graph()
    x = x * (torch.rand_like(x) < 0.3)
    scorer = randomized(joint=True)
    torch.testing.assert_close(scorer(CSR.from_tensor(x), at), scorer(x, at))
    none = normalized_adjacency(torch.empty(2, 0, dtype=torch.long), 25, None, False)
    assert scorer.all_scores(scorer.ends(x), none).shape == (0,)


@pytest.mark.parametrize("joint", [True, False])
def test_first_weights_are_glorots(joint: bool) -> None:
    """Uniform within the limits of one linear map; a large sample nearly reaches them."""
    scorer = EdgeScorer(300, 200, joint=joint)
    limit = (6 / ((600 if joint else 300) + 200)) ** 0.5
    weight = scorer.weight.detach()
    assert float(weight.abs().max()) == pytest.approx(limit, rel=0.01)
    assert float(weight.std()) == pytest.approx(limit / 3**0.5, rel=0.05)
    assert not bool(scorer.bias.any())
