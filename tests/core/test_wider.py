import gc
import weakref

import pytest
import torch

from elugcn.core import wider
from elugcn.core.sparse import normalized_adjacency
from elugcn.core.wider import wider_graphs
from elugcn.errors import InputError


@pytest.mark.parametrize("loops", [True, False])
def test_each_graph_is_the_pattern_of_the_last_squared(
    loops: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wider, "_ROWS", 7)
    edges = torch.randint(0, 30, (2, 45))
    edges = torch.unique(edges[:, edges[0] != edges[1]], dim=1)  # with directions
    adj = normalized_adjacency(edges, 30, self_loops=loops)
    first, second, third = wider_graphs(adj, 3)
    assert first is adj
    for last, graph in ((first, second), (second, third)):
        one = (last.to_dense() != 0).float()
        expected = ((one @ one) > 0).float()
        into, out_of = expected.sum(dim=1), expected.sum(dim=0)
        scale = torch.outer(into.clamp(min=1).rsqrt(), out_of.clamp(min=1).rsqrt())
        torch.testing.assert_close(graph.to_dense(), expected * scale)


def test_hops() -> None:
    path = torch.stack([torch.arange(9), torch.arange(1, 10)])
    adj = normalized_adjacency(torch.cat([path, path.flip(0)], dim=1), 10)
    reach = [g.to_dense()[0].count_nonzero().item() - 1 for g in wider_graphs(adj, 4)]
    assert reach == [1, 2, 4, 8]


def test_built_once_and_not_kept_for_longer_than_the_graph() -> None:
    adj = normalized_adjacency(torch.tensor([[0, 1], [1, 2]]), 4)
    assert wider_graphs(adj, 0) == []
    two = wider_graphs(adj, 2)
    assert wider_graphs(adj, 3)[1] is two[1]
    gone = weakref.ref(adj)
    del adj, two
    gc.collect()
    assert gone() is None


def test_graphs_that_would_be_too_large_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    star = torch.stack([torch.zeros(20, dtype=torch.long), torch.arange(1, 21)])
    adj = normalized_adjacency(torch.cat([star, star.flip(0)], dim=1), 21)
    monkeypatch.setattr(wider, "MAX_ENTRIES", 440)
    with pytest.raises(InputError, match=r"rb_order=2: .* more than 440 .* rb_order=1"):
        wider_graphs(adj, 2)  # 21² = 441
    monkeypatch.setattr(wider, "MAX_ENTRIES", 441)
    assert wider_graphs(adj, 2)[1].nnz == 441
