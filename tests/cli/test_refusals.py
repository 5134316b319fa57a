"""What the command line refuses: exit code 2, one line, nothing written."""

import shutil
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from elugcn.data.registry import dataset_info
from tests.cli.conftest import Command, Tables

Spoil = Callable[[Tables], None]
TABLES = ("--nodes", "nodes.csv", "--edges", "nodes-edges.csv")


def cell(row: int, column: str, value: str) -> Spoil:
    def spoil(tables: Tables) -> None:
        tables.rows[row][tables.column(column)] = value

    return spoil


def no_column(name: str) -> Spoil:
    def spoil(tables: Tables) -> None:
        at = tables.column(name)
        tables.header.pop(at)
        for row in tables.rows:
            row.pop(at)

    return spoil


def edge(*cells: str) -> Spoil:
    return lambda tables: tables.edge_rows.append(list(cells))


def weights(value: str) -> Spoil:
    def spoil(tables: Tables) -> None:
        tables.edge_header.append("weight")
        for row in tables.edge_rows:
            row.append("1")
        tables.edge_rows[4][2] = value

    return spoil


def labels(choose: Callable[[int], str]) -> Spoil:
    def spoil(tables: Tables) -> None:
        for i, row in enumerate(tables.rows):
            row[tables.column("label")] = choose(i)

    return spoil


def splits(choose: Callable[[int], str]) -> Spoil:
    def spoil(tables: Tables) -> None:
        tables.header.append("split")
        for i, row in enumerate(tables.rows):
            row.append(choose(i))

    return spoil


def features_gone(tables: Tables) -> None:
    for name in ("size", "colour", "weight_kg"):
        no_column(name)(tables)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (no_column("id"), r"nodes\.csv.*'id'"),
        (no_column("label"), r"nodes\.csv.*'label'"),
        (edge("n 0", "nobody"), r"nodes-edges\.csv.*line 123.*'nobody'"),
        (cell(7, "id", "n 3"), r"nodes\.csv.*lines? 5 and 9.*'n 3' is there twice"),
        (cell(7, "id", ""), r"nodes\.csv.*line 9.*id is missing"),
        (cell(4, "size", "nan"), r"nodes\.csv.*line 6.*'size'"),
        (cell(4, "size", "inf"), r"nodes\.csv.*line 6.*'size'"),
        (cell(4, "size", ""), r"nodes\.csv.*line 6.*'size'"),
        (weights("nan"), r"nodes-edges\.csv.*line 6.*weight"),
        (weights("inf"), r"nodes-edges\.csv.*line 6.*weight"),
        (weights("-1"), r"nodes-edges\.csv.*line 6.*weight.*-1"),
        (labels(lambda i: ""), r"'label' holds no label at all"),
        (labels(lambda i: "red"), r"nodes\.csv.*'label' has only one class, 'red'"),
        (labels(lambda i: str(i / 8)), r"'label'.*decimal"),
        (splits(lambda i: "test" if i % 2 else ""), r"'split' names no training node"),
        (splits(lambda i: "train" if i < 2 else ""), r"line 2.*training node without"),
        (splits(lambda i: "trian"), r"line 2.*'trian' is no split"),
        (features_gone, r'no feature column.*features="identity"'),
    ],
)  # fmt: skip
def test_spoilt_tables(
    spoil: Spoil, says: str, tables: Tables, refused: Command
) -> None:
    spoil(tables)
    refused("train", *tables.write(), "--out", "run", says=says)


