"""From a run to a page: what it says, what it leaves out, what it never lets through."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from elugcn.core.operators import LowRankGraph
from elugcn.core.utilization import definition_one
from elugcn.errors import InputError
from elugcn.fitting import Fitted, fit_graph
from elugcn.methods.base import Prediction
from elugcn.methods.elu_config import ELUGCNConfig, PaperConfig
from elugcn.methods.lpa import LPAConfig
from elugcn.methods.network_config import GCNConfig, MLPConfig
from elugcn.report.page import baselines as baselines_module
from elugcn.report.page import suggestions as suggestions_module
from elugcn.report.page.baselines import baselines
from elugcn.report.page.calibration import Bin, Reliability
from elugcn.report.page.charts import (
    HEIGHT,
    WIDTH,
    Frame,
    Line,
    block_chart,
    class_mark,
    history_lines,
    line_chart,
    reliability_chart,
)
from elugcn.report.page.content import Content, collect
from elugcn.report.page.heat import BlockMap
from elugcn.report.page.html import render, sections, write_page
from elugcn.report.page.scores import Score
from elugcn.report.page.verdict import percent, verdict
from tests.report.conftest import write_facts

EVIL = "<img src=x onerror=alert(1)>"
ATTACK = '</script><script>alert("1")</script>'


class Reader(HTMLParser):
    """Tags, attributes and text of a page, as a browser would find them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.raw: dict[str, list[str]] = {"style": [], "script": []}
        self.inside = ""
        self.feed(page)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.inside = tag
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside in self.raw:
            self.raw[self.inside].append(data)
        else:
            self.words.append(data)


def in_words(page: str) -> str:
    return Reader(page).text.replace("\u00a0", " ")


# --- the whole page --------------------------------------------------------------


def test_a_page_says_what_the_run_is(six: Fitted, folder: Path) -> None:
    six.prediction.graph = LowRankGraph(torch.rand(6, 2), torch.rand(6, 2))
    six.prediction.history = [
        {"epoch": i, "loss": 1 / (1 + i), "val_accuracy": 0.5, "val_loss": 1.0}
        for i in range(5)
    ]
    six.prediction.facts = {"best_epoch": 3, "chosen": "two views + gcn"}
    content = write_page(folder, six, folder / "report.html", ("one more note",))
    page = (folder / "report.html").read_text(encoding="utf-8")
    said = in_words(page)
    assert list(sections(content)) == [
        "accuracy", "labels", "graph", "map", "trust", "training", "suggestions",
        "nodes", "settings",
    ]  # fmt: skip
    for words in (
        "elu-gcn on six", "6 nodes · 5 edges · 2 classes · 2 labels to learn from",
        "a <note>", "one more note", "two views", "lr: 0.01", "torch 2.13", "cuda no",
        "GCN 50 %", "Of the member that weighs most, “two views”",
    ):  # fmt: skip
        assert words in said, words
    assert "commit" not in said
    assert "Dashed: the epoch that validation chose (3)" in said
    assert "GCN says" in said  # of the nodes to label, beside the model's own answers
    six.data.val_mask = torch.zeros(6, dtype=torch.bool)
    assert collect(folder, six).best_epoch is None  # nobody chose it
    anchors = {v for k, v in Reader(page).attributes if k == "id"}
    assert set(sections(content)) <= anchors


def test_nothing_of_the_page_comes_from_elsewhere(six: Fitted, folder: Path) -> None:
    page = render(collect(folder, six))
    found = Reader(page)
    policy = next(v for _, v in found.attributes if v.startswith("default-src"))
    (style,), (data, script) = found.raw["style"], found.raw["script"]
    for text, directive in ((style, "style-src"), (script, "script-src")):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert json.loads(data)["columns"]["id"] == ["0", "1", "2", "3", "4", "5"]
    for name, value in found.attributes:
        assert name not in ("src", "style", "srcset", "action"), (name, value)
        assert not name.startswith("on"), (name, value)
        assert name != "href" or value.startswith("#")
    assert "url(" not in style
    assert "innerHTML" not in script


