"""README and docs: links lead somewhere, commands parse, Python examples run."""

import re
import shlex
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
    lines = [line for block in blocks(page, "") for line in block.splitlines()]
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
        words = [STANDS_FOR.get(word, word) for word in shlex.split(line, comments=True)]
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
