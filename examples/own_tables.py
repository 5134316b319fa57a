"""Two CSV files: nodes with features and a few labels, and edges between them.

    python examples/own_tables.py

The same on the command line:

    elugcn train --nodes examples/people/nodes.csv --edges examples/people/edges.csv
"""

import csv
from pathlib import Path

import numpy as np

from elugcn import NodeClassifier
from elugcn.data.tables import load_tables

PEOPLE = Path(__file__).resolve().parent / "people"


def main() -> None:
    data = load_tables(PEOPLE / "nodes.csv", PEOPLE / "edges.csv")
    with (PEOPLE / "truth.csv").open(newline="", encoding="utf-8") as file:
        truth = np.array([row["label"] for row in csv.DictReader(file)])
    unlabelled = data.y.numpy() < 0

    reads = {
        "mlp": "age, city and height",
        "lpa": "labels of friends",
        "gcn": "both",
        "elu-gcn": "both, and the ELU graph",
    }
    print(f"accuracy on {unlabelled.sum()} people without a label")
    for method, what in reads.items():
        model = NodeClassifier(method, random_state=0).fit(data)
        share = (model.predict() == truth)[unlabelled].mean()
        print(f"{method:8} {share:.2f}   {what}")


if __name__ == "__main__":
    main()