def test_names_from_strangers_are_text(six: Fitted, tmp_path: Path) -> None:
    write_facts(tmp_path, dataset=EVIL, notes=[ATTACK])
    six.data.class_names = [EVIL, ATTACK]
    six.data.node_ids = [EVIL, ATTACK, "'\"", "\x00", "ok", "}}{{ 7*7 }}"]
    six.method = "gcn"
    six.prediction.facts = {"chosen": EVIL}
    six.prediction.history = [{"epoch": i, "loss": 1.0} for i in range(3)]
    six.prediction.graph = LowRankGraph(torch.rand(6, 2), torch.rand(6, 2))
    page = render(collect(tmp_path, six))
    found = Reader(page)
    assert "img" not in found.tags
    assert found.tags.count("script") == 2
    assert EVIL in found.text
    assert ATTACK in found.text
    columns = json.loads(found.raw["script"][0])["columns"]
    assert columns["id"] == six.data.node_ids
    assert "{{ 7*7 }}" in page


def test_other_methods_leave_out_what_they_do_not_have(
    six: Fitted, folder: Path
) -> None:
    six.prediction.utilization = None
    six.method, six.config = "gcn", GCNConfig(epochs=2)
    content = collect(folder, six)
    assert list(sections(content)) == [
        "accuracy", "labels", "map", "trust", "suggestions", "nodes", "settings",
    ]  # fmt: skip
    said = in_words(render(content))
    assert "Class by class" in said
    assert "unreachable" not in said
    assert "2 of 6 nodes had a label to learn from" in said
    assert [s.method for s in content.scores] == ["gcn", "mlp", "lpa"]


def test_without_its_graph_and_without_labels(six: Fitted, folder: Path) -> None:
    del six.data.edge_index, six.data.x
    six.prediction.graph = LowRankGraph(torch.rand(6, 2), torch.rand(6, 2))
    content = collect(folder, six)
    assert content.blocks is not None
    assert [m.name for m in content.blocks.maps] == ["ELU graph"]
    assert content.suggestions == []
    assert [s.method for s in content.scores] == ["elu-gcn", "gcn", "lpa"]
    six.data.test_mask = six.data.val_mask = torch.zeros(6, dtype=torch.bool)
    content = collect(folder, six)
    assert not {"accuracy", "trust"} & set(sections(content))
    first, _, last = verdict(content)
    assert "nothing here can say how accurate" in first
    assert "can't be told without labels" in last
    assert "None" not in in_words(render(content))


