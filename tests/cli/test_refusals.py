"""What the command line refuses: exit code 2, one line that says why, nothing written.

The library's own refusals are tested where they are made. Here is one of each kind, as
a user meets it.
"""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import QUICK, Command, Tables

Refused = Callable[..., str]


@pytest.fixture
def refused(elugcn: Command, folder: Path) -> Refused:
    """Run what must be refused."""

    def content() -> dict[Path, bytes | None]:
        paths = sorted(folder.rglob("*"))
        return {p: p.read_bytes() if p.is_file() else None for p in paths}

    def run(*arguments: str | Path, says: str) -> str:
        before = content()
        done = elugcn(*arguments)
        assert (done.code, done.out) == (2, "")
        (line,) = done.errors
        assert line.startswith("elugcn: error: ")
        assert re.search(says, line), line
        assert "Traceback" not in done.err
        assert content() == before
        return line

    return run


LINES = {
    # The command line itself
    "trian": "No such command 'trian'",
    "train --nope": "No such option: --nope .*see elugcn train --help",
    "train left over": "unexpected extra argument",
    "train --seed -1": "'--seed'.*greater than or equal to 0",
    "train --seed x": "'--seed'.*valid integer",
    "train --threads 99999999999": "'--threads'.*less than or equal to",
    "explain": "Missing argument 'NODE'",
    "diagnose --suggest 0": "'--suggest'.*greater than or equal to 1",
    "graph": "Missing option '--out'",
    "graph --out g.csv --topk 0": "'--topk'.*greater than or equal to 1",
    "compare --jobs 0": "'--jobs'.*greater than or equal to 1",
    # Which graph
    "train --dataset coar": "unknown dataset 'coar'.*did you mean 'cora'",
    "train --split -1": "--split -1: expected a whole number, 0 or more",
    "train --labels-per-class 900": "--labels-per-class 900: class '0' has only 5",
    "train --dataset karate --directed": "--directed: dataset karate has no",
    "train --features smell": "--features 'smell' is unknown",
    "train --data-option split=5": "unknown option 'split' of",
    "train --dataset sbm --data-option n": "--data-option n: expected key=value",
    "train --dataset sbm --data-option n=-3": "sbm option n must be at least 1; got -3",
    "train --dataset cora --data-dir nowhere": "nowhere",
    "explain 500 --dataset karate": "node '500' must be a number from 0 to 33",
    "compare --datasets koala": "unknown dataset 'koala'",
    "compare --datasets cora --data-dir nowhere": "nowhere",
    # Tables
    "train --nodes nodes.csv": "--nodes requires --edges",
    "train --edges nodes.csv": "--edges requires --nodes",
    "train --label-column x": "--label-column requires --nodes and --edges",
    "train --dataset digits OWN": "give --dataset, or --nodes and --edges, not both",
    "train OWN --split 3": "--split requires --dataset",
    "train OWN --labels-per-class 1": "--labels-per-class requires --dataset",
    "train --nodes no.csv --edges nodes-edges.csv": "file not found: no.csv",
    "train --nodes nodes.csv --edges .": r"\.: ",
    "train --nodes 'a\nb.csv' --edges x.csv": "file not found: a b.csv",
    "train OWN --id-column key": r"nodes\.csv: no column 'key' \(--id-column\)",
    "train OWN --source-column a": r"nodes-edges\.csv: no column 'a' \(--source-c",
    "train OWN --val-fraction 1.5": r"nodes\.csv: --val-fraction 1\.5: expected a num",
    # Methods and their options
    "train --method gnc": "unknown method 'gnc'; did you mean .*'gcn'",
    "train --method elu-graph": "elu-graph is not a classifier; use `elugcn graph`",
    "train --set epochs": "--set epochs: expected key=value",
    "train --set 'eta=!!python/object/apply:os.system [ls]'": "--set .*not valid YAML",
    "train --set epoch=1": "unknown option 'epoch' of method auto; did you mean 'epo",
    "train --set epochs=many": "epochs must be a whole number; got 'many'",
    "train --method elu-gcn --graph-mode dense": (
        "--graph-mode must be 'implicit'.*got 'dense'"
    ),
    "train --method gcn --graph-mode topk": "unknown option 'graph_mode' of m",
    "train --method gcn --set hidden_channels=1000000000": (
        "GB of memory; this computer has"
    ),
    "train --effort lots": "--effort.*'quick', 'normal'.*'thorough'.*'lots'",
    "train --time-limit 0": "--time-limit.*greater than 0.*0",
    "train --time-limit soon": "'--time-limit'.*valid number",
    "train --effort quick --method gcn": "--effort.*'gcn'",
    "train --time-limit 9 --method lpa": "--time-limit.*'lpa'",
    "train --set folds=1": "folds must be at least 2; got 1",
    "train --set folds=900": r"folds=900: expected 2 to \d+",
    "train --set variants=[]": "unknown option 'variants' of method auto",
    "train --metric auc": "--metric must be one of accuracy, .*; got 'auc'",
    "train --class-weight even": "--class-weight must be 'balanced' or .* 'even'",
    "train --method lpa --class-weight balanced": "--class-weight: method 'lpa' has no",
    "train --device abacus": "--device must be auto, cpu or cuda; got 'abacus'",
    "train --config no.yaml": "no.yaml: file not found",
    "graph --out g.csv": "choose --graph-mode 'topk'",
    "graph --out g.safetensors --topk 3": "edges go to .csv, .parquet or .npz",
    "graph --out g.npz --topk 3 --graph-mode paper": "--topk contradicts --graph-mode",
    "compare --methods nope": "unknown method 'nope'",
    "compare --methods ,": "--methods ',': expected names separated by commas",
    "compare --set epochs=3": "--set epochs: expected METHOD.KEY=VALUE",
    "compare --set gcn.epochs": "--set gcn.epochs: expected key=value",
    "compare --set gcn.epoch=3": "unknown option 'epoch' of method gcn",
    "compare --metric auc": "--metric must be one of accuracy, .*; got 'auc'",
    "compare --class-weight balanced": "--class-weight: method 'lpa' has no loss",
    "tune --metric auc": "--metric must be one of accuracy, .*; got 'auc'",
    "compare --format html": "--format html: expected one of terminal, markdown",
    # Saved runs
    "predict nowhere": "nowhere",
    "predict RUNS/sbm --json": "--json requires --out FILE",
    "predict RUNS/sbm --nodes nodes.csv": "--nodes requires --edges",
    "predict RUNS/sbm --directed": "--directed requires another graph",
    "predict RUNS/sbm --dataset karate": "fitted with 64 features; got 34",
    "predict RUNS/lpa --dataset karate": "lpa.*can't predict for another graph",
    "predict RUNS/sbm OWN": "trained on a dataset, not on tables",
    "explain 1 --run nowhere": "nowhere",
    "diagnose --run RUNS/gcn": "method gcn has no label utilization; use a run of",
    "diagnose --run RUNS/sbm --dataset karate": "--dataset does not go with --run",
    "report nowhere": "nowhere",
    # Where it is written
    "train --out nodes.csv": "nodes.csv: is a file; expected a new directory",
    "train --out nodes.csv/run": "nodes.csv/run: .*nodes.csv can't be written to",
    "train --out full": "full: exists and is not empty; choose another",
    "predict RUNS/tables OWN --out nodes.csv": "nodes.csv: would replace an input",
    "predict RUNS/sbm --out full": "full: is a directory; expected a file",
    "predict RUNS/sbm --out p.parquet": "predictions are CSV; use the suffix .csv",
    "graph --out g.txt": r"g.txt: expected one of \.safetensors, \.csv",
    "graph --out no/g.safetensors": "no is not a writable directory",
    "graph OWN --topk 3 --out nodes-edges.csv": "would replace an input",
    "compare --out no/t.md": "no is not a writable directory",
    "compare --store nodes.csv": "nodes.csv",
    "tune --out nodes.csv": "nodes.csv",
}


