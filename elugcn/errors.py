"""What goes wrong through no fault of the code, said in one line."""

import reprlib
from typing import Any

from pydantic import ValidationError


class InputError(ValueError):
    """The user's data, file or option is wrong.

    The message is one line that names the file, row or option and says what was
    expected. The command line prints it without a traceback and exits with 2.
    """


class CollapseWarning(UserWarning):
    """A model predicts fewer classes than the training labels have."""


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


_EXPECTED = {
    "greater_than": "greater than {gt:.10g}",
    "greater_than_equal": "at least {ge:.10g}",
    "less_than": "below {lt:.10g}",
    "less_than_equal": "at most {le:.10g}",
    "literal_error": "{expected}",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "dict_type": "a mapping",
    "tuple_type": "a list",
    "string_type": "text",
    "finite_number": "a finite number",
}


def first_problem(error: ValidationError) -> str:
    """What pydantic found first, in one line."""
    problem = error.errors()[0]
    name = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "value_error":  # a validator of ours: a sentence already
        return problem["msg"].removeprefix("Value error, ")
    template = _EXPECTED.get(problem["type"], "valid")
    expected = template.format(**problem.get("ctx", {}))
    return f"{name} must be {expected}; got {shown(problem['input'])}"
