"""The command line: one file per command. It parses, calls the library and prints."""

from elugcn.cli.app import main

__all__ = ["main"]
