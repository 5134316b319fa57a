"""One training loop for everything, and what runs around it."""
