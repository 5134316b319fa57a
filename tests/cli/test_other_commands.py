"""`elugcn diagnose`, `graph` and `datasets`."""

import json
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
import scipy.sparse as sp
import torch
from safetensors.torch import load_file

from elugcn.data.registry import list_datasets
from tests.cli.conftest import LABELS, Command, Tables, rows_of

SBM = ["--dataset", "sbm", "--data-option", "n=120", "--data-option", "n_classes=3"]
QUICK = ["--set", "epochs=5"]


def test_diagnose_counts_every_node_once(elugcn: Command, folder: Path) -> None:
    said = elugcn("diagnose", *SBM, *QUICK, "--json").json
    assert (said["dataset"], said["seed"]) == ("sbm", 0)
    assert list(said["overall"]) == ["elu", "nelu", "unreachable"]
    assert sum(row["nodes"] for row in said["overall"].values()) == 120
    assert sum(row["share"] for row in said["overall"].values()) == pytest.approx(1)
    assert sum(row["nodes"] for row in said["classes"]) == 120
    assert sum(row["labels"] for row in said["classes"]) == 6
    assert [row["name"] for row in said["classes"]] == ["0", "1", "2"]
    assert list(folder.iterdir()) == []


def test_diagnose_agrees_with_a_run(elugcn: Command, folder: Path) -> None:
    said = elugcn("diagnose", *SBM, *QUICK, "--json").json
    run = elugcn("train", *SBM, *QUICK, "--json", "--out", "run").json
    assert said["overall"]["elu"]["share"] == pytest.approx(run["elu_fraction"])


def test_diagnose_shows_names_as_they_are(elugcn: Command, tables: Tables) -> None:
    done = elugcn("diagnose", *tables.write(), *QUICK)
    assert done.code == 0
    for name in LABELS:
        assert name in done.out
    assert "ELU: labels and GCN agree" in done.out
    assert "\x1b" not in done.out + done.err
    assert elugcn("diagnose", *tables.write(), *QUICK, "--quiet").out == ""


def test_diagnose_says_what_no_label_reaches(elugcn: Command, tables: Tables) -> None:
    tables.edge_rows = [r for r in tables.edge_rows if "n 0" not in r]
    said = elugcn("diagnose", *tables.write(), *QUICK, "--json").json
    assert said["overall"]["unreachable"]["nodes"] == 1
    assert any("no training label reaches 1" in note for note in said["notes"])


def test_the_graph_as_factors_and_as_edges(elugcn: Command, folder: Path) -> None:
    base = ["graph", *SBM, *QUICK, "--json", "--out"]
    said = elugcn(*base, "g.safetensors").json
    assert set(said) == {
        "dataset", "graph_mode", "n_nodes", "rank", "entries", "seconds", "out",
    }  # fmt: skip
    assert (said["graph_mode"], said["rank"], said["entries"]) == ("implicit", 3, 720)
    factors = load_file(folder / "g.safetensors")
    dense = (factors["left"] @ factors["right"].T).numpy()

    said = elugcn(*base, "g.npz", "--topk", "4").json
    assert (said["graph_mode"], said["entries"]) == ("topk", 480)
    kept = sp.load_npz(folder / "g.npz").tocoo()
    assert np.bincount(kept.row).tolist() == [4] * 120
    np.testing.assert_allclose(kept.data, dense[kept.row, kept.col], rtol=1e-5)
    largest = np.sort(np.abs(dense), axis=1)[:, -4:].sum(axis=1)
    taken = np.asarray(abs(kept).sum(axis=1)).ravel()
    np.testing.assert_allclose(taken, largest, rtol=1e-4)

    elugcn(*base, "g.csv", "--topk", "4")
    elugcn(*base, "g.parquet", "--topk", "4")
    for table in (
        pyarrow.csv.read_csv(folder / "g.csv"),
        pyarrow.parquet.read_table(folder / "g.parquet"),
    ):
        assert table.column_names == ["source", "target", "weight"]
        # What the target takes from the source: row target, column source.
        assert table["target"].to_pylist() == kept.row.tolist()
        assert table["source"].to_pylist() == kept.col.tolist()
        np.testing.assert_allclose(table["weight"].to_numpy(), kept.data, rtol=1e-5)
    assert {p.name for p in folder.iterdir()} == {
        "g.safetensors", "g.npz", "g.csv", "g.parquet",
    }  # fmt: skip


