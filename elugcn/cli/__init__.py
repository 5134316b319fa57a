"""The command line: one file per command. Commands parse, call the library and print."""

from elugcn.cli.app import main

__all__ = ["main"]
