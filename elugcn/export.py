"""The ELU graph as a file: factors, or an edge list."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import scipy.sparse as sp

from elugcn.atomic import whole_path
from elugcn.core.operators import ELUGraph, ExplicitGraph, LowRankGraph
from elugcn.errors import InputError
from elugcn.storage import write_tensors

SUFFIXES = (".safetensors", ".csv", ".parquet", ".npz")


def check_suffix(path: Path, mode: str) -> None:
    """Refuse a file name that can't hold the graph, before it is learned."""
    if path.suffix not in SUFFIXES:
        raise InputError(f"--out {path}: expected one of {', '.join(SUFFIXES)}")
    if mode == "implicit" and path.suffix != ".safetensors":
        raise InputError(
            f"--out {path}: the whole graph has factors, not edges: write them to "
            f".safetensors, or ask for edges with --topk 20"
        )
    if mode != "implicit" and path.suffix == ".safetensors":
        raise InputError(
            f"--out {path}: edges go to .csv, .parquet or .npz; .safetensors is for "
            f"the factors"
        )


def write_graph(graph: ELUGraph, path: Path, ids: list[str] | None = None) -> int:
    """Write the graph; returns how many entries the file holds.

    An edge list has the columns source, target, weight: weight is S*_{target, source},
    what ``target`` takes from ``source``. ``.npz`` is scipy's format of the matrix.
    """
    check_suffix(path, graph.mode)
    with whole_path(path) as work:
        if isinstance(graph, LowRankGraph):
            factors = {"left": graph.left, "right": graph.right}
            write_tensors(factors, work)
            return graph.left.numel() + graph.right.numel()
        assert isinstance(graph, ExplicitGraph)
        csr = graph.csr
        if path.suffix == ".npz":
            sp.save_npz(work, csr.to_scipy())
            return csr.nnz
        source, target = csr.col.long().cpu().numpy(), csr.row.cpu().numpy()
        # Not numpy's words: each is as long as the longest.
        name = pa.array(ids if ids is not None else range(graph.shape[0]))
        table = pa.table(
            {
                "source": name.take(pa.array(source)),
                "target": name.take(pa.array(target)),
                "weight": csr.value.cpu().numpy(),
            }
        )
        if path.suffix == ".parquet":
            pa.parquet.write_table(table, work)
        else:
            pa.csv.write_csv(table, work)
        return csr.nnz
