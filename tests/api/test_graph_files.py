"""The ELU graph as a file."""

from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
import scipy.sparse as sp
import torch
from safetensors.torch import load_file

from elugcn import InputError
from elugcn.api import write_graph
from elugcn.elu.low_rank_graph import LowRankGraph


@pytest.fixture
def graph() -> LowRankGraph:
    generator = torch.Generator().manual_seed(0)
    return LowRankGraph(*(torch.randn(9, 2, generator=generator) for _ in range(2)))


def test_factors(graph: LowRankGraph, tmp_path: Path) -> None:
    assert write_graph(graph, tmp_path / "g.safetensors") == 36
    factors = load_file(tmp_path / "g.safetensors")
    assert torch.equal(factors["left"] @ factors["right"].T, graph.to_dense())


def test_edges(graph: LowRankGraph, tmp_path: Path) -> None:
    edges = graph.topk(3)
    assert write_graph(edges, tmp_path / "g.npz") == 27
    stored = sp.load_npz(tmp_path / "g.npz").toarray()
    np.testing.assert_array_equal(stored, edges.to_dense().numpy())
    ids = [f'node {i}, "x"' for i in range(9)]
    read = {"csv": pyarrow.csv.read_csv, "parquet": pyarrow.parquet.read_table}
    for suffix, reader in read.items():
        assert write_graph(edges, tmp_path / f"g.{suffix}", ids) == 27
        table = reader(tmp_path / f"g.{suffix}").to_pylist()
        assert len(table) == 27
        for row in table:
            entry = stored[ids.index(row["target"]), ids.index(row["source"])]
            assert row["weight"] == pytest.approx(float(entry), rel=1e-6)
    write_graph(edges, tmp_path / "numbers.csv")
    table = pyarrow.csv.read_csv(tmp_path / "numbers.csv").to_pylist()
    assert table[0]["source"] == int(edges.csr.col[0])


def test_a_file_is_replaced_whole_or_not_at_all(
    graph: LowRankGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "g.safetensors"
    path.write_text("old")

    def broken(*arguments: object) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr("elugcn.api.files.save_file", broken)
        with pytest.raises(OSError, match="disk full"):
            write_graph(graph, path)
    assert [p.name for p in tmp_path.iterdir()] == ["g.safetensors"]
    assert path.read_text() == "old"
    write_graph(graph, path)
    assert set(load_file(path)) == {"left", "right"}


@pytest.mark.parametrize(
    ("name", "mode", "message"),
    [
        ("g.csv", "implicit", "factors, not edges.*choose graph_mode 'topk'"),
        ("g.safetensors", "topk", "edges go to .csv, .parquet or .npz"),
        ("g.pt", "topk", "expected one of .safetensors, .csv, .parquet, .npz"),
    ],
)
def test_names_that_can_not_hold_the_graph(
    name: str, mode: str, message: str, tmp_path: Path, graph: LowRankGraph
) -> None:
    with pytest.raises(InputError, match=message):
        write_graph(graph if mode == "implicit" else graph.topk(2), tmp_path / name)
    assert list(tmp_path.iterdir()) == []
