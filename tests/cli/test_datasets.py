"""`elugcn datasets`: what can be loaded."""

from pathlib import Path

import pytest

from elugcn.data.datasets import list_datasets
from tests.cli.conftest import Command


@pytest.fixture(autouse=True)
def no_data(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELUGCN_CACHE", str(folder / "cache"))
    monkeypatch.delenv("ELUGCN_DATA", raising=False)


def test_values_are_those_of_the_library(elugcn: Command) -> None:
    said = elugcn("datasets", "--json").json["datasets"]
    names = [info.name for info in list_datasets()]
    assert [d["name"] for d in said] == names
    by_name = {d["name"]: d for d in said}
    assert by_name["cora"]["n_nodes"] == 2708
    assert by_name["cora"]["homophily"] == pytest.approx(0.81)
    assert (by_name["cora"]["on_disk"], by_name["digits"]["on_disk"]) == (False, True)
    assert elugcn("datasets", "--quiet").out.split() == names
    shown = elugcn("datasets").out.splitlines()
    cora = next(line.split() for line in shown if line.startswith("cora "))
    assert cora == ["cora", "2,708", "5,278", "1,433", "7", "0.81", "1", "no"]
    assert next(line for line in shown if line.startswith("digits")).endswith(
        "built in"
    )


def test_what_is_on_disk(elugcn: Command, data_dir: Path) -> None:
    said = elugcn("datasets", "--json", "--data-dir", data_dir).json
    assert {d["name"] for d in said["datasets"] if d["on_disk"]} >= {"cora", "citeseer"}
