"""The list of commands, before any of them is loaded."""

from importlib import import_module
from pathlib import Path

import pytest

from elugcn.cli import app
from elugcn.cli.app import COMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_each_says_itself(name: str) -> None:
    doc = import_module(f"elugcn.cli.{name}").run.__doc__
    assert doc is not None
    assert doc.splitlines()[0] == COMMANDS[name]


def test_every_command_is_listed() -> None:
    modules = Path(app.__file__).parent.glob("*.py")
    assert {m.stem for m in modules if "\ndef run(" in m.read_text()} == {*COMMANDS}
