"""The command line: one file a command; parses, calls, prints."""

from elugcn.cli.app import main

__all__ = ["main"]
