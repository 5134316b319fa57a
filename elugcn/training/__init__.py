"""One training loop, one progress display, and how many threads to use."""
