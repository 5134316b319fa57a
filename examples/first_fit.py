"""Five lines: a dataset, a fit, a score. No network is needed.

python examples/first_fit.py
"""

from elugcn import NodeClassifier, load_dataset

data = load_dataset("digits")  # 1,797 images of digits, 5 labels per class
model = NodeClassifier(effort="quick", random_state=0).fit(data)  # no networks
print(f"test accuracy {model.score(data.test_mask):.3f}")
print(model.label_utilization_)
print(model.graph_)