@pytest.mark.parametrize("line", LINES)
def test_options(
    line: str, folder: Path, tables: Tables, runs: Path, refused: Refused
) -> None:
    tables.write()
    (folder / "full").mkdir()
    (folder / "full/x").write_text("x")
    own = "--nodes nodes.csv --edges nodes-edges.csv"
    words = line.replace("RUNS", str(runs)).replace("OWN", own)
    refused(*shlex.split(words), says=LINES[line])


SPOILT: dict[str, tuple[Callable[[Tables], Any], str]] = {
    "edge": (
        lambda t: t.edge_rows.append(["n 0", "nobody"]),
        r"nodes-edges\.csv, line 123.*'nobody'",
    ),
    "number": (
        lambda t: t.set("size", lambda i: "inf" if i == 4 else None),
        r"nodes\.csv, line 6, column 'size': inf",
    ),
    "label": (lambda t: t.set("label", lambda i: ""), r"nodes\.csv: no node has a lab"),
    "features": (
        lambda t: t.keep(id="id", label="label"),
        'no feature.*--features "identity"',
    ),
}


@pytest.mark.parametrize("what", SPOILT)
def test_tables(what: str, tables: Tables, refused: Refused) -> None:
    spoil, says = SPOILT[what]
    spoil(tables)
    refused("train", *tables.write(), says=says)


CONFIGS = {
    "epohcs: 5": r"unknown option 'epohcs' of c\.yaml; did you mean 'epochs'",
    "{options: {}, seed: many}": r"c\.yaml: --seed must be a whole number; got 'many'",
    "{options: {}, seed: -5}": r"c\.yaml: --seed must be at least 0; got -5",
    "{options: {}, method: magic}": "unknown method 'magic'",
    "{options: {}, dataset: karate, graph: {dataset: digits}}": (
        r"c\.yaml: dataset is 'karate' at the top but 'digits' under graph"
    ),
    "{options: {}, graph: {datasett: x}}": (
        r"unknown option 'datasett' of graph in c\.yaml; did you mean 'dataset'"
    ),
    "{options: {}, graph: {dataset: 3}}": r"c\.yaml: graph\.dataset must be text; got 3",
    "{options: {}, graph: {data_option: [1]}}": (
        r"c\.yaml: graph\.data_option\.0 must be text; got 1"
    ),
}


@pytest.mark.parametrize("text", CONFIGS)
def test_config_files(text: str, folder: Path, refused: Refused) -> None:
    (folder / "c.yaml").write_text(text)
    refused("train", "--config", "c.yaml", says=CONFIGS[text])


@pytest.mark.parametrize("command", ["predict", "report"])
def test_nothing_of_a_run_is_written_over(
    command: str, elugcn: Command, refused: Refused, tables: Tables
) -> None:
    own = ["train", *tables.write(), *QUICK, "--no-report", "--out", "run"]
    assert elugcn(*own).code == 0
    for path in ("run/model.safetensors", "run/metrics.json", "nodes.csv"):
        refused(command, "run", "--out", path, says="would replace an input")
    mine = {"predict": "predictions.csv", "report": "report.html"}[command]
    assert elugcn(command, "run", "--out", f"run/{mine}").code == 0


def test_an_optional_package_that_is_missing(
    refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    says = r"optuna is not installed; it comes with: pip install 'elugcn\[tune\]'"
    refused("tune", says=says)
