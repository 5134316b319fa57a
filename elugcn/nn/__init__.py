"""What is trained: the MLP, the two-view GCN and their losses."""

from elugcn.nn.gcn import GCN
from elugcn.nn.mlp import MLP
from elugcn.nn.projection import ProjectionHead

__all__ = ["GCN", "MLP", "ProjectionHead"]
