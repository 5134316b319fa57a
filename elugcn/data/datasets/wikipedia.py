"""Chameleon and Squirrel: Wikipedia pages that link to each other, by traffic.

Platonov et al., "A critical look at the evaluation of GNNs under heterophily"
(ICLR 2023), files of github.com/yandex-research/heterophilous-graphs, which contain
the ten usual 48/32/20 splits. The traps:

- The original graphs contain the same page many times, across training and test
  nodes; the `_filtered` versions have the duplicates removed. Report both.
- Most papers print the number of links of the directed files (36,101 and 217,073)
  and train on the symmetrised graph (31,371 and 198,353 edges).
- The directed files contain self-loops (50 and 140), dropped here as everywhere.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from torch_geometric.data import Data

from elugcn.data.edges import clean_edges
from elugcn.data.datasets.files import reading
from elugcn.data.graph import make_data


def wikipedia_files(name: str) -> tuple[str, ...]:
    """The one file of a dataset, as `folder/file`.

    The directed one: its links in both directions are the edges of the other, whose
    features, labels and splits are the same.
    """
    return (f"wikipedia/{name}_directed.npz",)


def load_wikipedia(
    name: str, split: int, directed: bool, find: Callable[[str], Path]
) -> Data:
    """Read one dataset with one of its ten published splits.

    Args:
        name: "chameleon", "squirrel", "chameleon_filtered" or "squirrel_filtered".
        split: 0 to 9.
        directed: keep each link in its published direction only.
        find: gives the checked path of a `folder/file`.

    Raises:
        InputError: the file is missing or damaged.
    """
    path = find(wikipedia_files(name)[0])
    with (
        reading(path, "expected node_features, node_labels, edges, *_masks"),
        np.load(path, allow_pickle=False) as archive,
    ):
        x = np.ascontiguousarray(archive["node_features"], dtype=np.float32)
        y = archive["node_labels"].astype(np.int64)
        source, target = archive["edges"].T
        parts = ("train", "val", "test")
        masks = [archive[f"{part}_masks"][split] for part in parts]

    links, _, _ = clean_edges(source, target, None, y.size, directed=True)
    edges, _, _ = clean_edges(source, target, None, y.size, directed=False)
    return make_data(
        x,
        links if directed else edges,
        y,
        masks=masks,
        # Bins of average monthly traffic; the files do not name them.
        class_names=[str(label) for label in range(int(y.max()) + 1)],
        directed=directed,
        links=links,
    )
