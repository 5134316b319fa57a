"""The command line: one file a command; parses, calls, prints."""

import sys

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Run a command; what the user did wrong is one line and exit code 2."""
    given = sys.argv[1:] if arguments is None else arguments
    if given == ["--version"]:
        # Without PyTorch and all that the commands need, which takes seconds.
        from elugcn import __version__

        print(f"elugcn {__version__}")
        return
    from elugcn.cli import app

    app.main(arguments)
