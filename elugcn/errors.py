"""What goes wrong through no fault of the code, said in one line."""

import reprlib
from typing import Any


class InputError(ValueError):
    """The user's data, file or option is wrong.

    The message is one line that names the file, row or option and says what was
    expected. The command line prints it without a traceback and exits with 2.
    """


class MissingExtraError(ImportError):
    """An optional dependency is absent; the message names the extra that has it."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"{package} is not installed; it comes with: pip install 'elugcn[{extra}]'"
        )


def shown(value: Any) -> str:
    """A value for a message: some hundred bytes of YAML can stand for gigabytes."""
    short = reprlib.Repr()
    short.maxlevel, short.maxstring, short.maxother = 2, 200, 200
    return short.repr(value)
