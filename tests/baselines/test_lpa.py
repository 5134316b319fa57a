"""Label propagation against PyG's, and nodes that no label reaches."""

import pytest
import torch
from torch_geometric.nn import LabelPropagation

from elugcn.data.validation import check_data
from elugcn.engine import normalized_adjacency
from tests.baselines.helpers import Draw, fit


@pytest.mark.parametrize("steps", [1, 3, 20])
def test_without_memory_it_is_pygs_with_labels_put_back(
    checked: Draw, steps: int
) -> None:
    graph = checked(0)
    data = graph.data
    result = fit(graph, "lpa", lpa_steps=steps, lpa_alpha=1.0, self_loops=False)
    known = data.train_mask
    labels = torch.nn.functional.one_hot(data.y, 3).float() * known[:, None]

    def put_back(share: torch.Tensor) -> torch.Tensor:
        return torch.where(known[:, None], labels, share)

    theirs = LabelPropagation(steps, 1.0)
    expected = theirs(data.y, data.edge_index, known, post_step=put_back)
    reached = expected.sum(dim=1) > 0
    share = expected[reached] / expected[reached].sum(dim=1, keepdim=True)
    torch.testing.assert_close(result.proba[reached], share)


def test_each_step_keeps_a_share_of_the_last(checked: Draw) -> None:
    graph = checked(0)
    data, known = graph.data, graph.data.train_mask
    a = normalized_adjacency(data.edge_index, data.num_nodes).to_dense()
    labels = torch.nn.functional.one_hot(data.y, 3).float() * known[:, None]
    share = labels
    for _ in range(4):
        share = 0.8 * a @ share + 0.2 * share
        share = torch.where(known[:, None], labels, share)
    result = fit(graph, "lpa", lpa_steps=4, lpa_alpha=0.8)
    reached = share.sum(dim=1) > 0
    expected = share[reached] / share[reached].sum(dim=1, keepdim=True)
    torch.testing.assert_close(result.proba[reached], expected)


def test_a_node_that_no_label_reaches_gets_the_frequencies(checked: Draw) -> None:
    data = checked(0).data.clone()
    data.edge_index = data.edge_index[:, (data.edge_index > 0).all(dim=0)]
    data.train_mask[0] = False
    graph = check_data(data)
    result = fit(graph, "lpa", lpa_steps=2)
    counts = torch.bincount(data.y[graph.data.train_mask], minlength=3).float()
    torch.testing.assert_close(result.proba[0], counts / counts.sum())
    assert result.metadata["unreached"] >= 1
