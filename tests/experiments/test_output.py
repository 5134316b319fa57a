import csv
from collections.abc import Callable
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from elugcn.errors import InputError
from elugcn.experiments.base import Experiment, Scope
from elugcn.experiments.output import Page
from elugcn.experiments.overview import main_table, write_overview

Make = Callable[..., Page]


def experiment(name: str, title: str = "A title") -> Experiment:
    return Experiment(name, title, "What is it?", lambda s: [], lambda f, p: None)


@pytest.fixture
def page() -> Make:
    def make(name: str = "table1", quick: bool = False, **more: object) -> Page:
        command = f"elugcn reproduce {name}"
        return Page(experiment(name), Scope(quick, 1), command, **more)  # type: ignore[arg-type]

    return make


def test_a_page(page: Make, tmp_path: Path) -> None:
    one = page()
    one.text("Some words.")
    one.table(["row", "a|b"], [["x_y", 1.5], ["z", "–"]])
    one.csv("table1", ["a", "b"], [["x,y", 1 / 3], [None, float("nan")], ["z", 2]])
    one.figure("table1", Figure(), "A drawing")
    one.note("a note")
    files = one.save(tmp_path / "new" / "out")
    names = {"table1.csv", "table1.png", "table1.svg", "table1.md"}
    assert {f.name for f in files} == names
    assert {f.name for f in (tmp_path / "new" / "out").iterdir()} == names
    with (tmp_path / "new/out/table1.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [
            ["a", "b"], ["x,y", "0.333333"], ["", ""], ["z", "2"],
        ]  # fmt: skip
    text = (tmp_path / "new/out/table1.md").read_text()
    assert text.startswith("# A title\n\nWhat is it?\n\n```\nelugcn reproduce table1\n")
    assert "| row | a\\|b |\n| --- | ---: |\n| x\\_y | 1.5 |\n| z | – |" in text
    assert "![A drawing](table1.png)" in text
    assert "## Notes\n\n- a note\n\nData: [table1.csv](table1.csv)\n" in text
    assert "--quick" not in text
    assert "--quick" in page(quick=True).markdown()


def test_versions_are_those_of_the_runs(page: Make) -> None:
    def record(torch: str, day: str) -> dict[str, object]:
        return {"packages": {"elugcn": "9", "torch": torch}, "threads": 1, "date": day}

    text = page(records=[record("7.2", "2026-01-03T"), record("7.1", "2026-01-02T")])
    assert (
        "elugcn 9, torch 7.1 and 7.2, torch_geometric ?, python ?, 1 thread(s) a run, "
        "2 runs of 2026-01-02 to 2026-01-03; page of 20" in text.markdown()
    )


def test_nothing_is_written_before_the_end(page: Make, tmp_path: Path) -> None:
    one = page()
    one.csv("table1", ["a"], [["1"]])
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="written twice"):
        one.csv("table1", ["a"], [["2"]])
    with pytest.raises(ValueError, match="a row of 2 under a header of 1"):
        one.csv("other", ["a"], [["1", "2"]])
    with pytest.raises(ValueError, match="a row of 1 in a table of 2"):
        one.table(["a", "b"], [["1"]])
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"--out .*file: .*expected a directory"):
        one.save(tmp_path / "file")


def test_overview(page: Make, tmp_path: Path) -> None:
    first, last = page("table1"), page("ablation")
    for one in (first, last):
        one.main("| the | table |")
        one.text("the rest")
    first.figure("table1", Figure(), "")
    first.save(tmp_path)
    last.save(tmp_path)
    known = [experiment(n, n.upper()) for n in ("social", "ablation", "table1")]
    path = write_overview(tmp_path, known)
    assert path.read_text().split("\n\n")[2:] == [
        "## [ABLATION](ablation.md)", "What is it?",
        "## [TABLE1](table1.md)", "What is it?",
        "![TABLE1](table1.png)", "| the | table |\n",
    ]  # fmt: skip
    assert path.read_text().startswith("# Results\n")
    write_overview(tmp_path, known, quick=True)
    assert "no results" in path.read_text()


def test_a_page_without_its_marks_has_no_main_table() -> None:
    assert main_table("# words") == ""
    assert main_table("<!-- main table -->\ncut off") == ""
