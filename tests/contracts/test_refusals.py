"""What the command line refuses: exit code 2, one line that says why, nothing written.

The library's own refusals are tested where they are made. Here is one of each kind, as
a user meets it.
"""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.cli.conftest import (  # noqa: F401 (fixtures)
    QUICK,
    SBM,
    Command,
    Tables,
    elugcn,
    folder,
    runs,
    tables,
)

Refused = Callable[..., str]
OWN = ["--nodes", "nodes.csv", "--edges", "nodes-edges.csv"]


@pytest.fixture
def refused(elugcn: Command, folder: Path) -> Refused:  # noqa: F811
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


TRAIN: list[tuple[list[str], str]] = [
    # The command line itself
    (["--nope"], "No such option: --nope .*see elugcn train --help"),
    (["left over"], "unexpected extra argument"),
    (["--seed", "-1"], "'--seed'.*greater than or equal to 0"),
    (["--seed", "x"], "'--seed'.*valid integer"),
    (["--threads", "0"], "'--threads'.*greater than or equal to 1"),
    (["--threads", "99999999999"], "'--threads'.*less than or equal to"),
    # Which graph
    (["--dataset", "coar"], "unknown dataset 'coar'.*did you mean 'cora'"),
    (["--dataset", ""], "unknown dataset ''"),
    (["--split", "-1"], "--split -1: expected a whole number, 0 or more"),
    (
        ["--labels-per-class", "0"],
        "--labels-per-class 0: expected a whole number, 1 or more",
    ),
    (["--labels-per-class", "900"], "--labels-per-class 900: class '0' has only 5"),
    (["--dataset", "karate", "--directed"], "--directed: dataset karate has no"),
    (["--features", "smell"], "--features 'smell' is unknown"),
    (["--data-option", "n=5"], "unknown option 'n' of dataset digits"),
    (["--data-option", "split=5"], "unknown option 'split' of"),
    (["--dataset", "sbm", "--data-option", "n"], "--data-option n: expected key=value"),
    (
        ["--dataset", "sbm", "--data-option", "n=-3"],
        "sbm option n must be at least 1; got -3",
    ),
    (["--data-dir", "nowhere", "--dataset", "cora"], "nowhere"),
    # Tables
    (["--nodes", "nodes.csv"], "--nodes requires --edges"),
    (["--edges", "nodes.csv"], "--edges requires --nodes"),
    (["--label-column", "x"], "--label-column requires --nodes and --edges"),
    (["--val-fraction", "0.5"], "--val-fraction requires --nodes and --edges"),
    (["--dataset", "digits", *OWN], "give --dataset, or --nodes and --edges, not both"),
    ([*OWN, "--split", "3"], "--split requires --dataset"),
    ([*OWN, "--labels-per-class", "1"], "--labels-per-class requires --dataset"),
    ([*OWN, "--data-option", "n=5"], "--data-option requires --dataset"),
    (["--nodes", "no.csv", "--edges", "nodes-edges.csv"], "file not found: no.csv"),
    (["--nodes", "nodes.csv", "--edges", "."], r"\.: "),
    (
        ["--nodes", "two\nlines.csv", "--edges", "x.csv"],
        "file not found: two lines.csv",
    ),
    ([*OWN, "--id-column", "key"], r"nodes\.csv: no column 'key' \(--id-column\)"),
    ([*OWN, "--label-column", "class"], r"no column 'class' \(--label-column\)"),
    ([*OWN, "--split-column", "part"], r"no column 'part' \(--split-column\)"),
    ([*OWN, "--source-column", "a"], r"nodes-edges\.csv: no column 'a' \(--source-c"),
    ([*OWN, "--weight-column", "w"], r"nodes-edges\.csv: no column 'w' \(--weight-c"),
    (
        [*OWN, "--val-fraction", "1.5"],
        r"nodes\.csv: --val-fraction 1\.5: expected a number in",
    ),
    # Methods and their options
    (["--method", "gnc"], "unknown method 'gnc'; did you mean .*'gcn'"),
    (["--method", "elu-graph"], "elu-graph is not a classifier; use `elugcn graph`"),
    (["--set", "epochs"], "--set epochs: expected key=value"),
    (["--set", "epochs=[1"], "--set .*not valid YAML"),
    (["--set", "eta=!!python/object/apply:os.system [ls]"], "--set .*not valid YAML"),
    (["--set", "epoch=1"], "unknown option 'epoch' of method auto; did you mean 'epo"),
    (["--method", "lpa", "--set", "epochs=5"], "unknown option 'epochs' of method lpa"),
    (["--set", "epochs=many"], "epochs must be a whole number; got 'many'"),
    (["--set", "epochs=0"], "epochs must be at least 1; got 0"),
    (["--set", "lr=fast"], "lr must be a number; got 'fast'"),
    (["--set", "lr=nan"], "lr must be a number; got 'nan'"),
    (["--set", "dropout=1"], "dropout must be below 1"),
    (["--set", "norm=loud"], "norm must be 'none'.*got 'loud'"),
    (["--set", "self_loops=3"], "self_loops must be true or false"),
    (["--graph-mode", "dense"], "--graph-mode must be 'implicit'.*got 'dense'"),
    (["--method", "gcn", "--graph-mode", "topk"], "unknown option 'graph_mode' of m"),
    (["--set", "hidden_channels=1000000000"], "GB of memory; this computer has"),
    (["--device", "abacus"], "--device must be auto, cpu or cuda; got 'abacus'"),
    (["--method", "gcn", "--set", "lr=1e30"], "gcn: the training diverged.*smaller lr"),
    (["--config", "no.yaml"], "no.yaml: file not found"),
    # Where it is written
    (["--out", "nodes.csv"], "nodes.csv: is a file; expected a new directory"),
    (["--out", "nodes.csv/run"], "nodes.csv/run: .*nodes.csv can't be written to"),
    (["--out", "full"], "full: exists and is not empty; choose another"),
    (["--out", "x" * 300], "x+: File name too long"),
]


