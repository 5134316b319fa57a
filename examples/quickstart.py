"""Five lines: load a graph, fit, score, and see what the labels do."""

from elugcn import ELUGCNClassifier, load_dataset

data = load_dataset("digits")
clf = ELUGCNClassifier(random_state=0).fit(data)
print(f"test accuracy {clf.score(data.test_mask):.3f}")
print(clf.label_utilization_)
print(clf.graph_)
