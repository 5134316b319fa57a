"""The page of an experiment: text, CSV and figures, gathered and then written."""

from __future__ import annotations

import csv
import io
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elugcn.atomic import whole_path
from elugcn.errors import InputError
from elugcn.evaluation.store import Record
from elugcn.evaluation.tables import escape_markdown
from elugcn.experiments.base import Experiment, Scope
from elugcn.report.style import FORMATS, image
from elugcn.runs import environment

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Between these the overview finds the table it shows.
MAIN_START, MAIN_END = "<!-- main table -->", "<!-- end of main table -->"
_VERSIONS = ("elugcn", "torch", "torch_geometric", "python")


@dataclass
class Page:
    """What an experiment writes.

    Everything is kept in memory until ``save``: a page that can't be finished leaves
    the last one as it was.

    Attributes:
        experiment: whose page it is.
        scope: what the user asked for.
        command: what makes the page again.
        records: of the runs it is made of; versions and threads are theirs.
        notes: said at the end.
    """

    experiment: Experiment
    scope: Scope
    command: str
    records: Sequence[Record] = ()
    notes: list[str] = field(default_factory=list)
    _parts: list[str] = field(default_factory=list)
    _files: dict[str, bytes] = field(default_factory=dict)

    def text(self, markdown: str) -> None:
        """Add paragraphs, headings, lists."""
        self._parts.append(markdown.strip())

    def main(self, markdown: str) -> None:
        """Add the table that the overview shows too."""
        self.text(f"{MAIN_START}\n\n{markdown.strip()}\n\n{MAIN_END}")

    def table(self, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Add a table; its first column is text, the others are numbers."""
        rule = ["---", *("---:" for _ in header[1:])]
        body = [[escape_markdown(str(value)) for value in row] for row in rows]
        for line in body:
            if len(line) != len(header):
                raise ValueError(f"a row of {len(line)} in a table of {len(header)}")
        lines = [list(map(escape_markdown, header)), rule, *body]
        self.text("\n".join("| " + " | ".join(line) + " |" for line in lines))

    def csv(
        self, name: str, header: Sequence[str], rows: Iterable[Sequence[Any]]
    ) -> None:
        """Write ``<name>.csv``; None and not-a-number are empty."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(header)
        for row in rows:
            if len(row) != len(header):
                raise ValueError(f"a row of {len(row)} under a header of {len(header)}")
            writer.writerow([_plain(value) for value in row])
        self._keep(f"{name}.csv", out.getvalue().encode())

    def figure(self, name: str, fig: Figure, alt: str) -> None:
        """Write ``<name>.png`` and ``<name>.svg`` and show the first in the text."""
        for form in FORMATS:
            self._keep(f"{name}.{form}", image(fig, form))
        self.text(f"![{escape_markdown(alt)}]({name}.png)")

    def note(self, text: str) -> None:
        """Say something below everything else."""
        self.notes.append(text)

    def markdown(self) -> str:
        """The whole page."""
        head = [
            f"# {self.experiment.title}",
            self.experiment.question,
            f"```\n{self.command}\n```",
            self._circumstances(),
        ]
        if self.scope.quick:
            head.append(
                "This is the small version (`--quick`): few runs, few datasets, few "
                "epochs. Its numbers are no results."
            )
        tail = []
        if self.notes:
            lines = [f"- {escape_markdown(note)}" for note in self.notes]
            tail = ["## Notes", "\n".join(lines)]
        data = [f"[{name}]({name})" for name in self._files if name.endswith(".csv")]
        if data:
            tail.append(f"Data: {', '.join(data)}")
        return "\n\n".join([*head, *self._parts, *tail]) + "\n"

    def save(self, folder: Path) -> list[Path]:
        """Write every file into a directory, the page last; their paths."""
        content = self._files | {f"{self.experiment.name}.md": self.markdown().encode()}
        make_folder(folder)
        for name, data in content.items():
            with whole_path(folder / name) as work:
                work.write_bytes(data)
        return [folder / name for name in content]

    def _keep(self, name: str, content: bytes) -> None:
        if name in self._files:
            raise ValueError(f"{name} is written twice")
        self._files[name] = content

    def _circumstances(self) -> str:
        """Versions, threads and days of the runs, and when the page was made."""
        today = time.strftime("%Y-%m-%d")
        if not self.records:
            about = environment(0)
            packages = about["packages"] | {"python": about["python"]}
            versions = [f"{name} {packages[name]}" for name in _VERSIONS]
            return f"{', '.join(versions)}; {today}."
        parts = []
        for name in _VERSIONS:
            seen = sorted({str(r["packages"].get(name, "?")) for r in self.records})
            parts.append(f"{name} {' and '.join(seen)}")
        threads = sorted({int(r["threads"]) for r in self.records if "threads" in r})
        parts.append(f"{' or '.join(map(str, threads))} thread(s) a run")
        days = sorted({str(r["date"])[:10] for r in self.records if r.get("date")})
        if days:
            span = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
            parts.append(f"{len(self.records)} runs of {span}")
        return f"{', '.join(parts)}; page of {today}."


def make_folder(folder: Path) -> None:
    """Make the directory of the results, unless it is there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or "can't be made"
        raise InputError(f"--out {folder}: {reason}; expected a directory") from None


def _plain(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