@pytest.mark.parametrize(
    ("arguments", "says"), TRAIN, ids=[f"{i}" for i in range(len(TRAIN))]
)
def test_train(
    arguments: list[str],
    says: str,
    folder: Path,  # noqa: F811
    tables: Tables,  # noqa: F811
    refused: Refused,
) -> None:
    tables.write()
    (folder / "full").mkdir()
    (folder / "full/x").write_text("x")
    out = [] if "--out" in arguments else ["--out", "run"]
    refused("train", *arguments, *out, says=says)


def cell(row: int, column: str, value: str) -> Callable[[Tables], None]:
    return lambda t: t.set(column, lambda i: value if i == row else None)


SPOILT: dict[str, tuple[Callable[[Tables], Any], str]] = {
    "edge": (
        lambda t: t.edge_rows.append(["n 0", "nobody"]),
        r"nodes-edges\.csv, line 123.*'nobody'",
    ),
    "id": (cell(7, "id", "n 3"), r"nodes\.csv, lines 5 and 9, column 'id': duplicate"),
    "number": (cell(4, "size", "inf"), r"nodes\.csv, line 6, column 'size': inf"),
    "no label": (
        lambda t: t.set("label", lambda i: ""),
        r"nodes\.csv: no node has a label",
    ),
    "one class": (lambda t: t.set("label", lambda i: "red"), "one class, 'red'"),
    "split": (
        lambda t: t.set("split", lambda i: "trian"),
        r"nodes\.csv, line 2, column 'split': 'trian' is not",
    ),
    "features": (
        lambda t: t.keep("id", "label"),
        'no feature column.*--features "identity"',
    ),
}


@pytest.mark.parametrize("what", SPOILT)
def test_tables(what: str, tables: Tables, refused: Refused) -> None:  # noqa: F811
    spoil, says = SPOILT[what]
    spoil(tables)
    refused("train", *tables.write(), "--out", "run", says=says)


FILES: list[tuple[str, str]] = [
    ("epohcs: 5", r"unknown option 'epohcs' of c\.yaml; did you mean 'epochs'"),
    ("- 1", r"c\.yaml: expected 'key: value' lines"),
    ("\nlr: [", r"c\.yaml, line 2: not valid YAML"),
    ("lr: 0.1\nlr: 0.2", r"c\.yaml, line 2: not valid YAML \(duplicate key 'lr'\)"),
    ("schema: 3\nlr: 0.1", r"c\.yaml: expected schema 2"),
    ("options: 3", r"c\.yaml: options must hold 'key: value' lines"),
    ("options: {}\nsede: 1", r"unknown option 'sede' of c\.yaml; did you mean 'seed'"),
    (
        "options: {}\nseed: many",
        r"c\.yaml: the seed is 'many'; expected a whole number",
    ),
    ("options: {}\nseed: -5", r"c\.yaml: the seed is -5; expected a whole number from"),
    ("options: {}\nmethod: magic", "unknown method 'magic'"),
    ("method: gcn\noptions: {lr: 0.1}", r"c\.yaml is for method 'gcn', not for 'mlp'"),
    (
        "options: {}\ndataset: karate\ngraph: {dataset: digits}",
        r"c\.yaml: dataset is 'karate' at the top but 'digits' under graph",
    ),
    (
        "options: {}\ngraph: {datasett: x}",
        r"unknown option 'datasett' of graph in c\.yaml; did you mean 'dataset'",
    ),
    (
        "options: {}\ngraph: {dataset: 3}",
        r"c\.yaml: graph\.dataset must be text; got 3",
    ),
    (
        "options: {}\ngraph: {dataset: sbm, data_option: [1]}",
        r"c\.yaml: graph\.data_option\.0 must be text; got 1",
    ),
    ("\xff", r"c\.yaml: can't be read"),
]


