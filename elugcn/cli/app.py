"""The ``elugcn`` command: its subcommands, and how errors reach the user."""

import contextlib
import errno
import inspect
import io
import logging
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

import typer

from elugcn import __version__
from elugcn.errors import InputError, MissingExtraError

# What a wrong option raises. Typer does not export the class, but its public
# BadParameter derives from it.
UsageError: Any = typer.BadParameter.__mro__[1]
_INTERRUPTED = 130
_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)

# Each command is the function `run` of a module beside this one. Modules load PyTorch,
# which takes seconds, so only the module of the called command is imported.
COMMANDS = {
    "train": "Train on a dataset or on your own two tables, and save everything.",
    "diagnose": "Show which nodes use the labels that reach them, and which do not.",
    "explain": "Explain one node: which labels reach it and what follows from them.",
    "predict": "Predict with a saved run: for its own graph or for another one.",
    "graph": "Learn the ELU graph: factors (.safetensors) or an edge list (--topk 20).",
    "report": "Write the HTML report of a run.",
    "datasets": "List the datasets: size, homophily, splits, and what is on disk.",
    "compare": "Compare methods on datasets: mean ± std, differences, time, memory.",
    "tune": "Search options of methods; validation decides.",
}
# Commands of other distributions, found through this entry-point group.
GROUP = "elugcn.commands"
REPRODUCTION = {
    "reproduce": "Make a table or figure of the paper, with our results beside it.",
    "bench": "Measure speed and memory beside PyG's models.",
}


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit. A mistake of the user is one line and exit code 2."""
    # PyTorch, not loaded yet, then asks Linux for huge pages: large graphs gain.
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Files and pipes are UTF-8; a terminal shows ? for what it has no sign for.
            encoding = stream.encoding if stream.isatty() else "utf-8"
            stream.reconfigure(encoding=encoding, errors="replace")
    logging.basicConfig(stream=sys.stderr, format="elugcn: %(message)s")
    for name in ("SIGTERM", "SIGHUP"):  # leave nothing half-written, as Ctrl-C
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        # `nohup` ignores SIGHUP; it stays ignored.
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            with contextlib.suppress(ValueError):  # not called from the main thread
                signal.signal(number, signal.default_int_handler)
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: list[str]) -> int:
    """Run a command; its exit code."""
    # The options of `elugcn` itself take no values: the first word is the command.
    called = next((word for word in arguments if not word.startswith("-")), None)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _print_warning  # type: ignore[assignment]
            app = make_app(called)
            code = app(arguments, standalone_mode=False, prog_name="elugcn")
            sys.stdout.flush()
        if code == _INTERRUPTED:  # Typer's answer to a KeyboardInterrupt
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0
    except (InputError, MissingExtraError) as error:
        return _fail(_named(str(error)))
    except UsageError as error:
        name = error.ctx.command_path if error.ctx else "elugcn"
        return _fail(f"{error.format_message().rstrip('.')} (see {name} --help)")
    except typer.Exit as done:
        return done.exit_code
    except (KeyboardInterrupt, typer.Abort):
        print("elugcn: interrupted", file=sys.stderr)
        return _INTERRUPTED
    except (BrokenPipeError, SystemExit) as error:
        # The reader of a pipe has ended (`| head`); this is not an error. Typer and
        # Rich make an exit of it.
        if BrokenPipeError not in (type(error), type(error.__context__)):
            raise
        _discard_output()
        return 0
    except OSError as error:
        if error.errno not in _DISK_ERRORS:
            raise
        _discard_output()
        return _fail(f"{error.filename or 'the output'}: {error.strerror}")


def make_app(called: str | None = None) -> typer.Typer:
    """The command line: the called command in full, the others by their first line."""
    app = typer.Typer(
        help="Classify the nodes of a graph from few labels, and see what labels do.",
        add_completion=False,
        context_settings={"help_option_names": ["--help", "-h"]},
        pretty_exceptions_enable=False,
    )
    app.callback(invoke_without_command=True)(_root)
    for name, line in (COMMANDS | REPRODUCTION).items():
        if name == called:
            function = _command(name)
            # Terminals break the lines of a paragraph elsewhere than the source does.
            line = re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.getdoc(function) or "")
            app.command(name, help=line)(function)
        else:
            app.command(name, help=line)(lambda: None)
    return app


def _command(name: str) -> Callable[..., Any]:
    """The function of a command, of this package or of the reproduction."""
    if name in COMMANDS:
        return import_module(f"elugcn.cli.{name}").run  # type: ignore[no-any-return]
    for found in entry_points(group=GROUP, name=name):
        return found.load()  # type: ignore[no-any-return]
    raise InputError(
        f"elugcn {name} is part of the elugcn-reproduction distribution, which is not "
        "installed; install it with: pip install ./reproduction"
    )


def _root(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version."),
) -> None:
    if version:
        typer.echo(f"elugcn {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _discard_output() -> None:
    """Send the rest of stdout nowhere; otherwise Python complains again at exit."""
    with contextlib.suppress(OSError, ValueError):  # stdout is closed or not a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str) -> int:
    print("elugcn: error:", *message.split(), file=sys.stderr)
    return 2


def _print_warning(message: Warning | str, *rest: Any) -> None:
    """One line, without the source location."""
    print(f"elugcn: warning: {_named(str(message))}", file=sys.stderr)


def _named(message: str) -> str:
    """A message of the library with the names that the command line has."""
    from elugcn.cli.options import with_option_names

    return with_option_names(message)
