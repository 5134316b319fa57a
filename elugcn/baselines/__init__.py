"""The published methods that ELU-GCN is compared with, one file each."""