@pytest.mark.parametrize(
    ("text", "says"), FILES, ids=[f"{i}" for i in range(len(FILES))]
)
def test_config_files(
    text: str,
    says: str,
    folder: Path,  # noqa: F811
    refused: Refused,
) -> None:
    (folder / "c.yaml").write_bytes(text.encode("latin-1"))
    method = ["--method", "mlp"] if "method: gcn" in text else []
    refused("train", "--config", "c.yaml", *method, "--out", "run", says=says)


OTHERS: list[tuple[str, str]] = [
    ("trian", "No such command 'trian'"),
    ("explain", "Missing argument 'NODE'"),
    ("explain 500 --dataset karate", "node '500' must be a number from 0 to 33"),
    ("explain 1 --shown 0", "'--shown'.*greater than or equal to 1"),
    ("explain 1 --run nowhere", "nowhere"),
    ("diagnose --suggest 0", "'--suggest'.*greater than or equal to 1"),
    ("diagnose --run RUNS/gcn", "method gcn has no label utilization; use a run of"),
    ("diagnose --run RUNS/sbm --dataset karate", "--dataset does not go with --run"),
    ("predict", "Missing argument 'RUN'"),
    ("predict nowhere", "nowhere"),
    ("predict nodes.csv", "nodes.csv"),
    ("predict RUNS/sbm --json", "--json requires --out FILE"),
    ("predict RUNS/sbm --nodes nodes.csv", "--nodes requires --edges"),
    ("predict RUNS/sbm --directed", "--directed requires another graph"),
    ("predict RUNS/sbm --split 3", "--split requires another graph"),
    ("predict RUNS/sbm --dataset karate", "fitted with 64 features; got 34"),
    ("predict RUNS/lpa --dataset karate", "lpa.*can't predict for another graph"),
    ("predict RUNS/sbm OWN", "trained on a dataset, not on tables"),
    (
        "predict RUNS/tables OWN --out nodes.csv",
        "--out nodes.csv: would replace an input",
    ),
    ("predict RUNS/sbm --out full", "full: is a directory; expected a file"),
    ("predict RUNS/sbm --out p.parquet", "predictions are CSV; use the suffix .csv"),
    ("predict RUNS/sbm --out no/p.csv", "no is not a writable directory"),
    ("report nowhere", "nowhere"),
    ("report RUNS/sbm --out full", "full: is a directory; expected a file"),
    ("graph", "Missing option '--out'"),
    ("graph --out g.txt", r"g.txt: expected one of \.safetensors, \.csv"),
    ("graph --out g.csv", "choose --graph-mode 'topk'"),
    ("graph --out g.safetensors --topk 3", "edges go to .csv, .parquet or .npz"),
    ("graph --out no/g.safetensors", "no is not a writable directory"),
    ("graph --out g.csv --topk 0", "'--topk'.*greater than or equal to 1"),
    (
        "graph --out g.npz --topk 3 --graph-mode paper",
        "--topk contradicts --graph-mode",
    ),
    ("graph OWN --topk 3 --out nodes-edges.csv", "would replace an input"),
    ("graph --dataset karate --out full", "full: is a directory; expected a file"),
    ("compare --methods nope", "unknown method 'nope'"),
    ("compare --methods ,", "--methods ',': expected names separated by commas"),
    ("compare --datasets koala", "unknown dataset 'koala'"),
    ("compare --seeds 0", "'--seeds'.*greater than or equal to 1"),
    ("compare --jobs 0", "'--jobs'.*greater than or equal to 1"),
    ("compare --threads 0", "'--threads'.*greater than or equal to 1"),
    ("compare --device abacus", "--device must be auto, cpu or cuda"),
    ("compare --set epochs=3", "--set epochs: expected METHOD.KEY=VALUE"),
    ("compare --set gcn.epochs", "--set gcn.epochs: expected key=value"),
    ("compare --set gcn.epoch=3", "unknown option 'epoch' of method gcn"),
    ("compare --set gcn.epochs=0", "epochs must be at least 1"),
    ("compare --data-option sbm.n=100", "sbm"),
    ("compare --labels-per-class 0", "--labels-per-class"),
    ("compare --format html", "--format html: expected one of terminal, markdown"),
    ("compare --out no/t.md", "no is not a writable directory"),
    ("compare --data-dir nowhere --datasets cora", "nowhere"),
    ("compare --store nodes.csv", "nodes.csv"),
    ("tune --methods nope", "unknown method 'nope'"),
    ("tune --trials 0", "'--trials'.*greater than or equal to 1"),
    ("tune --datasets koala", "unknown dataset 'koala'"),
    ("tune --out nodes.csv", "nodes.csv"),
]


