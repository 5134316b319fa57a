"""`elugcn explain`, and what `elugcn diagnose` says beyond its first tables."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from elugcn.cli.diagnose import show
from tests.cli.conftest import LABELS, Command, Tables

SBM = ["--dataset", "sbm", "--data-option", "n=120", "--data-option", "n_classes=3"]
QUICK = ["--set", "epochs=5"]
STRANGE = ("[bold]", "[/red] x", "a,b", "ünï", "-7")


def strange(tables: Tables) -> list[str]:
    """Ids with markup, a comma, letters of all kinds and a minus."""
    names = {f"n {i + 3}": new for i, new in enumerate(STRANGE)}
    for row in (*tables.rows, *tables.edge_rows):
        row[:] = [names.get(cell, cell) for cell in row]
    return tables.write()


@pytest.mark.parametrize("node", STRANGE)
def test_strange_ids(node: str, elugcn: Command, tables: Tables) -> None:
    options = strange(tables)
    # A value that looks like an option goes behind two dashes, as everywhere.
    arguments = ["explain", *options, *QUICK]
    done = elugcn(*arguments, "--", node)
    assert (done.code, done.errors) == (0, [])
    assert done.out.startswith(f"Node {node} of nodes: ")
    assert "\x1b" not in done.out
    assert "neighbour on the ELU graph" in done.out
    said = elugcn(*arguments, "--json", "--", node).json
    assert (said["node"], said["dataset"], said["seed"]) == (node, "nodes", 0)
    assert said["index"] == 3 + STRANGE.index(node)


def test_every_part_is_shown(elugcn: Command, tables: Tables) -> None:
    options = strange(tables)
    said = elugcn("explain", "a,b", *options, *QUICK, "--shown", "3", "--json").json
    shown = elugcn("explain", "a,b", *options, *QUICK, "--shown", "3").out
    assert said["degree"] == said["before"]["n_neighbours"] == 4
    assert len(said["before"]["neighbours"]) == len(said["labels"]) == 3
    assert f"and {said['n_labels'] - 3} more" in shown
    assert "and 1 more" in shown
    for row in (*said["labels"], *said["before"]["neighbours"]):
        assert row["node"] in shown
    for name in LABELS:
        assert name in shown
    assert f"the GCN says {said['gcn']} ({100 * said['gcn_confidence']:.1f} %)" in shown
    assert f"the nearest label is {said['distance']} edge" in shown


def test_a_node_alone(elugcn: Command, tables: Tables) -> None:
    tables.edge_rows = [r for r in tables.edge_rows if "n 0" not in r]
    options = tables.write()
    done = elugcn("explain", "n 0", *options, *QUICK)
    assert done.out.startswith("Node n 0 of nodes: no label reaches it\n")
    assert "its class is not known; 0 neighbours; no path leads to a label" in done.out
    assert "labels say nothing; the GCN says" in done.out
    assert "label that reaches it" not in done.out
    assert elugcn("explain", "n 0", *options, *QUICK, "--quiet").out == ""


def test_labels_that_are_equally_strong(elugcn: Command, folder: Path) -> None:
    (folder / "n.csv").write_text("id,f,label\na,1,left\nb,2,\nc,3,right\n")
    (folder / "e.csv").write_text("source,target\na,b\nb,c\n")
    tables = ["--nodes", "n.csv", "--edges", "e.csv"]
    done = elugcn("explain", "b", *tables, *QUICK)
    assert "the labels say left as much as right and count for left; the" in done.out
    assert "the labels say left; the" in elugcn("explain", "a", *tables, *QUICK).out


def test_nodes_that_are_not_there(
    refused: Command, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = strange(tables)
    # Before anything is trained.
    monkeypatch.setattr("elugcn.cli.explain.fit_loaded", pytest.fail)
    says = r"NODE '\[bolt\]' is not among the 60 nodes; did you mean '\[bold\]'\?"
    refused("explain", "[bolt]", *options, *QUICK, says=says)
    refused("explain", "120", *SBM, says="NODE '120': expected .* 0 to 119")
    refused("explain", *SBM, says="Missing argument 'NODE'")
    refused("explain", "1", *SBM, "--shown", "0", says="--shown")
    refused("diagnose", *SBM, "--suggest", "0", says="--suggest")


def test_a_process_prints_json_alone(process: Command, tables: Tables) -> None:
    done = process("explain", "[bold]", *strange(tables), *QUICK, "--json")
    assert done.json["node"] == "[bold]"


def test_suggestions(elugcn: Command, tables: Tables) -> None:
    options = strange(tables)
    said = elugcn("diagnose", *options, *QUICK, "--suggest", "7", "--json").json
    chosen = said["suggestions"]
    assert len({s["node"] for s in chosen}) == 7
    unlabelled = {r[0] for r in tables.rows if r[tables.column("label")] == ""}
    assert {s["node"] for s in chosen} <= unlabelled
    assert chosen[0]["gain"] > chosen[-1]["gain"] >= 0
    shown = elugcn("diagnose", *options, *QUICK, "--suggest", "7").out
    assert "The next nodes to label" in shown
    for one in chosen:
        assert one["node"] in shown
        assert one["reason"] in shown
    assert "suggestions" not in elugcn("diagnose", *options, *QUICK, "--json").json
    # More than there are: all of them.
    many = elugcn("diagnose", *options, *QUICK, "--suggest", "99", "--json").json
    assert {s["node"] for s in many["suggestions"]} == unlabelled


def test_the_whole_diagnosis(elugcn: Command, folder: Path) -> None:
    said = elugcn("diagnose", *SBM, *QUICK, "--json").json
    assert list(said) == [
        "dataset", "seed", "overall", "classes", "confusion", "degrees", "distances",
        "graphs", "findings", "notes",
    ]  # fmt: skip
    for key in ("degrees", "distances"):
        assert sum(row["nodes"] for row in said[key]) == 120
    counts = said["confusion"]["counts"]
    assert sum(map(sum, counts)) + sum(said["confusion"]["unreachable"]) == 120
    assert said["distances"][0]["nodes"] == 6
    assert 0 < said["graphs"]["original"]["homophily"] < 1
    assert 0 < said["graphs"]["elu"]["homophily"] < 1
    shown = elugcn("diagnose", *SBM, *QUICK).out
    for sentence in said["findings"]:
        assert f"• {sentence}" in shown
    for title in ("class by GCN", "neighbours", "edges to a label", "GCN \\ LPA"):
        assert title in shown
    assert list(folder.iterdir()) == []


def test_findings_have_the_names_of_the_classes(
    elugcn: Command, tables: Tables
) -> None:
    # One class loses all its labels but one, so that something is to be said of it.
    lost = [r for r in tables.rows if r[tables.column("label")] == LABELS[0]]
    for row in lost[3:]:
        row[tables.column("label")] = ""
    done = elugcn("diagnose", *tables.write(), *QUICK, "--json")
    assert json.loads(done.out)["findings"][0].startswith("Labels and GCN agree on ")
    shown = elugcn("diagnose", *tables.write(), *QUICK).out
    assert LABELS[0] in shown


def test_a_narrow_terminal(elugcn: Command, tables: Tables) -> None:
    """Lines fit, a number keeps its %, and long names are cut, not numbers."""
    said = elugcn("diagnose", *tables.write(), *QUICK, "--suggest", "2", "--json").json
    long = "a class with a name that no terminal has room for, not even half of it"
    said["confusion"]["classes"] = [long] * 3
    for row in said["classes"]:
        row["name"] = row["pulled_to"] = long
        row["pulled_share"] = 0.5
    said["findings"] = ["Words " * 12 + "agree on 88 % of the nodes."]
    screen = Console(
        width=80, force_terminal=True, color_system=None, file=io.StringIO()
    )
    show(said, screen)
    lines = screen.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert max(map(len, lines)) <= 80
    assert any("88\xa0%" in line for line in lines)
    assert sum("50.0 %" in line for line in lines) == 3
    table = next(i for i, line in enumerate(lines) if line.startswith("GCN \\ LPA"))
    for i, counts in enumerate(said["confusion"]["counts"]):
        words = lines[table + 1 + i].split()
        assert words[-4:] == [*map(str, counts), "0"]
