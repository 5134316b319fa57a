"""The MLP on propagated features: row by row, for a whole graph, and as a dense twin."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.core.sparse import CSR, normalized_adjacency
from elugcn.nn.propagated_mlp import PropagatedMLP

N, D, H, C = 30, 9, 5, 3


def graph() -> tuple[Tensor, CSR, Tensor]:
    torch.manual_seed(0)
    edges = torch.randint(0, N, (2, 60))
    adj = normalized_adjacency(edges, N)
    x = torch.rand(N, D) * (torch.rand(N, D) < 0.4)
    a = adj.to_dense()
    mixed = torch.stack([torch.linalg.matrix_power(a, k) for k in range(4)]).mean(dim=0)
    return x, adj, mixed @ x


def network(norm: str) -> PropagatedMLP:
    """With statistics and parameters that are not the ones it starts with."""
    torch.manual_seed(1)
    model = PropagatedMLP(D, H, C, 0.5, 0.3, norm, order=3)
    for batch_norm in model.norms:
        assert isinstance(batch_norm, torch.nn.BatchNorm1d)
        for tensor in (batch_norm.weight, batch_norm.bias, batch_norm.running_mean):
            assert tensor is not None
            torch.nn.init.normal_(tensor)
        assert batch_norm.running_var is not None
        torch.nn.init.uniform_(batch_norm.running_var, 0.1, 2.0)
    return model.eval()


@pytest.mark.parametrize("norm", ["none", "batch"])
@pytest.mark.parametrize("sparse", [True, False])
def test_a_whole_graph_is_all_its_rows(norm: str, sparse: bool) -> None:
    x, adj, propagated = graph()
    model = network(norm)
    whole = model(CSR.from_tensor(x) if sparse else x, adj)
    torch.testing.assert_close(whole, model.rows(propagated), rtol=1e-4, atol=1e-5)


def test_rows_are_norm_layer_relu_norm_layer() -> None:
    _, _, propagated = graph()
    model = network("batch")
    one, two = model.norms
    h = F.relu(one(propagated) @ model.inner.weight.T + model.inner.bias)
    expected = two(h) @ model.outer.weight.T + model.outer.bias
    torch.testing.assert_close(model.rows(propagated), expected)


def test_training_normalises_by_the_rows_at_hand() -> None:
    model = PropagatedMLP(D, H, C, 0.0, 0.0, "batch", order=3).train()
    rows = torch.randn(50, D) * 7 + 3
    out = model.rows(rows)
    # Another scale and shift of the rows' columns changes nothing.
    torch.testing.assert_close(model.rows(rows * 2 - 1), out, rtol=1e-3, atol=1e-4)
    assert not torch.allclose(model.eval().rows(rows), out, atol=1e-2)


def test_each_layer_has_its_dropout() -> None:
    rows = torch.rand(400, D) + 0.5

    def differs(dropout: float, of_inputs: float) -> bool:
        torch.manual_seed(0)
        model = PropagatedMLP(D, H, C, dropout, of_inputs, order=1).train()
        return not torch.equal(model.rows(rows), model.rows(rows))

    assert differs(0.5, 0.0)
    assert differs(0.0, 0.5)
    assert not differs(0.0, 0.0)
    assert PropagatedMLP(D, H, C, 0.5).input_dropout == 0.5
