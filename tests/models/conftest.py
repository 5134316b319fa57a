"""A small graph with its dense twin, for every network."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor
from torch_geometric.utils import to_undirected

from elugcn.engine import CSR, GraphInputs, LowRank, as_features, normalized_adjacency

N, D, HID, C = 24, 10, 6, 3


@dataclass
class Small:
    """Features, edges and an ELU graph; nodes 22 and 23 are isolated."""

    x: Tensor
    edges: Tensor
    graph: LowRank

    @property
    def adj(self) -> CSR:
        return normalized_adjacency(self.edges, N)

    def inputs(self, sparse: bool = True, elu: bool = True) -> GraphInputs:
        x = as_features(self.x) if sparse else self.x
        assert isinstance(x, CSR) == sparse
        return GraphInputs(x, self.adj, self.graph if elu else None)


@pytest.fixture
def small() -> Small:
    generator = torch.Generator().manual_seed(1)
    edges = to_undirected(
        torch.randint(0, N - 2, (2, 40), generator=generator), num_nodes=N
    )
    x = torch.rand(N, D, generator=generator)
    return Small(
        x=torch.where(x > 0.8, x, 0.0),
        edges=edges[:, edges[0] != edges[1]],
        graph=LowRank(
            torch.randn(N, C, generator=generator),
            torch.randn(N, C, generator=generator),
        ),
    )


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
