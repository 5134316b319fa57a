"""Graphs in: datasets, tables and arrays become checked PyG graphs."""
