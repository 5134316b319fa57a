"""The ``elugcn`` command: its subcommands, and how errors reach the user."""

from __future__ import annotations

import contextlib
import errno
import io
import logging
import os
import signal
import sys
import warnings
from importlib import import_module
from typing import Any

import typer

from elugcn import __version__
from elugcn.errors import InputError, MissingExtraError

# What a wrong option raises. Typer keeps the class to itself (in its own copy of
# click), but its public BadParameter derives from it.
UsageError: Any = typer.BadParameter.__mro__[1]
_INTERRUPTED = 130
# Where the fault is the disk's: full, too small a share of it, or not to be written to.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)

# Each is a module beside this one with a `run`, whose first line of help this is. They
# load PyTorch and more, which takes seconds: only the one that is called is imported.
COMMANDS = {
    "train": "Train on a dataset or on your own two tables and save everything.",
    "predict": (
        "Predict with a saved run: its own graph, or --nodes/--edges of another."
    ),
    "report": "Write the page of a run: what it can, for whom, and what to label next.",
    "diagnose": (
        "Show which nodes use the labels that reach them, and which none reaches."
    ),
    "explain": "Show which labels reach a node, how strongly, and what comes of it.",
    "graph": "Learn the ELU graph: factors (.safetensors) or an edge list (--topk 20).",
    "datasets": (
        "List the datasets: size, homophily, splits, and whether they are on disk."
    ),
    "compare": (
        "Run methods on datasets and show mean ± std, differences, time and memory."
    ),
    "reproduce": (
        "Make a table or figure of the paper: CSV, PNG, SVG and a Markdown page."
    ),
    "bench": (
        "Measure speed and memory beside PyG's GCN and GAT and beside the n×n way."
    ),
    "tune": "Try configurations and keep the one with the best validation accuracy.",
}


def make_app(called: str | None = None) -> typer.Typer:
    """The command line: one command in full, the others by name and first line."""
    app = typer.Typer(
        name="elugcn",
        help="Classify the nodes of a graph from few labels, and see what labels do.",
        add_completion=False,
        context_settings={"help_option_names": ["--help", "-h"]},
        pretty_exceptions_enable=False,
    )
    app.callback(invoke_without_command=True)(_root)
    for name, line in COMMANDS.items():
        if name == called:
            app.command(name)(import_module(f"elugcn.cli.{name}").run)
        else:
            app.command(name, help=line)(lambda: None)
    return app


def _root(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version."),
) -> None:
    if version:
        typer.echo(f"elugcn {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: list[str] | None = None) -> None:
    """Run a command; what the user did wrong is one line and exit code 2."""
    _speak_utf8()
    logging.basicConfig(stream=sys.stderr, format="elugcn: %(message)s")
    _end_as_if_interrupted()
    sys.exit(_run(arguments))


def _speak_utf8() -> None:
    """What a file or program gets is UTF-8; a terminal shows ? for what it lacks.

    In a pipe Windows has another encoding, without Greek letters or all ids.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            encoding = stream.encoding if stream.isatty() else "utf-8"
            stream.reconfigure(encoding=encoding, errors="replace")


def _end_as_if_interrupted() -> None:
    """What a system or a terminal sends to end us leaves nothing half-written either.

    Where hanging up is ignored (``nohup``) it stays so.
    """
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            with contextlib.suppress(ValueError):  # called from another thread
                signal.signal(number, signal.default_int_handler)


def _run(arguments: list[str] | None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    # The options of `elugcn` itself have no values: the first word is the command.
    called = next((word for word in given if not word.startswith("-")), None)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _say_warning  # type: ignore[assignment]
            code = make_app(called)(given, standalone_mode=False, prog_name="elugcn")
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
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        _drop_output()
        return _fail(f"{error.filename or 'the output'}: {error.strerror}")
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
    _drop_output()
    return 0


def _drop_output() -> None:
    """Python would complain again when it flushes at exit."""
    with contextlib.suppress(OSError, ValueError):  # none, or not a real one
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str) -> int:
    line = " ".join(message.split())
    print(f"elugcn: error: {line}", file=sys.stderr)
    return 2


def _say_warning(message: Warning | str, *rest: Any) -> None:
    """One line, without the place in the code that noticed it."""
    print(f"elugcn: warning: {message}", file=sys.stderr)
