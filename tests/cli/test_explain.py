"""`elugcn explain`: one node, with the numbers of the library."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import LABELS, LEARN, SBM, Command, Tables

STRANGE = ("[bold]", "[/red] x", "a,b", "ünï", "-7")


def shown_of(elugcn: Command, *arguments: Any) -> tuple[str, dict[str, Any]]:
    """The same explanation for people and for programs."""
    words = list(map(str, arguments))
    at = words.index("--") if "--" in words else len(words)
    said = elugcn("explain", *words[:at], "--json", *words[at:])
    return elugcn("explain", *words).out, said.json


def test_everything_is_shown(elugcn: Command, runs: Path) -> None:
    shown, said = shown_of(elugcn, "n 0", "--run", runs / "tables", "--shown", "3")
    assert (said["node"], said["index"], said["dataset"]) == ("n 0", 0, "nodes")
    assert said["degree"] == said["before"]["n_neighbours"] == 5
    assert len(said["before"]["neighbours"]) == len(said["labels"]) == 3
    distance = said["distance"]
    about = "Its class is not known. It has 5 neighbours; the nearest label is"
    assert f"\n{about} {distance} edge{'s' * (distance > 1)} away.\n" in shown
    sure = f"{100 * said['gcn_confidence']:.1f}%"
    opinions = f"The labels say {said['lpa']}; the GCN says {said['gcn']} ({sure})."
    assert f"\n{opinions}\n" in shown
    assert f"and {said['n_labels'] - 3} more" in shown
    assert "and 2 more" in shown
    for side in ("before", "after"):
        for row in said[side]["neighbours"]:
            assert f"\n{row['node']} " in shown
    for row in said["labels"]:
        assert f"{100 * row['share']:.1f}%" in shown
    assert sum(row["share"] for row in said["influence"]) == pytest.approx(1)
    assert "neighbour on the ELU graph" in shown
    assert "\x1b" not in shown
    assert elugcn("explain", "5", "--run", runs / "sbm", "--quiet").out == ""


@pytest.mark.parametrize("node", STRANGE, ids=["markup", "end", "comma", "ü", "minus"])
def test_strange_ids(node: str, elugcn: Command, tables: Tables) -> None:
    tables.rename({f"n {i + 3}": new for i, new in enumerate(STRANGE)})
    # A value that looks like an option follows two dashes, as everywhere.
    shown, said = shown_of(elugcn, *tables.write(), *LEARN, "--", node)
    assert shown.startswith(f"Node {node} of nodes: ")
    assert said["index"] == 3 + STRANGE.index(node)


def test_a_training_node(elugcn: Command, runs: Path) -> None:
    rows = (runs / "tables/predictions.csv").read_text().splitlines()
    node = next(row.split(",")[0] for row in rows if row.endswith(",train"))
    shown, said = shown_of(elugcn, node, "--run", runs / "tables")
    assert said["distance"] == 0
    assert f"Its class is {LABELS[said['index'] % 3]}, a training label. It" in shown
    assert "away" not in shown.splitlines()[1]


def test_a_node_alone(elugcn: Command, tables: Tables) -> None:
    tables.edge_rows = [r for r in tables.edge_rows if "n 0" not in r]
    shown, _ = shown_of(elugcn, "n 0", *tables.write(), *LEARN)
    assert shown.startswith("Node n 0 of nodes: no label reaches it\n")
    assert "It has 0 neighbours; no path leads to a label." in shown
    assert "The labels say nothing; the GCN says" in shown
    assert "label that reaches it" not in shown
    assert re.search(r"neighbour on the original graph +share +class *\nnone\n", shown)


def test_labels_that_are_equally_strong(elugcn: Command, folder: Path) -> None:
    (folder / "n.csv").write_text("id,f,label\na,1,left\nb,2,\nc,3,right\n")
    (folder / "e.csv").write_text("source,target\na,b\nb,c\n")
    own = ["--nodes", "n.csv", "--edges", "e.csv", *LEARN]
    shown = elugcn("explain", "b", *own).out
    assert "The labels say left and right equally, which counts as left; the" in shown
    assert "The labels say left; the" in elugcn("explain", "a", *own).out


def test_a_wrong_node_is_found_before_training(
    elugcn: Command, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elugcn.cli.loading.fit", pytest.fail)
    tables.rename({"n 3": "[bold]"})
    for words, says in (
        (["[bolt]", *tables.write()], "did you mean '[bold]'?"),
        (["120", *SBM], "node '120' must be a number from 0 to 119"),
    ):
        done = elugcn("explain", *words)
        assert (done.code, done.out) == (2, "")
        assert says in done.err
