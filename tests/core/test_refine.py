"""Refined graphs against all pairs, compared at once."""

import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from elugcn.core.refine import joint_embedding, refine, undirected
from elugcn.core.sparse import CSR


def drawn(n: int, seed: int, symmetric: bool = True) -> CSR:
    generator = torch.Generator().manual_seed(seed)
    a = (torch.rand(n, n, generator=generator) < 0.25).float()
    return CSR.from_tensor(torch.maximum(a, a.T) if symmetric else a)


def test_undirected() -> None:
    a = torch.tensor([[5.0, 2, 0], [0, 0, 0], [0, 3, 0]])
    expected = torch.tensor([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]])
    assert torch.equal(undirected(CSR.from_tensor(a)).to_dense(), expected)


def test_joint_embedding_orders_pairs_as_the_weighted_sum() -> None:
    a, b = torch.randn(20, 5), torch.randn(20, 3)
    expected = torch.zeros(20, 20)
    for z, weight in ((a, 0.3), (b, 0.7)):
        cosine = F.normalize(z) @ F.normalize(z).T
        expected += weight * (cosine - cosine.min()) / (1 - cosine.min())
    joint = joint_embedding([a, b], [0.3, 0.7])
    gap = joint @ joint.T - expected
    torch.testing.assert_close(gap, gap[:1, :1].expand(20, 20), rtol=0, atol=1e-5)
    assert torch.equal(joint_embedding([a, b], [0.0, 1.0]), F.normalize(b))
    # Views in which all nodes are the same tell nothing, and break nothing.
    same = joint_embedding([torch.ones(20, 2), b], [0.5, 0.5])
    assert bool(torch.isfinite(same).all())


@settings(max_examples=50, deadline=None)
@given(
    n=st.integers(2, 25),
    add=st.sampled_from([0.0, 0.1, 0.5, 2.0]),
    remove=st.sampled_from([0.0, 0.2, 1.0]),
    symmetric=st.booleans(),
    seed=st.integers(0, 500),
)
def test_the_stated_numbers_of_the_right_pairs(
    n: int, add: float, remove: float, symmetric: bool, seed: int
) -> None:
    graph = drawn(n, seed, symmetric)
    z = torch.randn(n, 4, generator=torch.Generator().manual_seed(seed + 1))
    out = refine(graph, z, add, remove)
    alike = z @ z.T
    stored = graph.to_dense() > 0
    joined = undirected(graph).to_dense() > 0
    once = torch.ones(n, n, dtype=torch.bool).triu(1)
    pairs = int((joined & once).sum())
    there = alike[joined & once]
    free = alike[~joined & once]
    assert out.removed.size(1) == round(remove * pairs)
    assert out.added.size(1) == min(round(add * pairs), free.numel())
    # The least alike are gone, the most alike have come.
    gone, new = alike[*out.removed], alike[*out.added]
    torch.testing.assert_close(gone.sort().values, there.sort().values[: len(gone)])
    best = free.sort(descending=True).values[: len(new)]
    torch.testing.assert_close(new.sort(descending=True).values, best)
    # And that is all that has changed: directions of the other edges are kept.
    expected = stored & ~torch.eye(n, dtype=torch.bool)
    for i, j in out.removed.T.tolist():
        expected[i, j] = expected[j, i] = False
    for i, j in out.added.T.tolist():
        expected[i, j] = expected[j, i] = True
    source, target = out.edge_index
    assert out.edge_index.size(1) == int(expected.sum())
    assert bool(expected[target, source].all())
