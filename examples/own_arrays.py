"""scikit-learn style: features, labels with -1 for unknown, no graph at all.

Without an adjacency a k-nearest-neighbour graph of the features is built.
"""

import numpy as np
from sklearn.datasets import load_wine

from elugcn import ELUGCNClassifier

X, truth = load_wine(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
rng = np.random.default_rng(0)
known = np.concatenate(
    [rng.choice(np.flatnonzero(truth == c), 5, replace=False) for c in range(3)]
)
y = np.full(len(truth), -1)
y[known] = truth[known]

clf = ELUGCNClassifier(random_state=0).fit(X, y)
hidden = np.setdiff1d(np.arange(len(truth)), known)
right = clf.predict()[hidden] == truth[hidden]
print(f"15 labels, {len(hidden)} unknown: {right.mean():.1%} right")