def test_labels_on_test_nodes_only(tables: Tables, refused: Command) -> None:
    """A split without training nodes, though there are labels."""
    splits(lambda i: "test" if i % 2 else "val")(tables)
    refused("train", *tables.write(), "--out", "run", says="names no training node")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--nodes", "nodes.csv"], "--edges is missing"),
        (["--edges", "nodes.csv"], "--nodes is missing"),
        (["--nodes", "no.csv", "--edges", "nodes-edges.csv"], "no.csv"),
        (["--nodes", "nodes.csv", "--edges", "."], "expected"),
        (["--nodes", "two\nlines.csv", "--edges", "nodes-edges.csv"], "two lines.csv"),
        (["--dataset", "digits", "--nodes", "nodes.csv"], "not both"),
        (["--dataset", "coar"], "unknown dataset 'coar'.*did you mean 'cora'"),
        (["--method", "gnc"], "unknown method 'gnc'; there are elu-gcn, elu-gcn-paper"),
        (["--method", "elu-graph"], "elu-graph is no classifier"),
        (["--set", "nope=1"], "unknown option 'nope' of method elu-gcn"),
        (["--set", "epoch=1"], "unknown option 'epoch'.*did you mean 'epochs'"),
        (["--set", "epochs"], "--set epochs: expected key=value"),
        (["--set", "epochs=[1"], "--set .*not valid YAML"),
        (["--set", "eta=2001-99-99"], "--set .*not valid YAML"),
        (["--set", "eta=!!int foo"], "--set .*not valid YAML"),
        (["--set", "eta=" + 2000 * "["], "--set .*not valid YAML"),
        (["--set", "eta=!!timestamp foo"], "--set .*not valid YAML"),
        (["--set", "eta=!!bool foo"], "--set .*not valid YAML"),
        (["--set", "eta=!!map [1, 2]"], "--set .*not valid YAML"),
        (["--set", "eta=!!python/object/apply:os.system [ls]"], "not valid YAML"),
        (["--label-column", "x"], "--label-column goes with --nodes and --edges"),
        (["--val-fraction", "0.5"], "--val-fraction goes with --nodes and --edges"),
        ([*TABLES, "--split", "3"], "--split goes with a --dataset"),
        ([*TABLES, "--labels-per-class", "1"], "--labels-per-class goes with a --data"),
        ([*TABLES, "--data-option", "n=5"], "--data-option goes with a --dataset"),
        (["--method", "gcn", "--set", "lr=1e30"], "gcn: training diverged.*smaller lr"),
        (["--set", "lr=1e30"], "diverged: try a smaller lr"),
        (["--set", "epochs=many"], "epochs must be a whole number; got 'many'"),
        (["--set", "epochs=0"], "epochs must be at least 1"),
        (["--set", "lr=fast"], "lr must be a number; got 'fast'"),
        (["--set", "lr=nan"], "lr must be a number"),
        (["--set", "lr=-1"], "lr must be positive"),
        (["--set", "dropout=1"], "dropout must be"),
        (["--set", "hidden_channels=0"], "hidden_channels must be"),
        (["--set", "hidden_channels=1000000000"], "GB of memory and this machine"),
        (["--set", "norm=loud"], "norm must be one of none, layer, batch"),
        (["--set", "decay=some"], "decay must be one of"),
        (["--set", "select=luck"], "select must be one of"),
        (["--set", "self_loops=3"], "self_loops must be true or false"),
        (["--set", "feature_norm=l7"], "feature_norm must be one of"),
        (["--set", "eta=1.5"], "eta must be between 0 and 1"),
        (["--method", "lpa", "--set", "lpa_steps=0"], "lpa_steps must be"),
        (["--method", "lpa", "--set", "lpa_alpha=2"], "lpa_alpha must be between"),
        (
            ["--method", "lpa", "--set", "epochs=5"],
            "unknown option 'epochs' of method lpa",
        ),
        (["--graph-mode", "dense"], "graph_mode must be one of"),
        (["--method", "gcn", "--graph-mode", "topk"], "unknown option 'graph_mode'"),
        (["--seed", "-1"], "--seed"),
        (["--seed", "x"], "--seed"),
        (["--split", "-1"], "split must be a whole number"),
        (["--threads", "0"], "--threads"),
        (["--threads", "99999999999"], "--threads"),
        (["--dataset", ""], "unknown dataset"),
        (["--labels-per-class", "0"], "labels_per_class"),
        (["--device", "abacus"], "device must be auto, cpu or cuda"),
        (["--device", "meta"], "device must be auto, cpu or cuda"),
        (["--features", "smell"], "features is 'smell'"),
        (["--data-option", "n=5"], "unknown option 'n' for dataset digits"),
        (["--data-option", "split=5"], "unknown option 'split' for dataset digits"),
        (["--dataset", "sbm", "--data-option", "n"], "--data-option n: expected key"),
        (["--dataset", "sbm", "--data-option", "n=ten"], "option n must be a whole"),
        (["--config", "no.yaml"], "no.yaml: no such file"),
        (["--nope"], "No such option.*--nope"),
        (["left over"], "unexpected extra argument"),
    ],
)
def test_wrong_options(
    arguments: list[str], says: str, tables: Tables, refused: Command
) -> None:
    tables.write()
    refused("train", *arguments, "--out", "run", says=says)