def test_a_hundred_thousand_nodes_are_a_usable_page(tmp_path: Path) -> None:
    n, c = 100_000, 8
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(c, (n,), generator=generator)
    logits = torch.randn(n, c, generator=generator) + 2 * torch.eye(c)[y]
    guess = (logits + torch.randn(n, c, generator=generator)).argmax(dim=1)
    part = torch.rand(n, generator=generator)
    edges = torch.randint(n, (2, 300_000), generator=generator)
    data = Data(
        y=y, train_mask=part < 0.1, val_mask=(part >= 0.1) & (part < 0.2),
        test_mask=part >= 0.2, edge_index=edges, directed=True,
        node_ids=[f"customer-{i:07d}" for i in range(n)],
    )  # fmt: skip
    data.num_nodes = n
    factors = torch.rand(n, c, generator=generator) - 0.3
    prediction = Prediction(
        logits, utilization=definition_one(guess, logits),
        graph=LowRankGraph(factors, factors),
        history=[{"epoch": i, "loss": 1.0 / (i + 1)} for i in range(2000)],
    )  # fmt: skip
    fitted = Fitted(
        "elu-gcn", ELUGCNConfig(), 0, data, prediction, np.arange(c), 1, "cpu"
    )
    write_facts(tmp_path)
    content = write_page(tmp_path, fitted, tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size < 3_000_000
    said = in_words((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "Drawn: 4,000 of 100,000 nodes, taken at random." in said
    assert "5,000 of 100,000 nodes are listed: NELU and unreachable ones first" in said
    assert (len(content.nodes.table), len(content.nodes.mapped)) == (5000, 4000)
    states = content.nodes.columns["utilization"]
    assert states is not None
    assert {states[i] for i in content.nodes.table} == {0}


@pytest.mark.parametrize(
    ("name", "text"),
    [("metrics.json", "[]"), ("metrics.json", "{"), ("environment.json", "3"),
     ("config.yaml", None)],
)  # fmt: skip
def test_broken_records_are_named(
    six: Fitted, folder: Path, name: str, text: str | None
) -> None:
    if text is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(text)
    with pytest.raises(InputError, match=name):
        write_page(folder, six, folder / "report.html")
    assert not (folder / "report.html").exists()


def test_odd_records_are_no_reason_to_fail(six: Fitted, tmp_path: Path) -> None:
    odd: dict[str, Any] = {"notes": 5, "n_edges": "many", "dataset": None}
    write_facts(tmp_path, baselines={"gcn": 3, "mlp": {"test_accuracy": "x"}}, **odd)
    content = collect(tmp_path, six)
    assert (content.notes, content.edges) == ([], 0)
    assert {s.method: s.accuracy for s in content.scores}["mlp"] is None
    write_facts(tmp_path, baselines=[1])
    assert {s.method for s in collect(tmp_path, six).scores} >= {"gcn", "lpa"}


def test_many_classes_with_long_names(six: Fitted, folder: Path) -> None:
    c = 45
    six.data.class_names = ["x" * 300, *(f"class {i}" for i in range(1, c))]
    six.prediction.logits = torch.cat(
        [six.prediction.logits, torch.full((6, c - 2), -9.0)], dim=1
    )
    content = collect(folder, six)
    assert content.class_names[0] == "x" * 199 + "…"
    assert (len(content.classes), content.more_classes) == (40, 5)
    assert "The 40 largest classes; 5 more are not shown." in in_words(render(content))


# --- the verdict -----------------------------------------------------------------


@pytest.fixture
def content(six: Fitted, folder: Path) -> Content:
    return collect(folder, six)


def test_accuracies_are_said_with_the_digits_they_deserve() -> None:
    assert percent(0.8512, 1000) == "85.1\u00a0%"
    assert percent(0.8512, 100) == "85\u00a0%"
    assert percent(0.001, 100) == "0.1\u00a0%"
    assert percent(0.998, 100) == "99.8\u00a0%"
    assert percent(0.00001, 100) == "<0.1\u00a0%"
    assert percent(0.99999, 1000) == ">99.9\u00a0%"
    assert percent(1.0, 100) == "100\u00a0%"
    assert percent(None) == "–"


@pytest.mark.parametrize(
    ("gcn", "clear", "says"),
    [
        (0.75, True, "is right on 85.0 % of 1,000 test nodes, 10.0 points more than a plain GCN (75.0 %)."),
        (0.95, True, "10.0 points less than a plain GCN (95.0 %)."),
        (0.8501, True, "test nodes, a hair less than a plain GCN (85.0 %)."),
        (0.86, False, "no clear difference to a plain GCN (86.0 %)."),
    ],
)  # fmt: skip
def test_the_first_sentence_compares(
    content: Content, gcn: float, clear: bool, says: str
) -> None:
    assert content.judged is not None
    judged = replace(content.judged, nodes=1000)
    scores = [Score("elu-gcn", 0.85, None), Score("gcn", gcn, None, clear)]
    said = verdict(replace(content, judged=judged, scores=scores))[0]
    assert says in said.replace("\u00a0", " ")
    more = [*scores, Score("mlp", 0.5, None), Score("lpa", 0.625, None)]
    said = verdict(replace(content, judged=judged, scores=more))[0]
    end = "; an MLP gets 50.0 % and label propagation gets 62.5 %."
    assert said.replace("\u00a0", " ").endswith(end)


def test_the_second_sentence_is_about_labels(content: Content) -> None:
    said = verdict(content)[1].replace("\u00a0", " ")
    assert said == (
        "The labels are put to use on 67 % of the nodes; on 17 % they are not (NELU); "
        "no label reaches 17 %."
    )
    told = [replace(row, judged=50, model=m, lpa=None)
            for row, m in zip(content.statuses, (0.9, 0.5, 0.1), strict=True)]  # fmt: skip
    said = verdict(replace(content, statuses=told))[1].replace("\u00a0", " ")
    assert "and there the model is right on 50 % instead of 90 %" in said
    rare = [*told[:2], replace(told[2], share=0.0001, nodes=4)]
    said = verdict(replace(content, statuses=rare))[1]
    assert said.endswith("; no label reaches 4 nodes.")
    weak = [replace(row, judged=20, right=r)
            for row, r in zip(content.classes, (0.9, 0.35), strict=True)]  # fmt: skip
    said = verdict(replace(content, statuses=[], classes=weak))[1]
    assert "weakest where it says “right”, right on 35\u00a0% of 20 nodes" in said


@pytest.mark.parametrize(
    ("nodes", "confidence", "accuracy", "error", "says"),
    [
        (900, 0.86, 0.85, 0.02, "Its probabilities mean what they say"),
        (900, 0.95, 0.70, 0.25, "Don't read its probabilities as chances: the model is too sure"),
        (900, 0.80, 0.85, 0.05, "grain of salt: the model is more often right than it claims"),
        (900, 0.85, 0.85, 0.08, "too sure in places and too modest in others"),
        (12, 0.95, 0.70, 0.25, "On so few nodes its probabilities can hardly be judged"),
    ],
)  # fmt: skip
def test_the_third_sentence_is_about_trust(
    content: Content, nodes: int, confidence: float, accuracy: float, error: float,
    says: str,
) -> None:  # fmt: skip
    found = Reliability((Bin(nodes, confidence, accuracy),), nodes, confidence,
                        accuracy, error)  # fmt: skip
    assert says in verdict(replace(content, reliability=found))[2]


# --- drawings --------------------------------------------------------------------


def shapes(svg: str, tag: str) -> list[dict[str, str]]:
    return [dict(e.attrib) for e in ElementTree.fromstring(svg).iter(tag)]


def test_values_become_places() -> None:
    frame = Frame((0.0, 10.0), (0.0, 1.0))
    assert frame.at(0.0, 0.0) == (46, HEIGHT - 38)
    assert frame.at(10.0, 1.0) == (WIDTH - 12, 10)
    assert frame.path([0, 10], [0, 1]) == f"M46 {HEIGHT - 38}L{WIDTH - 12} 10"


def test_a_history_is_thinned_out_and_drawn() -> None:
    history = [
        {"epoch": i, "loss": float(i), "val_loss": float("nan")} for i in range(900)
    ]
    (line,) = history_lines(
        history, {"loss": ("training", "s5"), "val_loss": ("v", "s0")}
    )
    assert (len(line.x), line.x[:3], line.y[-1]) == (300, [0.0, 3.0, 6.0], 897.0)
    svg = line_chart([line], "Loss over epochs", False, mark=448.5)
    drawn = shapes(svg, "path")
    assert [p["class"] for p in drawn if p["class"].startswith("line")] == ["line s5"]
    middle = (46 + WIDTH - 12) / 2
    assert [p["d"] for p in drawn if p["class"] == "mark"] == [
        f"M{middle:g} 10V{HEIGHT - 38}"
    ]
    assert history_lines([{"epoch": 0, "loss": 1.0}], {"loss": ("a", "b")}) == []
    # Where only every tenth epoch has a value, all of them are drawn.
    nan = float("nan")
    rare = [{"epoch": i, "loss": nan if i % 10 else float(i)} for i in range(900)]
    (line,) = history_lines(rare, {"loss": ("a", "b")})
    assert line.x == [10.0 * i for i in range(90)]
    flat = Line("a", "s0", [0.0, 1.0], [1.0, 1.0])
    svg = line_chart([flat], "flat", True)
    assert "NaN" not in svg
    # A share is never drawn above 100 % or below 0.
    shares = [int(p) for p in re.findall(r">(-?\d+) %<", svg)]
    assert shares
    assert 0 <= min(shares) < max(shares) <= 100


def test_calibration_is_drawn_where_it_is() -> None:
    found = Reliability((Bin(9, 0.5, 0.25), Bin(1, 1.0, 1.0)), 10, 0.55, 0.325, 0.2)
    dots = shapes(reliability_chart(found), "circle")
    frame = Frame((0.0, 1.0), (0.0, 1.0))
    for dot, one in zip(dots, found.bins, strict=True):
        x, y = frame.at(one.confidence, one.accuracy)
        assert (float(dot["cx"]), float(dot["cy"])) == (
            pytest.approx(x),
            pytest.approx(y),
        )
    assert float(dots[0]["r"]) > float(dots[1]["r"])


def test_blocks_are_coloured_by_sign_and_size() -> None:
    means = torch.tensor([[1.0, -0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.1, -1.0]])
    svg = block_chart(BlockMap("ELU graph", means, 0.5), [0, 0, 9])
    cells = {
        (p["class"], p["fill-opacity"]): p["d"]
        for p in shapes(svg, "path") if p["class"] in ("plus", "minus")
    }  # fmt: skip
    assert cells == {
        ("plus", "1"): "M2 2h1v1h-1zM3 3h1v1h-1z",
        ("plus", "0.1"): "M3 4h1v1h-1z",
        ("minus", "0.5"): "M3 2h1v1h-1z",
        ("minus", "1"): "M4 4h1v1h-1z",
    }
    bars = [r["class"] for r in shapes(svg, "rect")]
    assert bars == ["k0", "k0", "k1 ring", "k1 ring"]
    assert class_mark(16) == "k0"
    blank = block_chart(BlockMap("x", torch.zeros(2, 2), None), [0, 1])
    assert not re.search("plus|minus", blank)


# --- the simpler models ----------------------------------------------------------


def test_simpler_models_are_what_the_methods_say(checked: Any) -> None:
    graph = checked()
    config = GCNConfig(epochs=5, feature_norm="none")
    found = baselines(fit_graph(graph, "gcn", config))
    assert list(found) == ["mlp", "lpa"]
    data = graph.data
    lpa = fit_graph(graph, "lpa", LPAConfig(feature_norm="none"))
    assert found["lpa"]["test_accuracy"] == lpa.accuracy(data.test_mask)
    mlp = fit_graph(graph, "mlp", MLPConfig(epochs=5, patience=50, feature_norm="none"))
    assert found["mlp"] == {
        "val_accuracy": mlp.accuracy(data.val_mask),
        "test_accuracy": mlp.accuracy(data.test_mask),
    }
    assert list(baselines(mlp)) == ["lpa"]
    assert list(baselines(lpa)) == ["mlp"]


def test_nothing_is_trained_that_is_known_or_large_or_unwanted(
    checked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = checked()
    config = ELUGCNConfig(epochs=3, variants=())
    fitted = fit_graph(graph, "elu-gcn", config)
    paper = fit_graph(graph, "elu-gcn-paper", PaperConfig(epochs=3, eta=0.2))
    monkeypatch.setattr(baselines_module, "fit_graph", pytest.fail)
    known = {"mlp": {"test_accuracy": 0.123}}
    assert baselines(fitted, known)["mlp"] == {"test_accuracy": 0.123}
    assert list(baselines(fitted, train=False)) == ["gcn", "lpa"]
    # The MLP that gave H is inside.
    inside = paper.prediction.predictor.source  # type: ignore[union-attr]
    right = inside.logits(graph.data).argmax(dim=1) == graph.data.y
    expected = float(right[graph.data.test_mask].double().mean())
    assert baselines(paper)["mlp"]["test_accuracy"] == expected
    monkeypatch.setattr(baselines_module, "_LARGEST", 10)
    assert list(baselines(fitted)) == ["gcn", "lpa"]
    # What Definition 1 judged in the second round is no plain GCN.
    two = replace(config, keep_gcn=False, rounds=2)
    assert list(baselines(replace(fitted, config=two))) == ["lpa"]


def test_no_suggestions_where_there_is_nothing_to_ask(
    six: Fitted, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = suggestions_module.suggestions(six, 2)
    assert [one.node for one in found] == ["5"]  # the only one without a label
    monkeypatch.setattr(suggestions_module, "_LARGEST", 5)
    assert suggestions_module.suggestions(six) == []
    monkeypatch.undo()
    six.data.train_mask = torch.ones(6, dtype=torch.bool)
    assert suggestions_module.suggestions(six) == []
