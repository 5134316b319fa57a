"""What the labels do, and the ELU graph under a model of your own.

python examples/elu_graph.py [DATASET]
"""

import sys

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv
from torch_geometric.transforms import NormalizeFeatures

from elugcn import NodeClassifier, label_utilization, learn_elu_graph, load_dataset
from elugcn.transforms import AddELUGraph


def main(dataset: str) -> None:
    data = NormalizeFeatures()(load_dataset(dataset))

    # Definition 1: do label propagation and a GCN agree on a node?
    gcn = NodeClassifier("gcn", random_state=0).fit(data)
    use = label_utilization(data, gcn=gcn.predict_proba())
    print(use)
    for name, nodes in {"ELU": use.elu, "NELU": use.nelu}.items():
        print(f"GCN on {name} test nodes: {gcn.score(nodes & data.test_mask):.3f}")

    # The closed form: S* from predictions H and the training labels.
    labels = torch.where(data.train_mask, data.y, -1)
    h = torch.from_numpy(gcn.predict_proba())
    print(learn_elu_graph(h, labels, lpa=use.lpa_proba))

    # The same graph as edges, for any PyG model.
    data = AddELUGraph(topk=20)(data)
    for share in (0.0, 0.5):
        print(f"plain PyG, share {share} of the ELU graph: {train(data, share):.3f}")


class TwoGraphs(nn.Module):
    """A plain GCN whose second layer also listens to the ELU graph."""

    def __init__(self, data: Data, share: float) -> None:
        super().__init__()
        self.share = share
        classes = int(data.y.max()) + 1
        self.first = GCNConv(data.num_features, 64)
        self.near = GCNConv(64, classes)
        self.far = GCNConv(64, classes, normalize=False, add_self_loops=False)

    def forward(self, data: Data) -> Tensor:
        """Logits of every node."""
        x = F.dropout(data.x, 0.5, self.training)
        hidden = F.relu(self.first(x, data.edge_index))
        hidden = F.dropout(hidden, 0.5, self.training)
        near = self.near(hidden, data.edge_index)
        far = self.far(hidden, data.elu_edge_index, data.elu_edge_weight)
        return (1 - self.share) * near + self.share * far


def train(data: Data, share: float, epochs: int = 100) -> float:
    """Test accuracy after the last epoch."""
    torch.manual_seed(0)
    model = TwoGraphs(data, share)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(epochs):
        model.train()
        optimizer.zero_grad()
        logits = model(data)
        F.cross_entropy(logits[data.train_mask], data.y[data.train_mask]).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = model(data).argmax(dim=1) == data.y
    return float(right[data.test_mask].float().mean())


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "digits")
