"""The ``elugcn`` command: its subcommands, and how errors reach the user."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from typing import Any

import typer

from elugcn import __version__
from elugcn.cli import (
    bench,
    compare,
    datasets,
    diagnose,
    explain,
    graph,
    predict,
    report,
    reproduce,
    train,
    tune,
)
from elugcn.errors import InputError, MissingExtraError

# What a wrong option raises. Typer keeps the class to itself (in its own copy of
# click), but its public BadParameter derives from it.
UsageError: Any = typer.BadParameter.__mro__[1]
_INTERRUPTED = 130

app = typer.Typer(
    name="elugcn",
    help="Classify the nodes of a graph from few labels, and see what labels do.",
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (
    train,
    predict,
    report,
    diagnose,
    explain,
    graph,
    datasets,
    compare,
    reproduce,
    bench,
    tune,
):
    app.command(command.NAME)(command.run)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version."),
) -> None:
    if version:
        typer.echo(f"elugcn {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: list[str] | None = None) -> None:
    """Run a command; what the user did wrong is one line and exit code 2."""
    logging.basicConfig(stream=sys.stderr, format="elugcn: %(message)s")
    sys.exit(_run(arguments))


def _run(arguments: list[str] | None) -> int:
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _say_warning  # type: ignore[assignment]
            code = app(arguments, standalone_mode=False, prog_name="elugcn")
            sys.stdout.flush()
        # Typer makes this of a KeyboardInterrupt that a command lets through.
        if code == _INTERRUPTED:
            return _say_interrupted()
        return code if isinstance(code, int) else 0
    except (InputError, MissingExtraError) as error:
        return _fail(str(error))
    except UsageError as error:
        name = error.ctx.command_path if error.ctx else "elugcn"
        return _fail(f"{error.format_message().rstrip('.')} (see {name} --help)")
    except typer.Exit as done:
        return done.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return _say_interrupted()
    except BrokenPipeError:
        return _reader_gone()
    except SystemExit as done:
        # Typer and Rich turn a broken pipe into an exit of their own.
        if isinstance(done.__context__, BrokenPipeError):
            return _reader_gone()
        raise


def _say_interrupted() -> int:
    print("elugcn: interrupted", file=sys.stderr)
    return _INTERRUPTED


def _reader_gone() -> int:
    """The reader of our output went away (``| head``): there is nobody to tell."""
    # Python would complain again when it flushes at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _fail(message: str) -> int:
    line = " ".join(message.split())
    print(f"elugcn: error: {line}", file=sys.stderr)
    return 2


def _say_warning(message: Warning | str, *rest: Any) -> None:
    """One line, without the place in the code that noticed it."""
    print(f"elugcn: warning: {message}", file=sys.stderr)
