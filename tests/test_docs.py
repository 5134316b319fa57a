"""README and docs: links lead somewhere, commands parse, Python examples run."""

import csv
import re
import runpy
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
import typer

from elugcn.cli.app import make_app

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in [
        *(ROOT / "docs").glob("*.md"),
        *ROOT.glob("*.md"),
        ROOT / "reproduction/README.md",
    ]
)


def text_of(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text_of(page), re.M | re.S)


def anchors(path: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    prose = re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", prose, re.M)
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in kept}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    links = re.findall(r'\]\(([^)\s]+)\)|(?:src|href)="([^"]+)"', text_of(page))
    dead = []
    for link in {a or b for a, b in links}:
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        name, _, anchor = link.partition("#")
        target = ((ROOT / page).parent / name) if name else ROOT / page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            dead.append(link)
    assert not dead


def commands(page: str) -> list[str]:
    shown = blocks(page, "") + blocks(page, "console")
    lines = [line.split("|")[0] for block in shown for line in block.splitlines()]
    found = [line.removeprefix("$ ") for line in lines]
    inline = re.findall(r"`(elugcn [a-z][^`]*)`", text_of(page))
    return [line for line in [*found, *inline] if line.startswith("elugcn ")]


# Words that stand for the reader's own.
STANDS_FOR = {"RUN": "runs/mine", "NODE": "5", "NAME": "table1", "SUITE": "step"}


@pytest.mark.parametrize("page", PAGES)
def test_commands_parse(page: str) -> None:
    if page == "CHANGELOG.md":
        pytest.skip("names commands of earlier versions")
    for line in commands(page):
        if "…" in line or "×" in line:
            continue
        words = [
            STANDS_FOR.get(word, word) for word in shlex.split(line, comments=True)
        ]
        name, *rest = words[1:]
        group: Any = typer.main.get_command(make_app(name))
        with group.make_context("elugcn", [name]) as context:
            _, command, _ = group.resolve_command(context, [name])
            if not rest:  # only its name
                continue
            try:
                # Reads the options and their types; runs nothing.
                command.make_context(name, rest, parent=context)
            except typer.Exit:  # --help
                continue


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")])
def test_python_examples_run(page: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    for block in blocks(page, "python"):
        exec(compile(block, page, "exec"), {"__name__": "__main__"})


def without_numbers(text: str) -> str:
    """Times differ from run to run, and other numbers from processor to processor."""
    return " ".join(re.sub(r"[\d.,]+", "0", text).split())


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_shown_output_is_what_commands_print(page: str) -> None:
    updated = runpy.run_path(str(ROOT / "docs/update.py"))["updated"]
    assert without_numbers(text_of(page)) == without_numbers(updated(page))


def test_results_in_readme_are_those_of_the_pages() -> None:
    results: dict[tuple[str, str], dict[str, str]] = {}
    for name in ("table1", "social"):
        path = ROOT / f"reproduction/results/{name}.csv"
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                results[row["method"], row["dataset"]] = row
    lines = text_of("README.md").split("| dataset |")[1].split("\n\n")[0].splitlines()
    methods = [cell.strip() for cell in lines[0].split("|")[:-2]]
    shown = ["auto", "elu-gcn", "gcn", "grand"]
    assert methods == [method for method in shown if (method, "cora") in results]
    for line in lines[2:]:
        dataset, *cells = (cell.strip(" *") for cell in line.strip("|").split("|"))
        means = [float(results[method, dataset]["mean"]) for method in methods]
        published = float(results["elu-gcn", dataset]["paper_mean"])
        assert cells == [f"{mean:.1f}" for mean in [*means, published]], dataset
        assert line.count(f"**{max(means):.1f}**") == 1, dataset


def test_speed_in_readme_is_that_of_the_benchmark() -> None:
    ratios: dict[str, list[float]] = {"ratio_gcn": [], "ratio_sparse_gcn": []}
    path = ROOT / "reproduction/results/bench/step.csv"
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["metric"] in ratios:
                ratios[row["metric"]].append(float(row["value"]))
    text = " ".join(text_of("README.md").split("bench/step -->")[1].split()[:60])
    for found in ratios.values():
        assert len(found) == 5
        assert f"{min(found):.2f} to {max(found):.2f} of the time" in text