def test_edges_of_tables_carry_their_ids(
    elugcn: Command, folder: Path, tables: Tables
) -> None:
    out = folder / "g.csv"
    assert (
        elugcn("graph", *tables.write(), *QUICK, "--topk", "2", "--out", out).code == 0
    )
    ids = {row[0] for row in tables.rows}
    assert {r["source"] for r in rows_of(out)} <= ids
    assert {r["target"] for r in rows_of(out)} == ids


def test_a_mode_given_with_set_decides_too(
    elugcn: Command, refused: Command, folder: Path
) -> None:
    topk = ["--set", "graph_mode=topk"]
    assert elugcn("graph", *SBM, *QUICK, *topk, "--out", "g.csv", "--quiet").code == 0
    assert len(rows_of(folder / "g.csv")) == 120 * 20
    refused("graph", *SBM, *topk, "--out", "g.safetensors", says="edges go to .csv")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--out", "g.txt"], "g.txt: expected one of .safetensors"),
        (["--out", "g.csv"], "ask for edges with --topk 20"),
        (["--out", "g.safetensors", "--topk", "3"], "edges go to .csv"),
        (["--out", "no/g.safetensors"], "no is not a writable directory"),
        (["--out", "g.csv", "--topk", "0"], "--topk.*greater than or equal to 1"),
        (["--out", "g.npz", "--topk", "3", "--graph-mode", "paper"], "contradict"),
        (["--out", "g.npz", "--graph-mode", "dense"], "graph.mode must be one of"),
        ([], "Missing option.*--out"),
    ],
)
def test_graph_refusals(arguments: list[str], says: str, refused: Command) -> None:
    refused("graph", *SBM, *arguments, says=says)


def test_datasets(
    elugcn: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELUGCN_CACHE", str(folder / "cache"))
    monkeypatch.delenv("ELUGCN_DATA", raising=False)
    said = elugcn("datasets", "--json").json
    names = [d["name"] for d in said["datasets"]]
    assert names == [info.name for info in list_datasets()]
    by_name = {d["name"]: d for d in said["datasets"]}
    assert by_name["cora"]["n_nodes"] == 2708
    assert by_name["cora"]["homophily"] == pytest.approx(0.81)
    assert (by_name["cora"]["on_disk"], by_name["digits"]["on_disk"]) == (False, True)
    assert elugcn("datasets", "--quiet").out.split() == names
    shown = elugcn("datasets").out
    assert all(name in shown for name in names)
    assert "\x1b" not in shown


def test_datasets_on_disk(elugcn: Command, data_dir: Path) -> None:
    said = elugcn("datasets", "--json", "--data-dir", data_dir).json
    assert {d["name"] for d in said["datasets"] if d["on_disk"]} >= {"cora", "citeseer"}


def test_help_and_version(elugcn: Command) -> None:
    import elugcn as package

    assert elugcn("--version").out == f"elugcn {package.__version__}\n"
    for arguments in ([], ["--help"]):
        done = elugcn(*arguments)
        assert done.code == 0
        for name in ("train", "predict", "diagnose", "graph", "datasets"):
            assert name in done.out
    for name in ("train", "predict", "diagnose", "graph", "datasets"):
        done = elugcn(name, "--help")
        assert (done.code, done.err) == (0, "")
        assert "--json" in done.out
        assert "--quiet" in done.out


def test_json_has_no_nan(elugcn: Command, tables: Tables) -> None:
    """Shares of classes that nobody is predicted to be are null."""
    done = elugcn("diagnose", *tables.write(), "--set", "epochs=1", "--json")
    assert "NaN" not in done.out
    json.loads(done.out)


def test_threads_are_put_back(elugcn: Command) -> None:
    before = torch.get_num_threads()
    elugcn("diagnose", *SBM, *QUICK, "--threads", str(before + 1), "--quiet")
    assert torch.get_num_threads() == before