def test_an_unknown_command(refused: Command) -> None:
    refused("trian", says="No such command 'trian'")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("epohcs: 5", r"unknown option 'epohcs' in .*c\.yaml; did you mean 'epochs'"),
        ("- 1", "expected 'key: value' lines"),
        ("\nlr: [", "c.yaml, line 2: not valid YAML"),
        ("lr: fast", "lr must be a number"),
        ("schema: 2\nlr: 0.1", "expected schema 1"),
        ("options: 3", "options must hold"),
        ("options: {}\nsede: 1", "unknown option 'sede' in"),
        ("options: {}\nseed: many", "seed must be a whole number"),
        ("options: {}\nseed: -5", "seed must be a whole number from 0 to .*got -5"),
        ("options: {}\nseed: 99999999999999999999", "seed must be a whole number"),
        ("lr: 0.1\nlr: 0.2", "c.yaml, line 2: not valid YAML .key 'lr' is there twice"),
        ("lr: 2001-99-99", "c.yaml: not valid YAML"),
        (
            "options: {}\ngraph: {dataset: sbm, data_option: [1]}",
            "data_option can't be",
        ),
        (
            "options: {}\ndataset: karate\ngraph: {dataset: digits}",
            "dataset is 'karate', and 'digits' in graph: change both",
        ),
        ("options: {}\nmethod: magic", "unknown method 'magic'"),
        ("options: {}\ngraph: {datasett: x}", "unknown key 'datasett' in graph"),
        ("options: {}\ngraph: {dataset: 3}", "graph dataset can't be 3"),
        ("variants: 3", "variants must be a list of mappings"),
        ("\xff", "c.yaml"),
    ],
)
def test_wrong_files(text: str, says: str, folder: Path, refused: Command) -> None:
    (folder / "c.yaml").write_bytes(text.encode("latin-1"))
    refused("train", "--config", "c.yaml", "--out", "run", says=says)


def test_a_file_for_another_method(folder: Path, refused: Command) -> None:
    (folder / "c.yaml").write_text("method: gcn\noptions: {lr: 0.1}")
    asked = ["--method", "mlp", "--out", "run"]
    refused("train", "--config", "c.yaml", *asked, says="say --method gcn")


