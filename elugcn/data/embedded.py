"""Two real datasets that need neither files nor network.

- `digits`: scikit-learn's 1,797 images of handwritten digits (8×8 pixels, Alpaydin and
  Kaynak 1998). The graph joins each image to its ten nearest in Euclidean distance;
  an edge exists if either end chose the other.
- `karate`: Zachary's karate club (1977), 34 members and 78 friendships, with the four
  communities and the first member of each as its label, as in Kipf and Welling (2017)
  and PyTorch Geometric. The features are the identity matrix.
"""

import numpy as np
import torch
from sklearn.datasets import load_digits as sklearn_digits
from sklearn.neighbors import kneighbors_graph
from torch_geometric.data import Data
from torch_geometric.datasets import KarateClub
from torch_geometric.utils import coalesce, to_undirected

from elugcn.data.splits import per_class_split, validation_split

N_NEIGHBOURS = 10
_PIXEL_MAX = 16.0


def load_digits(split: int) -> Data:
    """The digits graph: 5 training and 3 validation nodes of each class, rest test.

    Args:
        split: seed of the draw.
    """
    bunch = sklearn_digits()
    x = np.ascontiguousarray(bunch.data / _PIXEL_MAX, dtype=np.float32)
    y = bunch.target.astype(np.int64)
    # The raw pixels are small integers: their distances are exact in float64, so the
    # neighbours do not depend on rounding.
    graph = kneighbors_graph(bunch.data, N_NEIGHBOURS, include_self=False).tocoo()
    edges = torch.from_numpy(np.stack([graph.row, graph.col]).astype(np.int64))
    class_names = [str(name) for name in bunch.target_names]
    train, val, test = per_class_split(y, 5, 3, split, class_names)
    return Data(
        x=torch.from_numpy(x),
        edge_index=coalesce(to_undirected(edges, num_nodes=y.size), num_nodes=y.size),
        y=torch.from_numpy(y),
        train_mask=torch.from_numpy(train),
        val_mask=torch.from_numpy(val),
        test_mask=torch.from_numpy(test),
        class_names=class_names,
        directed=False,
    )


def load_karate(split: int) -> Data:
    """The karate club: 1 fixed training and 1 validation node per class, rest test.

    Args:
        split: seed of the draw of the validation nodes.
    """
    club = KarateClub()[0]
    y = club.y.numpy().astype(np.int64)
    class_names = [str(label) for label in range(int(y.max()) + 1)]
    masks = validation_split(y, club.train_mask.numpy(), 1, split, class_names)
    train, val, test = (torch.from_numpy(mask.copy()) for mask in masks)
    return Data(
        x=club.x.clone(),
        edge_index=coalesce(club.edge_index.clone(), num_nodes=y.size),
        y=torch.from_numpy(y.copy()),
        train_mask=train,
        val_mask=val,
        test_mask=test,
        class_names=class_names,
        directed=False,
    )
