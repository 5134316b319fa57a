"""The edge table: its columns found, its node ids turned into node numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from torch import Tensor

from elugcn.data.edges import clean_edges, layout_notes
from elugcn.data.tables.columns import numbers_of, text_of
from elugcn.data.tables.files import TableFile
from elugcn.errors import InputError

SOURCE_NAMES = ("source", "src", "from")
TARGET_NAMES = ("target", "dst", "to")


@dataclass(frozen=True)
class EdgeColumns:
    """Names of the columns of an edge table; weight None: all weigh 1."""

    source: str
    target: str
    weight: str | None


def find_edge_columns(
    file: TableFile,
    named: tuple[str | None, str | None, str | None],
    ids: pa.Array,
    like: Mapping[str, str] | None = None,
) -> tuple[EdgeColumns, list[str]]:
    """Settle which column is which, from what the user named and usual names.

    Args:
        file: The edge table.
        named: Source, target and weight as the user named them, None where not.
        ids: Node ids, to tell a file without a header.
        like: The columns of the edge table trained on, by what they are for: the same
            ones count here, where the user names none. None: there was no such table.

    Returns:
        The columns, and what to warn of.
    """
    source, target, _ = named
    weight, alerts = _weight_column(file, named, like)
    # What they were called there comes before the usual names, if both are here.
    before = [(like or {}).get(end) for end in ("source", "target")]
    if source is None and target is None and all(n and file.has(n) for n in before):
        source, target = before
    source = file.find(source, "source_column", SOURCE_NAMES)
    target = file.find(target, "target_column", TARGET_NAMES)
    taken = (source, target, weight, *file.unnamed)
    free = [name for name in file.names if name not in taken]
    guessed = source is None and target is None
    if len(free) < (source is None) + (target is None):
        raise InputError(
            f"{file.path}: columns {', '.join(file.names)}: expected one for the "
            "source and one for the target of each edge (source_column, target_column)"
            + file.separator_hint
        )
    open_ends = source is None or target is None
    source = source or free.pop(0)
    target = target or free.pop(0)
    if open_ends:
        _refuse_further_ends(file, (source, target), free, ids)
    if source == target:
        raise InputError(f"{file.path}: source and target are one column, {source!r}")
    if weight in (source, target):
        end = "source" if weight == source else "target"
        raise InputError(
            f"{file.path}: {end} and weight are one column, {weight!r} "
            f"({end}_column, weight_column)"
        )
    header = pa.array([source, target], pa.large_string())
    if guessed and pc.all(pc.is_in(header, value_set=ids)).as_py():
        raise InputError(
            f"{file.path}, line 1: {source!r} and {target!r} are node ids, expected a "
            "header such as source,target"
        )
    return EdgeColumns(source, target, weight), alerts


def _refuse_further_ends(
    file: TableFile, taken: tuple[str, str], others: Sequence[str], ids: pa.Array
) -> None:
    """Refuse to guess the ends of edges where another column holds node ids, too."""
    if not others:
        return
    table = file.read(others, text=others)
    for name in others:
        try:
            cells = text_of(table.column(name), name, file)
        except InputError:
            continue  # no column of ids
        if len(cells) and pc.all(pc.is_in(cells, value_set=ids)).as_py():
            raise InputError(
                f"{file.path}: columns {', '.join(map(repr, (*taken, name)))} all hold "
                "node ids: which are the ends of the edges (source_column, "
                "target_column)?"
            )


def _weight_column(
    file: TableFile,
    named: tuple[str | None, str | None, str | None],
    like: Mapping[str, str] | None,
) -> tuple[str | None, list[str]]:
    *ends, weight = named
    if weight is not None or like is None:
        found = file.find(weight, "weight_column", ("weight",))
        # What the user calls an end is none of the weights, whatever its name.
        return (None if weight is None and found in ends else found), []
    before = like.get("weight")
    if before is None or file.has(before):
        return before and file.require(before, "weight_column"), []
    return None, [
        f"{file.path}: no column {before!r}, the weights of the edges trained on: all "
        "weigh 1 (weight_column)"
    ]


def read_edges(
    file: TableFile, columns: EdgeColumns, ids: pa.Array, directed: bool
) -> tuple[Tensor, Tensor | None, list[str]]:
    """Read the edge table.

    Args:
        file: The edge table.
        columns: Which column is which.
        ids: Node ids in the order of the nodes.
        directed: Keep the direction of the edges.

    Returns:
        ``edge_index``, ``edge_weight`` or None, and notes on what was changed.
    """
    ends = [columns.source, columns.target]
    weights = [] if columns.weight is None else [columns.weight]
    table = file.read([*ends, *weights], text=ends)
    weight = None
    if columns.weight is not None and table.num_rows:
        weight = numbers_of(table.column(columns.weight), columns.weight, file)
        if (weight < 0).any():
            row = int((weight < 0).argmax())
            raise InputError(
                f"{file.place(row)}, column {columns.weight!r}: weight {weight[row]} "
                "is negative, expected a number >= 0"
            )
    source, target = (_positions(table, name, file, ids) for name in ends)
    edge_index, edge_weight, report = clean_edges(
        source, target, weight, len(ids), directed=directed
    )
    notes = report.dropped()
    if report.mutual and report.one_way:
        notes.append(
            f"{report.mutual:,} edges were given in both directions and "
            f"{report.one_way:,} in one: all count as undirected"
        )
    notes += layout_notes(edge_index, len(ids), directed=directed)
    return edge_index, edge_weight, notes


def _positions(
    table: pa.Table, name: str, file: TableFile, ids: pa.Array
) -> NDArray[np.int64]:
    text = text_of(table.column(name), name, file)
    found = pc.index_in(text, value_set=ids)
    if found.null_count:
        row = pc.index(found.is_null(), True).as_py()
        value = text[row].as_py()
        what = f"node id {value!r} is not in the nodes file"
        raise InputError(
            f"{file.place(row)}, column {name!r}: "
            f"{what if value else 'the node id is missing'}"
        )
    positions: NDArray[np.int64] = found.to_numpy().astype(np.int64)
    return positions
