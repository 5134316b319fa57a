"""Graphs in: datasets, the user's tables and arrays, splits, validation, scaling."""
