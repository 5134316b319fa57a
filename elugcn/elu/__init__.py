"""ELU-GCN, the method of the paper: what labels reach, the ELU graph, two views."""
