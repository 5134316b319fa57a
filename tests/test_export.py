"""The ELU graph as a file."""

import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
import scipy.sparse as sp
import torch
from safetensors.torch import load_file

from elugcn.core.operators import LowRankGraph
from elugcn.errors import InputError
from elugcn.export import check_suffix, write_graph


@pytest.fixture
def graph() -> LowRankGraph:
    generator = torch.Generator().manual_seed(0)
    return LowRankGraph(*(torch.randn(9, 2, generator=generator) for _ in range(2)))


def test_factors_and_edges(graph: LowRankGraph, tmp_path: Path) -> None:
    assert write_graph(graph, tmp_path / "g.safetensors") == 36
    factors = load_file(tmp_path / "g.safetensors")
    assert torch.equal(factors["left"], graph.left)
    assert torch.equal(factors["right"], graph.right)
    edges = graph.topk(3)
    assert write_graph(edges, tmp_path / "g.npz") == 27
    stored = sp.load_npz(tmp_path / "g.npz").toarray()
    np.testing.assert_array_equal(stored, edges.to_dense().numpy())
    ids = [f'node {i}, "x"' for i in range(9)]
    write_graph(edges, tmp_path / "g.csv", ids)
    table = pyarrow.csv.read_csv(tmp_path / "g.csv").to_pylist()
    assert len(table) == 27
    for row in table:
        entry = stored[ids.index(row["target"]), ids.index(row["source"])]
        assert row["weight"] == pytest.approx(float(entry), rel=1e-6)


def test_one_long_name_costs_its_own_length(tmp_path: Path) -> None:
    n = 4000
    generator = torch.Generator().manual_seed(0)
    factors = (torch.randn(n, 2, generator=generator) for _ in range(2))
    edges = LowRankGraph(*factors).topk(5)
    ids = [f"n{i}" for i in range(n)]
    ids[7] = "long " * 200
    tracemalloc.start()
    write_graph(edges, tmp_path / "g.parquet", ids)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Words of equal length would be n·k·1000·4 bytes: 80 MB.
    assert peak < 20e6
    table = pyarrow.parquet.read_table(tmp_path / "g.parquet").to_pylist()
    assert sum(row["target"] == ids[7] for row in table) == 5


def test_a_file_is_replaced_whole_or_not_at_all(
    graph: LowRankGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "g.safetensors"
    path.write_text("old")

    def broken(*rest: object) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr("elugcn.storage.save_file", broken)
        with pytest.raises(OSError, match="disk full"):
            write_graph(graph, path)
    assert [p.name for p in tmp_path.iterdir()] == ["g.safetensors"]
    assert path.read_text() == "old"
    write_graph(graph, path)
    assert set(load_file(path)) == {"left", "right"}


@pytest.mark.parametrize(
    ("name", "mode", "message"),
    [
        ("g.csv", "implicit", "--topk 20"),
        ("g.safetensors", "topk", "edges go to .csv"),
        ("g.safetensors", "paper", "edges go to .csv"),
        ("g.pt", "topk", "expected one of"),
    ],
)
def test_names_that_cannot_hold_the_graph(
    name: str, mode: str, message: str, tmp_path: Path, graph: LowRankGraph
) -> None:
    with pytest.raises(InputError, match=message):
        check_suffix(tmp_path / name, mode)
    with pytest.raises(InputError, match=message):
        write_graph(graph if mode == "implicit" else graph.topk(2), tmp_path / name)
    assert list(tmp_path.iterdir()) == []
