"""`elugcn graph`: the ELU graph as factors and as edges."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from safetensors.torch import load_file

from elugcn.api import fit
from elugcn.data.datasets import load_dataset
from tests.cli.conftest import LEARN, SBM, Command, Tables, rows_of

BASE = ["graph", *SBM, *LEARN, "--json", "--out"]


def test_factors(elugcn: Command, folder: Path) -> None:
    said = elugcn(*BASE, "g.safetensors").json
    assert (said["graph_mode"], said["rank"], said["n_nodes"]) == ("implicit", 3, 120)
    assert (said["dataset"], said["entries"]) == ("sbm", 720)
    factors = load_file(folder / "g.safetensors")
    data = load_dataset("sbm", n=120, n_classes=3)
    learned = fit(data, "elu-graph", {"epochs": 5}).result.graph
    assert learned is not None
    for name in ("left", "right"):
        assert factors[name].equal(getattr(learned, name))
    shown = elugcn("graph", *SBM, *LEARN, "--out", "g [2].safetensors")
    text = "the ELU graph of sbm, two factors of 120 × 3"
    assert shown.out == f"g [2].safetensors: {text}\n"


def test_edges(elugcn: Command, folder: Path) -> None:
    elugcn(*BASE, "g.safetensors")
    factors = load_file(folder / "g.safetensors")
    dense = (factors["left"] @ factors["right"].T).numpy()
    said = elugcn(*BASE, "g.npz", "--topk", "4").json
    assert (said["graph_mode"], said["rank"], said["entries"]) == ("topk", None, 480)
    kept = sp.load_npz(folder / "g.npz").tocoo()
    assert np.bincount(kept.row).tolist() == [4] * 120
    np.testing.assert_allclose(kept.data, dense[kept.row, kept.col], rtol=1e-5)
    largest = np.sort(np.abs(dense), axis=1)[:, -4:].sum(axis=1)
    taken = np.asarray(abs(kept).sum(axis=1)).ravel()
    np.testing.assert_allclose(taken, largest, rtol=1e-4)


def test_edges_of_tables_carry_their_ids(
    elugcn: Command, folder: Path, tables: Tables
) -> None:
    own = [*tables.write(), *LEARN, "--topk", "2", "--out", "g.csv"]
    assert elugcn("graph", *own).out == "g.csv: the ELU graph of nodes, 120 edges\n"
    ids = {row["id"] for row in tables.rows}
    assert {r["source"] for r in rows_of(folder / "g.csv")} <= ids
    assert {r["target"] for r in rows_of(folder / "g.csv")} == ids


@pytest.mark.parametrize(
    "mode", [["--set", "graph_mode=topk"], ["--graph-mode", "topk"]], ids=["set", "own"]
)
def test_a_mode_decides_too(mode: list[str], elugcn: Command, folder: Path) -> None:
    done = elugcn("graph", *SBM, *LEARN, *mode, "--out", "g.csv", "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert len(rows_of(folder / "g.csv")) == 120 * 20


def test_the_config_of_a_run(elugcn: Command, runs: Path) -> None:
    asked = ["--config", runs / "tables/config.yaml", "--json", "--out"]
    assert elugcn("graph", *asked, "g.safetensors").json["dataset"] == "nodes"