@pytest.mark.parametrize("line", [line for line, _ in OTHERS])
def test_other_commands(
    line: str,
    folder: Path,  # noqa: F811
    tables: Tables,  # noqa: F811
    runs: Path,  # noqa: F811
    refused: Refused,
) -> None:
    tables.write()
    (folder / "full").mkdir()
    says = dict(OTHERS)[line]
    words = line.replace("RUNS", str(runs)).replace("OWN", " ".join(OWN)).split()
    refused(*words, says=says)


@pytest.mark.parametrize("command", ["predict", "report"])
def test_nothing_of_a_run_is_written_over(
    command: str,
    elugcn: Command,  # noqa: F811
    refused: Refused,
    tables: Tables,  # noqa: F811
) -> None:
    own = ["train", *tables.write(), *QUICK, "--no-report", "--out", "run"]
    assert elugcn(*own).code == 0
    for path, says in (
        ("run/model.safetensors", "would replace an input"),
        ("run/metrics.json", "would replace an input"),
        ("nodes.csv", "would replace an input"),
        ("nodes-edges.csv", "would replace an input"),
    ):
        refused(command, "run", "--out", path, says=says)
    mine = {"predict": "predictions.csv", "report": "report.html"}[command]
    assert elugcn(command, "run", "--out", f"run/{mine}").code == 0


def test_a_damaged_model(runs: Path, folder: Path, refused: Refused) -> None:  # noqa: F811
    run = Path(shutil.copytree(runs / "sbm", folder / "run"))
    text = (run / "model.json").read_text()
    (run / "model.json").write_text(json.dumps(json.loads(text) | {"classes": {}}))
    refused("predict", "run", says="run/model.json: ")
    (run / "model.json").write_text(text)
    tensors = run / "model.safetensors"
    tensors.write_bytes(tensors.read_bytes()[:-50])
    refused("predict", "run", says="run/model.safetensors: ")


@pytest.mark.parametrize("damage", ["truncated", "missing"])
def test_damaged_data_files(
    damage: str,
    folder: Path,  # noqa: F811
    data_dir: Path,
    refused: Refused,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cache = folder.parent / f"{folder.name}-cache"
    monkeypatch.setenv("ELUGCN_CACHE", str(cache))
    monkeypatch.delenv("ELUGCN_DATA", raising=False)
    for name in ("https_proxy", "http_proxy"):  # nothing may be fetched
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for path in data_dir.rglob("ind.cora.*"):
        shutil.copyfile(path, folder / path.name)
    graph = folder / "ind.cora.graph"
    if damage == "truncated":
        graph.write_bytes(graph.read_bytes()[:5000])
    else:
        graph.unlink()
    arguments = ["train", "--dataset", "cora", "--data-dir", folder, "--out", "run"]
    refused(*arguments, says=r"ind\.cora\.graph")


def test_memory_that_is_not_there(
    refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Little:
        total, available = 2**40, 2**23

    monkeypatch.setattr(psutil, "virtual_memory", Little)
    sbm = [*SBM, "--graph-mode", "paper", "--out"]
    says = "'paper' would need about .* GB"
    refused("train", *sbm, "run", says=says)
    refused("graph", *sbm, "g.npz", says=says)


def test_an_optional_package_that_is_missing(
    refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    says = r"optuna is not installed; it comes with: pip install 'elugcn\[tune\]'"
    refused("tune", says=says)
