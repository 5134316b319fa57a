"""Few labels: ELU-GCN, a plain GCN and scikit-learn's LabelSpreading, side by side.

    python benchmarks/few_labels.py --seeds 5 --first 20 > benchmarks/few_labels.md

digits has 5 labels a class; cora is drawn with 3 labels a class (and needs its files in
$ELUGCN_DATA). Each seed is another draw of the labels. Every model is selected on
validation; LabelSpreading's kernel (Gaussian, nearest neighbours, or the graph itself)
and alpha are too.
"""

from __future__ import annotations

import argparse
import statistics

import numpy as np
from sklearn.semi_supervised import LabelSpreading
from torch_geometric.data import Data
from torch_geometric.utils import to_scipy_sparse_matrix

from elugcn import load_dataset
from elugcn.config import resolve_config
from elugcn.data.checks import check_data
from elugcn.errors import InputError
from elugcn.fitting import fit_graph


def ours(data: Data, method: str, seed: int, preset: str | None) -> float:
    """Test accuracy of a method of this package as shipped."""
    config = resolve_config(method, preset)
    fitted = fit_graph(check_data(data), method, config, seed=seed)
    accuracy = fitted.accuracy(data.test_mask)
    assert accuracy is not None
    return accuracy


def spreading(data: Data) -> float:
    """Test accuracy of LabelSpreading with its best validation setting."""
    x, truth = data.x.numpy(), data.y.numpy()
    y = np.where(data.train_mask.numpy(), truth, -1)
    val, test = data.val_mask.numpy(), data.test_mask.numpy()
    best, chosen = -1.0, 0.0
    # scikit-learn's defaults come first: gamma 20, 7 neighbours, alpha 0.2.
    kernels = [{"kernel": "rbf", "gamma": g} for g in (20, 10, 3, 1)]
    kernels += [{"kernel": "knn", "n_neighbors": k} for k in (7, 5, 10, 20)]
    # Given the graph too, as every other method is.
    links = to_scipy_sparse_matrix(data.edge_index, num_nodes=len(x)).toarray()
    kernels += [{"kernel": lambda a, b: links + np.eye(len(links))}]
    for kernel in kernels:
        for alpha in (0.2, 0.5, 0.9):
            model = LabelSpreading(alpha=alpha, max_iter=100, **kernel).fit(x, y)
            right = model.transduction_ == truth
            # Ties go to the first of the grid: test accuracy must have no say.
            if right[val].mean() > best:
                best, chosen = right[val].mean(), float(right[test].mean())
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    # The defaults were developed on draws 0 to 14: report others.
    parser.add_argument("--first", type=int, default=20)
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.seeds)
    print("| | elu-gcn | gcn | LabelSpreading |\n|---|---|---|---|")
    for name, labels in (("digits", None), ("cora", 3)):
        rows: dict[str, list[float]] = {"elu-gcn": [], "gcn": [], "LabelSpreading": []}
        for seed in seeds:
            try:
                data = load_dataset(name, seed, labels_per_class=labels)
            except InputError as error:
                raise SystemExit(str(error)) from None
            for method in ("elu-gcn", "gcn"):
                # Tuned values are for a dataset's own labels, not for fewer.
                preset = name if labels is None else None
                rows[method].append(ours(data, method, seed, preset))
            rows["LabelSpreading"].append(spreading(data))
        cells = [
            f"{100 * statistics.mean(v):.1f} ± {100 * statistics.stdev(v):.1f}"
            for v in rows.values()
        ]
        count = labels or 5
        title = f"{name}, {count} labels a class, {len(seeds)} draws"
        print(f"| {title} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
