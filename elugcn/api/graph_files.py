"""The ELU graph as a file: its factors, or a list of edges."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import scipy.sparse as sp

from elugcn.api.files import write_tensors
from elugcn.atomic import atomic_path
from elugcn.elu.low_rank_graph import ELUGraph, ExplicitGraph, LowRankGraph
from elugcn.errors import InputError

GRAPH_SUFFIXES = (".safetensors", ".csv", ".parquet", ".npz")


def check_graph_path(path: Path, mode: str) -> None:
    """Refuse a file that can't hold a graph of this mode, before it is learned."""
    if path.suffix not in GRAPH_SUFFIXES:
        raise InputError(f"{path}: expected one of {', '.join(GRAPH_SUFFIXES)}")
    if mode == "implicit" and path.suffix != ".safetensors":
        raise InputError(
            f"{path}: graph_mode 'implicit' has factors, not edges; write it to a "
            ".safetensors file, or choose graph_mode 'topk'"
        )
    if mode != "implicit" and path.suffix == ".safetensors":
        raise InputError(
            f"{path}: edges go to .csv, .parquet or .npz; .safetensors is for factors"
        )


def write_graph(graph: ELUGraph, path: Path, ids: Sequence[str] | None = None) -> int:
    """Write the ELU graph S* in the format of the suffix; returns how many entries.

    An edge list has the columns source, target and weight: weight is S*_{target,
    source}, what ``target`` takes from ``source``. ``.npz`` is scipy's format. Without
    ``ids`` nodes are named by their numbers.
    """
    check_graph_path(path, graph.mode)
    with atomic_path(path) as work:
        if isinstance(graph, LowRankGraph):
            write_tensors(work, {"left": graph.left, "right": graph.right})
            return graph.left.numel() + graph.right.numel()
        assert isinstance(graph, ExplicitGraph)
        csr = graph.csr
        if path.suffix == ".npz":
            sp.save_npz(work, csr.to_scipy())
            return csr.nnz
        # Arrow's strings: numpy would make each as long as the longest.
        name = pa.array(range(graph.shape[0]) if ids is None else ids)
        table = pa.table(
            {
                "source": name.take(pa.array(csr.col.long().cpu().numpy())),
                "target": name.take(pa.array(csr.row.cpu().numpy())),
                "weight": csr.value.cpu().numpy(),
            }
        )
        if path.suffix == ".parquet":
            pa.parquet.write_table(table, work)
        else:
            pa.csv.write_csv(table, work)
        return csr.nnz
