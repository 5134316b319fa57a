"""The page of an experiment: text, CSV and figures, collected and then written."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elugcn.api.runs import environment
from elugcn.atomic import atomic_path
from elugcn.errors import InputError
from elugcn.evaluation.aggregate import versions
from elugcn.evaluation.store import Record
from elugcn.evaluation.tables import csv_text, escape_markdown, markdown_table
from elugcn_reproduction.figures import svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The overview finds the table that it shows between these.
MAIN_START, MAIN_END = "<!-- main table -->", "<!-- end of main table -->"
OVERVIEW = "README.md"
_VERSIONS = ("elugcn", "torch", "torch_geometric", "python")


@dataclass
class Page:
    """What an experiment or a benchmark writes.

    Everything is kept in memory until ``save``: a page that cannot be finished leaves
    the previous one as it was.

    Attributes:
        name: Of its files.
        title: Heading.
        question: The first sentence.
        command: What makes the page again.
        quick: Whether it is a small version.
        records: Of the runs that it is made of; versions and threads are theirs.
        notes: Said at the end.
    """

    name: str
    title: str
    question: str
    command: str
    quick: bool = False
    records: Sequence[Record] = ()
    notes: list[str] = field(default_factory=list)
    _parts: list[str] = field(default_factory=list)
    _files: dict[str, str] = field(default_factory=dict)

    def text(self, markdown: str) -> None:
        """Add paragraphs, headings, lists."""
        self._parts.append(markdown.strip())

    def main(self, markdown: str) -> None:
        """Add the table that the overview shows too."""
        self.text(f"{MAIN_START}\n\n{markdown.strip()}\n\n{MAIN_END}")

    def table(self, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Add a table; its first column is text, the others are numbers."""
        cells = [[escape_markdown(str(value)) for value in row] for row in rows]
        for row in cells:
            if len(row) != len(header):
                raise ValueError(f"a row of {len(row)} in a table of {len(header)}")
        self.text(markdown_table(list(map(escape_markdown, header)), cells))

    def csv(self, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Write ``<name>.csv``; None and not-a-number are empty."""
        text = csv_text(header, ([_plain(value) for value in row] for row in rows))
        self._files[f"{self.name}.csv"] = text

    def figure(self, figure: Figure, alt: str) -> None:
        """Write ``<name>.svg`` and show it in the text."""
        self._files[f"{self.name}.svg"] = svg(figure)
        self.text(f"![{escape_markdown(alt)}]({self.name}.svg)")

    def note(self, text: str) -> None:
        """Say something below everything else, once."""
        if text not in self.notes:
            self.notes.append(text)

    def markdown(self) -> str:
        """The whole page."""
        head = [f"# {self.title}", self.question, f"```\n{self.command}\n```"]
        head.append(self._circumstances())
        if self.quick:
            head.append(
                "This is the small version (`--quick`): few runs, few datasets, few "
                "epochs. Its numbers are not results."
            )
        tail = []
        if self.notes:
            lines = [f"- {escape_markdown(note)}" for note in self.notes]
            tail = ["## Notes", "\n".join(lines)]
        if f"{self.name}.csv" in self._files:
            tail.append(f"Data: [{self.name}.csv]({self.name}.csv)")
        return "\n\n".join([*head, *self._parts, *tail]) + "\n"

    def save(self, folder: Path) -> list[Path]:
        """Write every file into a folder, the page last; their paths."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"--out {folder}: {error.strerror}") from None
        for name, text in (self._files | {f"{self.name}.md": self.markdown()}).items():
            with atomic_path(folder / name) as work:
                work.write_text(text, encoding="utf-8")
        return [folder / name for name in (*self._files, f"{self.name}.md")]

    def _circumstances(self) -> str:
        """Versions, threads and days of the runs; of a benchmark, those of today."""
        if not self.records:
            about = environment(1)
            packages = about["packages"] | {"python": about["python"]}
            parts = [f"{name} {packages[name]}" for name in _VERSIONS]
            return f"{', '.join(parts)}; {time.strftime('%Y-%m-%d')}."
        parts = [
            f"{name} {' and '.join(versions(name, self.records))}" for name in _VERSIONS
        ]
        threads = sorted({int(r["threads"]) for r in self.records})
        parts.append(f"{' or '.join(map(str, threads))} thread(s) per run")
        days = sorted({str(r["date"])[:10] for r in self.records})
        span = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
        return f"{', '.join(parts)}, {len(self.records)} runs from {span}."


def write_overview(
    folder: Path,
    pages: Iterable[tuple[str, str, str]],
    with_table: Sequence[str],
    quick: bool = False,
) -> Path:
    """Write ``README.md``: title, question, figure and link of every page.

    Args:
        folder: Where the pages are.
        pages: Name, title and question of those that may be there.
        with_table: The pages whose main table is shown.
        quick: Whether the pages are small versions.
    """
    what = "Small versions of the experiments" if quick else "Results"
    words = "Each page has the command that made it, its versions and its date."
    if quick:
        words += " These are quick runs, to see that everything works, not results."
    parts = [f"# {what}", words]
    for name, title, question in pages:
        page = folder / f"{name}.md"
        if not page.is_file():
            continue
        parts += [f"## [{title}]({page.name})", question]
        if page.with_suffix(".svg").is_file():
            parts.append(f"![{title}]({name}.svg)")
        _, _, rest = page.read_text(encoding="utf-8").partition(MAIN_START)
        if name in with_table and rest:
            parts.append(rest.partition(MAIN_END)[0].strip())
    path = folder / OVERVIEW
    with atomic_path(path) as work:
        work.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return path


def _plain(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