def test_places_that_cannot_be_written(
    folder: Path, refused: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is refused late would have been trained for nothing.
    monkeypatch.setattr("elugcn.cli.train.fit_loaded", None)
    (folder / "file").write_text("x")
    (folder / "full").mkdir()
    (folder / "full/x").write_text("x")
    (folder / "link").symlink_to("nowhere")
    refused("train", "--out", "file/x", says="--out file/x: .*can't be written to")
    refused("train", "--out", "file", says="--out file: is a file")
    refused("train", "--out", "link", says="--out link: is a file")
    refused("train", "--out", "full", says="--out full: exists and is not empty")
    refused("train", "--out", "x" * 300, says="--out x+: File name too long")
    assert (folder / "file").read_text() == "x"
    (folder / "runs").write_text("x")
    refused("train", says="--out runs/digits.*can't be written to")


@pytest.mark.parametrize("damage", ["truncated", "tampered", "missing"])
def test_damaged_data_files(
    damage: str,
    folder: Path,
    data_dir: Path,
    refused: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cache = folder.parent / f"{folder.name}-cache"
    monkeypatch.setenv("ELUGCN_CACHE", str(cache))
    monkeypatch.delenv("ELUGCN_DATA", raising=False)
    for relative in dataset_info("cora").files:
        shutil.copyfile(data_dir / relative, folder / Path(relative).name)
    path = folder / "ind.cora.graph"
    content = path.read_bytes()
    if damage == "truncated":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "tampered":
        path.write_bytes(content[:500] + b"\x00" + content[501:])
    else:
        path.unlink()
        # Nothing may be fetched either.
        monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    arguments = ["train", "--dataset", "cora", "--data-dir", folder, "--out", "run"]
    refused(*arguments, says="ind.cora.graph")


def test_memory_that_is_not_there(
    refused: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Little:
        total, available = 2**40, 2**23

    monkeypatch.setattr(psutil, "virtual_memory", Little)
    trained = []
    monkeypatch.setattr("elugcn.methods.elu_gcn.fit_network", trained.append)
    sbm = ["--dataset", "sbm", "--graph-mode", "paper", "--out"]
    refused("train", *sbm, "run", says="graph mode 'paper' would need about .* GB")
    refused("graph", *sbm, "g.npz", says="graph mode 'paper' would need about .* GB")
    assert trained == []


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_other_encodings(encoding: str, tables: Tables, refused: Command) -> None:
    cell(9, "label", "Künstler")(tables)
    options = tables.write()
    text = tables.nodes.read_text(encoding="utf-8")
    tables.nodes.write_bytes(text.encode(encoding))
    says = {"latin-1": r"nodes\.csv, line 11: is not UTF-8", "utf-16": "is UTF-16"}
    refused("train", *options, "--out", "run", says=says[encoding])


def test_a_table_is_not_written_over(tables: Tables, refused: Command) -> None:
    options = tables.write()
    before = tables.edges.read_bytes()
    asked = ["--topk", "3", "--out", str(tables.edges)]
    refused("graph", *options, *asked, says="that is a table of this graph")
    assert tables.edges.read_bytes() == before


def test_where_a_graph_goes_is_checked_first(folder: Path, refused: Command) -> None:
    (folder / "g.safetensors").mkdir()
    says = "is a directory; expected a file"
    refused("graph", "--dataset", "no such", "--out", "g.safetensors", says=says)


@pytest.mark.parametrize("column", ["id", "colour", "label"])
@pytest.mark.parametrize("closed", [False, True])
def test_quotes_that_are_not_closed(
    column: str, closed: bool, tables: Tables, refused: Command
) -> None:
    """The rest of the file, or as much as up to the next one, would be one cell."""
    options = tables.write()
    lines = tables.nodes.read_text(encoding="utf-8").splitlines()
    for number in (29, 31) if closed else (29,):
        cells = lines[number - 1].split(",")
        cells[tables.column(column)] = f'"{cells[tables.column(column)]}'
        lines[number - 1] = ",".join(cells)
    tables.nodes.write_text("\n".join(lines) + "\n", encoding="utf-8")
    # Or the swallowed lines leave too many or too few cells.
    says = (
        rf"nodes\.csv, line 29(, column '{column}': .*is a quote not|: \d cells, exp)"
    )
    refused("train", *options, "--out", "run", says=says)


def test_a_line_break_alone_is_part_of_a_name(
    tables: Tables, elugcn: Command, folder: Path
) -> None:
    cell(5, "label", "two\nlines")(tables)
    cell(7, "label", "two\nlines")(tables)
    done = elugcn("train", *tables.write(), "--set", "epochs=2", "--out", "run")
    assert done.code == 0, done.err
