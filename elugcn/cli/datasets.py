"""``elugcn datasets``: what can be loaded."""

from __future__ import annotations

from dataclasses import asdict

from elugcn.cli.common import console, print_json, print_table
from elugcn.cli.options import DataDirOption, OutputOptions, grouped
from elugcn.data.datasets import is_on_disk, list_datasets

_COLUMNS = ("name", "nodes", "edges", "features", "classes", "homophily", "splits")


@grouped
def run(place: DataDirOption, output: OutputOptions) -> None:
    """List the datasets: size, homophily, splits, and what is on disk.

    Datasets that are not on disk are downloaded when they are first used. --quiet
    prints the names alone.
    """
    rows = [(info, is_on_disk(info.name, place.data_dir)) for info in list_datasets()]
    if output.json_:
        print_json({"datasets": [asdict(i) | {"on_disk": here} for i, here in rows]})
    elif output.quiet:
        print("\n".join(info.name for info, _ in rows))
    else:
        shown = []
        for info, here in rows:
            sizes = (info.n_nodes, info.n_edges, info.n_features, info.n_classes)
            shown.append(
                (
                    info.name,
                    *("–" if s is None else f"{s:,}" for s in sizes),
                    "–" if info.homophily is None else f"{info.homophily:.2f}",
                    str(info.n_splits),
                    "built in" if not info.files else ("yes" if here else "no"),
                )
            )
        print_table(console(), (*_COLUMNS, "<on disk"), shown)
