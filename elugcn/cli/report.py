"""``elugcn report``: a run as one HTML page."""

from pathlib import Path

import typer

from elugcn.api import load
from elugcn.api.runs import REPORT
from elugcn.atomic import check_file
from elugcn.cli.loading import read_graph_again, refuse_input
from elugcn.cli.options import RUN, DataDirOption, GraphOptions, OutputOptions, grouped


@grouped
def run(
    data: DataDirOption,
    output: OutputOptions,
    run_directory: Path = RUN,
    out: Path | None = typer.Option(None, help=f"HTML file. Default: RUN/{REPORT}."),
) -> None:
    """Write the HTML report of a run.

    The report is one file and needs no network. Nothing is trained again. The graph of
    the run is read again if it is still there.
    """
    from elugcn.report import write_report

    target = out or run_directory / REPORT
    if out is not None:
        check_file(out)
        refuse_input(out, GraphOptions(), run_directory, REPORT)
    fitted = load(run_directory)
    problem = read_graph_again(fitted, run_directory, data.data_dir)
    notes = () if problem is None else (problem,)
    written = write_report(run_directory, fitted=fitted, out=target, notes=notes)
    size = target.stat().st_size
    place = {"run": str(run_directory), "out": str(target), "bytes": size}
    lines = [f"Note: {note}" for note in notes]
    lines.append(f"{target} ({size / 1e6:.1f} MB); open it in a browser")
    output.show(place | written | {"notes": notes}, "\n".join(lines))
