"""The closed-form mathematics: no training loop, no files."""
