"""Chameleon and Squirrel: Wikipedia pages that link to each other, by traffic.

Platonov et al., "A critical look at the evaluation of GNNs under heterophily"
(ICLR 2023), files of github.com/yandex-research/heterophilous-graphs, which contain
the ten usual 48/32/20 splits. To know:

- The original graphs contain the same page many times, across training and test
  nodes; the ``_filtered`` versions have the duplicates removed. Report both.
- Most papers print the number of links of the directed files (36,101 and 217,073)
  and train on the symmetrised graph (31,371 and 198,353 edges).
- The directed files contain self-loops (50 and 140), dropped here as everywhere.
"""

from pathlib import Path

import numpy as np
from torch_geometric.data import Data

from elugcn.data.datasets.assemble import dataset, undirected
from elugcn.data.datasets.files import reading
from elugcn.data.edges import clean_edges


def load_wikipedia(path: Path, split: int, directed: bool) -> Data:
    """One dataset with one of its ten published splits."""
    with (
        reading(path, "expected node_features, node_labels, edges, *_masks"),
        np.load(path, allow_pickle=False) as archive,
    ):
        x = np.ascontiguousarray(archive["node_features"], dtype=np.float32)
        y = archive["node_labels"].astype(np.int64)
        source, target = archive["edges"].T
        masks = [archive[f"{part}_masks"][split] for part in ("train", "val", "test")]
    links, _, _ = clean_edges(source, target, None, y.size, directed=True)
    edges = links if directed else undirected(source, target, y.size)
    # The classes are bins of average monthly traffic; the files do not name them.
    names = range(int(y.max()) + 1)
    return dataset(x, edges, y, masks, names, directed=directed, links=links)
