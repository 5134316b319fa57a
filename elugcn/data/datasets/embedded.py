"""Two real datasets that need neither files nor network.

- ``digits``: scikit-learn's 1,797 images of handwritten digits (8×8 pixels, Alpaydin
  and Kaynak 1998). An edge joins two images if one is among the ten nearest of the
  other in Euclidean distance.
- ``karate``: Zachary's karate club (1977), 34 members and 78 friendships, with the four
  communities and the first member of each as its label, as in Kipf and Welling (2017)
  and PyTorch Geometric. The features are the identity matrix.
"""

import numpy as np
from torch_geometric.data import Data
from torch_geometric.datasets import KarateClub

from elugcn.data.datasets.assemble import dataset, undirected
from elugcn.data.splits import per_class_split, validation_split

N_NEIGHBOURS = 10
_PIXEL_MAX = 16.0


def load_digits(split: int) -> Data:
    """Digits; 5 nodes per class train and 3 validate, drawn with seed ``split``."""
    # Takes a second, and no other dataset needs it.
    from sklearn.datasets import load_digits as sklearn_digits
    from sklearn.neighbors import kneighbors_graph

    bunch = sklearn_digits()
    x = np.ascontiguousarray(bunch.data / _PIXEL_MAX, dtype=np.float32)
    y = bunch.target.astype(np.int64)
    # The raw pixels are small integers, so their distances are exact.
    graph = kneighbors_graph(bunch.data, N_NEIGHBOURS, include_self=False).tocoo()
    masks = per_class_split(y, 5, 3, split, [str(c) for c in bunch.target_names])
    edges = undirected(graph.row, graph.col, y.size)
    return dataset(x, edges, y, masks, bunch.target_names)


def load_karate(split: int) -> Data:
    """The karate club: 1 fixed training and 1 drawn validation node per class."""
    club = KarateClub()[0]
    y = club.y.numpy().astype(np.int64)
    names = [str(label) for label in range(int(y.max()) + 1)]
    masks = validation_split(y, club.train_mask.numpy(), 1, split, names)
    source, target = club.edge_index.numpy()
    edges = undirected(source, target, y.size)
    return dataset(
        club.x.numpy().copy(), edges, y, (mask.copy() for mask in masks), names
    )
