"""Methods on the same splits: mean accuracy and the paired difference to a GCN.

    python examples/compare.py [DATASET]

``elugcn compare`` does the same for many datasets, stores every run and can be resumed.
"""

import sys

import numpy as np

from elugcn import NodeClassifier, load_dataset

METHODS = ("gcn", "mlp", "lpa", "appnp", "elu-gcn")
SPLITS = 3


def main(dataset: str) -> None:
    accuracy: dict[str, list[float]] = {method: [] for method in METHODS}
    for split in range(SPLITS):
        data = load_dataset(dataset, split)
        for method in METHODS:
            model = NodeClassifier(method, random_state=split).fit(data)
            accuracy[method].append(100 * model.score(data.test_mask))
    print(f"{dataset}, {SPLITS} splits       accuracy   against gcn")
    for method, values in accuracy.items():
        difference = np.subtract(values, accuracy["gcn"])
        print(
            f"{method:20} {np.mean(values):5.1f} ± {np.std(values, ddof=1):3.1f}"
            f"   {difference.mean():+5.1f} ± {difference.std(ddof=1):3.1f}"
        )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "digits")
