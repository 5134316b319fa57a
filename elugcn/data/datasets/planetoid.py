"""Cora, Citeseer and Pubmed: citation graphs with the public Planetoid split.

Yang, Cohen and Salakhutdinov, "Revisiting Semi-Supervised Learning with Graph
Embeddings" (ICML 2016), files of github.com/kimiyoung/planetoid. The traps:

- The test nodes are stored in a shuffled order that `test.index` undoes.
- Fifteen numbers within Citeseer's test range belong to no test node. They become
  nodes without features, as in PyTorch Geometric, and like there get class 0 in `y`,
  although nobody knows their class. They are in no mask, and `label_known` says which
  they are, so that no training label is ever drawn from them.
- The adjacency lists repeat edges and contain self-loops: Cora's 5,429 citations are
  5,278 distinct undirected edges.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from elugcn.data.edges import clean_edges
from elugcn.data.datasets.files import reading
from elugcn.data.graph import make_data
from elugcn.data.splits import Split, as_mask
from elugcn.data.datasets.unpickle import load_pickle

PARTS = ("x", "y", "tx", "ty", "allx", "ally", "graph", "test.index")

_N_VAL = 500  # the nodes that follow the training nodes

# The files have no names. These are the ones of the LINQS originals, matched to the
# numbers by the sizes of the classes, which are all different.
CLASS_NAMES: dict[str, list[str]] = {
    "cora": [
        "Theory",
        "Reinforcement_Learning",
        "Genetic_Algorithms",
        "Neural_Networks",
        "Probabilistic_Methods",
        "Case_Based",
        "Rule_Learning",
    ],
    "citeseer": ["AI", "ML", "IR", "DB", "Agents", "HCI"],
    "pubmed": ["Experimental", "Type_1", "Type_2"],
}


def planetoid_files(name: str) -> tuple[str, ...]:
    """The eight files of a dataset, as `folder/file`."""
    return tuple(f"planetoid/ind.{name}.{part}" for part in PARTS)


def load_planetoid(name: str, find: Callable[[str], Path]) -> Data:
    """Read one dataset with its public split.

    Args:
        name: "cora", "citeseer" or "pubmed".
        find: gives the checked path of a `folder/file`.

    Returns:
        The graph, with the extra mask `label_known`.

    Raises:
        InputError: a file is missing or damaged.
    """
    paths = dict(zip(PARTS, map(find, planetoid_files(name)), strict=True))
    raw: dict[str, Any] = {
        part: load_pickle(path) for part, path in paths.items() if part != "test.index"
    }
    with reading(paths["test.index"], "expected one number a line"):
        test_index = np.loadtxt(paths["test.index"], dtype=np.int64)
        n = int(test_index.max()) + 1

    first = raw["allx"].shape[0]
    # Row i of tx belongs to node test_index[i]; nodes in the gaps stay all zero.
    x = np.zeros((n, raw["allx"].shape[1]), dtype=np.float32)
    x[:first] = raw["allx"].toarray()
    x[test_index] = raw["tx"].toarray()
    one_hot = np.zeros((n, raw["ally"].shape[1]), dtype=np.int64)
    one_hot[:first] = raw["ally"]
    one_hot[test_index] = raw["ty"]

    n_train = raw["y"].shape[0]
    split = Split(
        train=as_mask(np.arange(n_train), n),
        val=as_mask(np.arange(n_train, n_train + _N_VAL), n),
        test=as_mask(test_index, n),
    )
    return make_data(
        x,
        _edges(raw["graph"], n),
        one_hot.argmax(axis=1),
        masks=split,
        label_known=torch.from_numpy(one_hot.any(axis=1)),
        class_names=list(CLASS_NAMES[name]),
        directed=False,
    )


def _edges(graph: dict[int, list[int]], n: int) -> torch.Tensor:
    degree = np.fromiter((len(near) for near in graph.values()), np.int64, len(graph))
    row = np.repeat(np.fromiter(graph.keys(), np.int64, len(graph)), degree)
    col = np.fromiter((v for near in graph.values() for v in near), np.int64, row.size)
    return clean_edges(row, col, None, n, directed=False)[0]
