"""The names of the suites, for a command line that starts without loading them."""

ALL = "all"
NAMES = ("step", "fit", "graph", "scale")
