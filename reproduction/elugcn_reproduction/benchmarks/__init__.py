"""Speed and memory beside PyTorch Geometric and beside the explicit n×n graph."""
