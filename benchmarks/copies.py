"""How much of Chameleon and Squirrel is pages that occur several times?

    python benchmarks/copies.py > benchmarks/copies.md

Nothing is trained and no features are read. A test page takes the class of the training
pages whose links are most like its own: with a the row of A, in which a link to a page
with many links to it counts less,

    w(i, j) = cos(aᵢ, aⱼ)³²,    a = A D^(-1/2),    class of i: argmax Σⱼ w(i, j) yⱼ

where j runs over the training pages and D has how often a page is linked to. The power
makes it the nearest few (8, 16 and 32 were compared on validation nodes). A *copy* is a
training page with exactly the same links. The published splits, as in `elugcn reproduce
table1`. O(n²) numbers at worst: these graphs are small. Needs the files of the four
graphs in $ELUGCN_DATA.
"""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from elugcn import load_dataset
from elugcn.errors import InputError

DATASETS = ("chameleon", "squirrel", "chameleon_filtered", "squirrel_filtered")
SPLITS = 10
POWER = 32


def out_links(data: Any) -> sp.csr_matrix:
    """The links of each page as a row of zeros and ones, n×n."""
    source, target = data.links.numpy()
    shape = (data.num_nodes, data.num_nodes)
    links = sp.csr_matrix((np.ones(len(source)), (source, target)), shape=shape)
    links.data[:] = 1.0
    return links


def likeness(links: sp.csr_matrix) -> sp.csr_matrix:
    """Cosine of the weighted rows, to the power; nothing on the diagonal."""
    popular = np.asarray(links.sum(axis=0)).ravel()
    rows = links @ sp.diags(1.0 / np.sqrt(np.maximum(popular, 1.0)))
    length = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    rows = sp.diags(1.0 / np.where(length > 0, length, 1.0)) @ rows
    like = (rows @ rows.T).tocsr()
    like.setdiag(0.0)
    like.data **= POWER
    return like


def kinds(links: sp.csr_matrix) -> NDArray[np.int64]:
    """A number for each page, the same for pages with the same links."""
    links.sort_indices()
    rows = np.split(links.indices, links.indptr[1:-1])
    number: dict[bytes, int] = {}
    # A page without links is a copy of none.
    keys = [row.tobytes() or f"page {i}".encode() for i, row in enumerate(rows)]
    return np.array([number.setdefault(key, len(number)) for key in keys])


def measure(name: str) -> tuple[list[float], list[float]]:
    """Of each split: test pages with a copy, and test pages that are right, in %."""
    copied, right = [], []
    for split in range(SPLITS):
        data = load_dataset(name, split)
        y, train, test = (data[k].numpy() for k in ("y", "train_mask", "test_mask"))
        if not split:
            links = out_links(data)
            like, kind = likeness(links), kinds(links)
        votes = like @ (np.eye(int(y.max()) + 1)[y] * train[:, None])
        right.append(100 * float((votes.argmax(axis=1) == y)[test].mean()))
        copied.append(100 * float(np.isin(kind, kind[train])[test].mean()))
    return copied, right


def main() -> None:
    """Print the table."""
    print("| ten published splits | test pages with a copy, % | test accuracy, % |")
    print("|---|---|---|")
    for name in DATASETS:
        try:
            copied, right = measure(name)
        except InputError as error:
            raise SystemExit(str(error)) from None
        shares = f"{statistics.mean(copied):.1f} | {statistics.mean(right):.1f}"
        print(f"| {name} | {shares} ± {statistics.stdev(right):.1f} |")


if __name__ == "__main__":
    main()
