"""The contract of every method: problem, options, training, saving."""
