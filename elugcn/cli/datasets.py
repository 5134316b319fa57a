"""``elugcn datasets``: what can be loaded."""

from dataclasses import asdict
from typing import Any

from elugcn.cli.common import print_table
from elugcn.cli.options import DataDirOption, OutputOptions, grouped
from elugcn.data.datasets import is_on_disk, list_datasets

_COLUMNS = ("name", "nodes", "edges", "features", "classes", "homophily", "splits")


@grouped
def run(place: DataDirOption, output: OutputOptions) -> None:
    """List the datasets: size, homophily, splits, and what is on disk.

    Datasets that are not on disk are downloaded when they are first used. --quiet
    prints the names alone.
    """
    found = [
        asdict(info) | {"on_disk": is_on_disk(info.name, place.data_dir)}
        for info in list_datasets()
    ]
    if output.quiet and not output.json_:
        print("\n".join(one["name"] for one in found))
    rows = [_row(one) for one in found]
    head = (*_COLUMNS, "<on disk")
    output.show({"datasets": found}, lambda screen: print_table(screen, head, rows))


def _row(one: dict[str, Any]) -> list[str]:
    sizes = (one[f"n_{what}"] for what in ("nodes", "edges", "features", "classes"))
    row = [one["name"], *("–" if size is None else f"{size:,}" for size in sizes)]
    row.append("–" if one["homophily"] is None else f"{one['homophily']:.2f}")
    here = "yes" if one["on_disk"] else "no"
    return [*row, str(one["n_splits"]), here if one["files"] else "built in"]
