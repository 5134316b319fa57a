"""One function per family of datasets: published files become a PyG graph."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.io import loadmat
from scipy.sparse import coo_array, csr_array
from torch_geometric.data import Data
from torch_geometric.datasets import KarateClub
from torch_geometric.io import read_npz
from torch_geometric.transforms import LargestConnectedComponents

from elugcn.data.datasets.files import read_arrays, reading
from elugcn.data.datasets.unpickle import load_pickle
from elugcn.data.edges import clean_edges
from elugcn.data.splits import (
    SPLITS,
    Split,
    draw_per_class,
    generator,
    per_class_split,
    random_split,
)
from elugcn.errors import InputError

Array = NDArray[Any]

_PLANETOID_VAL = 500  # the nodes that follow the training nodes
# The Planetoid files have no names. These are the ones of the LINQS originals, matched
# to the numbers by the sizes of the classes, which are all different.
_PLANETOID_CLASSES = {
    "cora": "Theory Reinforcement_Learning Genetic_Algorithms Neural_Networks "
    "Probabilistic_Methods Case_Based Rule_Learning",
    "citeseer": "AI ML IR DB Agents HCI",
    "pubmed": "Experimental Type_1 Type_2",
}
_PIXEL_MAX = 16.0


def dataset(
    x: Array,
    ends: Sequence[Array] | Array,
    y: Array,
    masks: Iterable[Array],
    class_names: Iterable[object],
    directed: bool = False,
    **more: Any,
) -> Data:
    """A graph from arrays; ``ends`` are the sources and targets of its edges."""
    edges, _, _ = clean_edges(ends[0], ends[1], None, len(y), directed=directed)
    data = Data(x=torch.from_numpy(x), edge_index=edges, y=torch.from_numpy(y))
    for name, mask in zip(SPLITS, masks, strict=True):
        data[name] = torch.from_numpy(mask)
    data.class_names = [str(name) for name in class_names]
    data.update({"directed": directed, **more})
    return data


def read_planetoid(name: str, *paths: Path) -> Data:
    """Cora, Citeseer and Pubmed: citation graphs with the public Planetoid split.

    Yang, Cohen and Salakhutdinov, "Revisiting Semi-Supervised Learning with Graph
    Embeddings" (ICML 2016). To know:

    - The test nodes are stored in a shuffled order that ``test.index`` undoes.
    - Fifteen numbers within Citeseer's test range belong to no test node. As in PyTorch
      Geometric, they become nodes of class 0 without features, in no mask. Their class
      is not known: ``label_known`` excludes them, so that no label is drawn from them.
    - The adjacency lists repeat edges and contain self-loops: Cora's 5,429 citations
      are 5,278 distinct undirected edges.
    """
    *pickles, index_path = paths
    train, _, tx, ty, allx, ally, graph = map(load_pickle, pickles)
    with reading(index_path, "expected one number per line"):
        test_index = np.loadtxt(index_path, dtype=np.int64)
        n = int(test_index.max()) + 1
    # Row i of tx belongs to node test_index[i]; nodes in the gaps stay all zero.
    x = np.zeros((n, allx.shape[1]), dtype=np.float32)
    one_hot = np.zeros((n, ally.shape[1]), dtype=np.int64)
    for matrix, known, tested in (
        (x, allx.toarray(), tx.toarray()),
        (one_hot, ally, ty),
    ):
        matrix[: len(known)] = known
        matrix[test_index] = tested
    nodes, n_train = np.arange(n), train.shape[0]
    stop = n_train + _PLANETOID_VAL
    val, test = (nodes >= n_train) & (nodes < stop), np.isin(nodes, test_index)
    source = np.repeat(list(graph), [len(near) for near in graph.values()])
    target = np.array([node for near in graph.values() for node in near])
    y, names = one_hot.argmax(axis=1), _PLANETOID_CLASSES[name].split()
    known = torch.from_numpy(one_hot.any(axis=1))
    masks = Split(nodes < n_train, val, test)
    return dataset(x, (source, target), y, masks, names, label_known=known)


def read_amazon(path: Path, split: int) -> Data:
    """Computers and Photo: Amazon products that are bought together.

    Shchur et al., "Pitfalls of Graph Neural Network Evaluation" (2018). To know:

    - The files hold more nodes (13,752 and 7,650) than the studies use, which take the
      largest connected component: 13,381 and 7,487 nodes.
    - There is no public split; by custom 20 nodes per class train and 30 validate.
    """
    with reading(path, "expected adj_*, attr_*, labels"):
        graph = LargestConnectedComponents()(read_npz(str(path)))
        with np.load(path, allow_pickle=False) as archive:
            names = archive["class_names"]
    y = graph.y.numpy()
    masks = per_class_split(y, 20, 30, split, names)
    return dataset(graph.x.numpy(), graph.edge_index.numpy(), y, masks, names)


def read_wikipedia(path: Path, split: int, directed: bool) -> Data:
    """Chameleon and Squirrel: Wikipedia pages that link to each other, by traffic.

    Platonov et al., "A critical look at the evaluation of GNNs under heterophily"
    (ICLR 2023), with the ten usual 48/32/20 splits. To know:

    - The original graphs contain the same page many times, across training and test
      nodes; the ``_filtered`` versions have the duplicates removed. Report both.
    - Most papers print the number of links of the directed files (36,101 and 217,073)
      and train on the symmetrised graph (31,371 and 198,353 edges).
    - The directed files contain self-loops (50 and 140), dropped here as everywhere.
    - The classes are bins of average monthly traffic; the files do not name them.
    """
    with read_arrays(path, "expected node_features, node_labels, edges, *_masks") as a:
        x = np.ascontiguousarray(a["node_features"], dtype=np.float32)
        y = a["node_labels"].astype(np.int64)
        ends = a["edges"].T
        masks = [a[f"{part}_masks"][split] for part in ("train", "val", "test")]
    links, _, _ = clean_edges(ends[0], ends[1], None, len(y), directed=True)
    return dataset(x, ends, y, masks, range(y.max() + 1), directed, links=links)


def read_facebook(path: Path, split: int) -> Data:
    """Facebook100: friendships within American colleges in 2005.

    Traud, Mucha and Porter, "Social structure of Facebook networks" (2012). The class
    is the student/faculty flag. Gender, major, second major, dormitory, year and high
    school are the features, one column per value that occurs. 60/20/20 of the nodes
    with a class train, validate and test. To know:

    - 0 means missing, in every column: such a node has class -1 and is in no mask, or
      has no 1 among the columns of that feature.
    - Flags run from 1 to 6, but Caltech36 has only 1, 2, 5 and 6. Classes are the
      flags that occur, in order; ``class_names`` keeps the flags.
    - A flag may occur on a single node, so a random split may train without it.
    - Northeastern19 counts one friendship as 2: the values of A are ignored.
    - UF21 has no known public copy to check against, so it is never downloaded.
    """
    with reading(path, "not a Facebook100 .mat file"):
        content = loadmat(str(path), variable_names=["A", "local_info"])
        adjacency = coo_array(content["A"])
        info = np.asarray(content["local_info"]).astype(np.int64)
    n = len(info)
    if info.shape != (n, 7) or adjacency.shape != (n, n):
        raise InputError(f"{path}: expected an n×n matrix A and an n×7 local_info")
    flag = info[:, 0]
    flags = np.unique(flag[flag > 0])
    y = np.where(flag > 0, np.searchsorted(flags, flag), -1)
    ones = [
        column[:, None] == np.unique(column[column > 0]) for column in info[:, 1:].T
    ]
    x = np.hstack(ones).astype(np.float32)
    masks = random_split(y, 0.6, 0.2, split)
    return dataset(x, adjacency.nonzero(), y, masks, flags)


def read_development(path: Path, split: int) -> Data:
    """Graphs to develop defaults on, none of them in the paper's tables.

    The splits are the published ones where there are any. Else 20 nodes per class
    train and 30 validate, at most a third of a class each; with two classes half of
    the nodes train and a quarter validates.
    """
    with read_arrays(path, "expected x_*, edges, y") as archive:
        parts = [archive[f"x_{part}"] for part in ("data", "indices", "indptr")]
        x = csr_array(tuple(parts), shape=tuple(archive["x_shape"])).toarray()
        y, ends = archive["y"].astype(np.int64), archive["edges"]
        given = archive["split"][split] if "split" in archive else None
    sizes = np.bincount(y)
    if given is not None:
        masks = Split(*(given == part for part in (1, 2, 3)))
    elif len(sizes) == 2:
        masks = random_split(y, 0.5, 0.25, split)
    else:
        third = sizes // 3
        train, val = np.minimum(20, third), np.minimum(30, third)
        names = [str(label) for label in range(len(sizes))]
        masks = per_class_split(y, train, val, split, names)
    return dataset(x.astype(np.float32), ends, y, masks, range(len(sizes)))


def read_digits(split: int) -> Data:
    """scikit-learn's 1,797 images of handwritten digits, 8×8 pixels.

    Alpaydin and Kaynak (1998). An edge joins two images if one is among the ten
    nearest of the other in Euclidean distance. 5 nodes per class train, 3 validate.
    """
    # Takes a second, and no other dataset needs it.
    from sklearn.datasets import load_digits
    from sklearn.neighbors import kneighbors_graph

    bunch = load_digits()
    x = np.ascontiguousarray(bunch.data / _PIXEL_MAX, dtype=np.float32)
    y = bunch.target.astype(np.int64)
    # The raw pixels are small integers, so their distances are exact.
    graph = kneighbors_graph(bunch.data, 10, include_self=False)
    names = [str(name) for name in bunch.target_names]
    masks = per_class_split(y, 5, 3, split, names)
    return dataset(x, graph.nonzero(), y, masks, names)


def read_karate(split: int) -> Data:
    """Zachary's karate club (1977): 34 members, 78 friendships, four communities.

    The first member of each community is its label, as in Kipf and Welling (2017) and
    PyTorch Geometric; one other per class validates. The features are the identity.
    """
    club = KarateClub()[0].clone()
    y, names = club.y.numpy(), ["0", "1", "2", "3"]
    train = club.train_mask.numpy()
    val = draw_per_class(y, 1, ~train, generator(split, "validation"), names, "val")
    masks = Split(train, val, ~train & ~val)
    return dataset(club.x.numpy(), club.edge_index.numpy(), y, masks, names)
