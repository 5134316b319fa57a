"""The tables and figures of the ELU-GCN paper, and benchmarks."""
