"""Cora, Citeseer and Pubmed: citation graphs with the public Planetoid split.

Yang, Cohen and Salakhutdinov, "Revisiting Semi-Supervised Learning with Graph
Embeddings" (ICML 2016), files of github.com/kimiyoung/planetoid. To know:

- The test nodes are stored in a shuffled order that ``test.index`` undoes.
- Fifteen numbers within Citeseer's test range belong to no test node. They become
  nodes without features, as in PyTorch Geometric, and like there get class 0 in ``y``,
  although nobody knows their class. They are in no mask, and ``label_known`` says which
  they are, so that no training label is ever drawn from them.
- The adjacency lists repeat edges and contain self-loops: Cora's 5,429 citations are
  5,278 distinct undirected edges.
"""

from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

from elugcn.data.datasets.assemble import dataset, undirected
from elugcn.data.datasets.files import reading
from elugcn.data.datasets.unpickle import load_pickle
from elugcn.data.splits import Split, as_mask

_N_VAL = 500  # the nodes that follow the training nodes

# The files have no names. These are the ones of the LINQS originals, matched to the
# numbers by the sizes of the classes, which are all different.
CLASS_NAMES: dict[str, tuple[str, ...]] = {
    "cora": (
        "Theory",
        "Reinforcement_Learning",
        "Genetic_Algorithms",
        "Neural_Networks",
        "Probabilistic_Methods",
        "Case_Based",
        "Rule_Learning",
    ),
    "citeseer": ("AI", "ML", "IR", "DB", "Agents", "HCI"),
    "pubmed": ("Experimental", "Type_1", "Type_2"),
}


def load_planetoid(name: str, *paths: Path) -> Data:
    """One dataset with its public split and the extra mask ``label_known``.

    Args:
        name: ``"cora"``, ``"citeseer"`` or ``"pubmed"``.
        *paths: Files x, y, tx, ty, allx, ally, graph and test.index.
    """
    *pickles, index_path = paths
    train, _, tx, ty, allx, ally, graph = map(load_pickle, pickles)
    with reading(index_path, "expected one number per line"):
        test_index = np.loadtxt(index_path, dtype=np.int64)
        n = int(test_index.max()) + 1
    first = allx.shape[0]
    # Row i of tx belongs to node test_index[i]; nodes in the gaps stay all zero.
    x = np.zeros((n, allx.shape[1]), dtype=np.float32)
    x[:first] = allx.toarray()
    x[test_index] = tx.toarray()
    one_hot = np.zeros((n, ally.shape[1]), dtype=np.int64)
    one_hot[:first] = ally
    one_hot[test_index] = ty

    n_train = train.shape[0]
    masks = Split(
        train=as_mask(np.arange(n_train), n),
        val=as_mask(np.arange(n_train, n_train + _N_VAL), n),
        test=as_mask(test_index, n),
    )
    degree = np.fromiter((len(near) for near in graph.values()), np.int64, len(graph))
    row = np.repeat(np.fromiter(graph.keys(), np.int64, len(graph)), degree)
    col = np.fromiter((v for near in graph.values() for v in near), np.int64, row.size)
    return dataset(
        x,
        undirected(row, col, n),
        one_hot.argmax(axis=1),
        masks,
        CLASS_NAMES[name],
        label_known=torch.from_numpy(one_hot.any(axis=1)),
    )
