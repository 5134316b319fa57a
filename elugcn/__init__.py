"""ELU-GCN: classify the nodes of a graph from few labels, and see what labels do."""

__version__ = "0.2.0"
