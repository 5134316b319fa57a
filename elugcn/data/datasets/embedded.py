"""Two real datasets that need neither files nor network.

- `digits`: scikit-learn's 1,797 images of handwritten digits (8×8 pixels, Alpaydin and
  Kaynak 1998). The graph joins each image to its ten nearest in Euclidean distance;
  an edge exists if either end chose the other.
- `karate`: Zachary's karate club (1977), 34 members and 78 friendships, with the four
  communities and the first member of each as its label, as in Kipf and Welling (2017)
  and PyTorch Geometric. The features are the identity matrix.
"""

import numpy as np
from torch_geometric.data import Data
from torch_geometric.datasets import KarateClub

from elugcn.data.edges import clean_edges
from elugcn.data.graph import make_data
from elugcn.data.splits import per_class_split, validation_split

N_NEIGHBOURS = 10
_PIXEL_MAX = 16.0


def load_digits(split: int) -> Data:
    """The digits graph: 5 training and 3 validation nodes of each class, rest test.

    Args:
        split: seed of the draw.
    """
    # Takes a second, and no other dataset needs it.
    from sklearn.datasets import load_digits as sklearn_digits
    from sklearn.neighbors import kneighbors_graph

    bunch = sklearn_digits()
    x = np.ascontiguousarray(bunch.data / _PIXEL_MAX, dtype=np.float32)
    y = bunch.target.astype(np.int64)
    # The raw pixels are small integers: their distances are exact in float64, so the
    # neighbours do not depend on rounding.
    graph = kneighbors_graph(bunch.data, N_NEIGHBOURS, include_self=False).tocoo()
    edge_index, _, _ = clean_edges(graph.row, graph.col, None, y.size, directed=False)
    class_names = [str(name) for name in bunch.target_names]
    return make_data(
        x,
        edge_index,
        y,
        masks=per_class_split(y, 5, 3, split, class_names),
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
    source, target = club.edge_index.numpy()
    edge_index, _, _ = clean_edges(source, target, None, y.size, directed=False)
    masks = validation_split(y, club.train_mask.numpy(), 1, split, class_names)
    return make_data(
        club.x.clone(),
        edge_index,
        y,
        masks=(mask.copy() for mask in masks),
        class_names=class_names,
        directed=False,
    )
