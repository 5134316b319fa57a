"""ELU-GCN as a library."""
