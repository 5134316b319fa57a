"""From a run to a page: what it says, what it leaves out, what it never lets through."""

import base64
import hashlib
from html.parser import HTMLParser
from pathlib import Path

import pytest
import torch

from elugcn.api import Fitted
from elugcn.errors import InputError
from elugcn.report import write_report
from tests.insight.conftest import mask
from tests.report.conftest import ATTACK, EVIL, ODD_ID, records


class Page(HTMLParser):
    """Tags, attributes, scripts and text, as a browser would find them."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.raw: dict[str, list[str]] = {"style": [], "script": []}
        self.words: list[str] = []
        self.inside = ""
        self.feed(path.read_text(encoding="utf-8"))
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.inside = tag
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        self.raw.get(self.inside, self.words).append(data)


def page_of(fitted: Fitted, folder: Path, **metrics: object) -> Page:
    write_report(records(folder, **metrics), fitted=fitted)
    return Page(folder / "report.html")


def test_a_page_says_what_the_run_is(six: Fitted, tmp_path: Path) -> None:
    six.result.history = [
        {"epoch": i, "loss": 1 / (1 + i), "val_accuracy": 0.5, "val_loss": 1.0}
        for i in range(5)
    ]
    six.result.metadata, six.result.seconds = {"best_epoch": 3}, {"train": 1.23}
    written = write_report(records(tmp_path), fitted=six, notes=("one more note",))
    sections = ["accuracy", "labels", "classes", "calibration", "graph", "suggestions",
                "training", "nodes", "run"]  # fmt: skip
    assert written == {"n_nodes": 6, "table_nodes": 6, "sections": sections}
    page = Page(tmp_path / "report.html")
    for words in (
        "elu-gcn on six", "6 nodes · 5 edges · 2 classes · 2 training labels",
        "50% accuracy on 2 test nodes", "a <note>", "one more note", "lr: 0.01",
        '"torch": "2.13"', "Seconds: train 1.2.", "no label reaches it",
        "The dashed line is the epoch that validation selected (3).",
        "in 3 steps of label propagation",
    ):  # fmt: skip
        assert words in page.text, words
    ids = [value for name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    assert set(sections) <= set(ids)


def test_one_of_everything_is_singular(six: Fitted, tmp_path: Path) -> None:
    six.data.test_mask = mask(6, 2)
    six.config = six.config.model_copy(update={"lpa_steps": 1})
    text = page_of(six, tmp_path).text
    assert "accuracy on 1 test node" in text
    assert "in 1 step of label propagation" in text
    for wrong in ("1 test nodes", "1 labelled test nodes", "1 steps", "None", "nan"):
        assert wrong not in text


def test_nothing_of_the_page_comes_from_elsewhere(run: Path) -> None:
    page = Page(run / "report.html")
    policy = next(v for _, v in page.attributes if v.startswith("default-src"))
    ((style,), (script,)) = page.raw["style"], page.raw["script"]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.startswith(f"default-src 'none'; script-src 'sha256-{digest}'")
    for name, value in page.attributes:
        assert not name.startswith("on"), (name, value)
        assert name not in ("src", "srcset", "action"), (name, value)
        if name.endswith("href"):
            assert value.startswith(("#", "data:image/png;base64,"))
    assert "url(" not in style
    assert "innerHTML" not in script


def test_names_from_strangers_are_text(six: Fitted, run: Path, tmp_path: Path) -> None:
    six.data.class_names = [EVIL, ATTACK]
    six.data.node_ids = [EVIL, ATTACK, "'\"", "\x00", "\ud800", "}}{{ 7*7 }}"]
    page = page_of(six, tmp_path, dataset=EVIL, notes=[ATTACK])
    tables = Page(run / "report.html")
    assert all(word in page.text for word in (EVIL, ATTACK, "{{ 7*7 }}"))
    for name in (EVIL, ODD_ID, "Vögel, 鳥", 'a "quoted" one', "colour<b>"):
        assert name in tables.text
    for found in (page, tables):
        assert found.tags.count("script") == 1
        assert not {"img", "b"} & set(found.tags)
        # Quotes do not end an attribute.
        assert all(name != "onerror" for name, _ in found.attributes)


def test_what_a_run_lacks_is_left_out(six: Fitted, tmp_path: Path) -> None:
    del six.data.edge_index, six.data.x
    six.result.label_utilization = six.result.graph = None
    six.data.test_mask = six.data.val_mask = mask(6)
    page = page_of(six, tmp_path)
    assert "2 of 6 nodes had a label to learn from." in page.text
    assert {v for name, v in page.attributes if name == "href"} == {"#nodes", "#run"}
    assert "NELU" not in page.text
    assert "None" not in page.text


def test_a_loaded_run_is_written_again_without_its_graph(
    run: Path, tmp_path: Path
) -> None:
    out = tmp_path / "again.html"
    written = write_report(run, out=out, notes=("the graph is missing",))
    assert "suggestions" not in written["sections"]
    assert {"accuracy", "labels", "graph"} <= set(written["sections"])
    texts = [Page(path).text for path in (run / "report.html", out)]
    assert "the graph is missing" in texts[1]
    # Nothing was trained: the accuracies of all models are those of the fit.
    first, again = (text.partition("validation accuracy")[2][:120] for text in texts)
    assert first == again


def test_large_graphs_have_a_usable_page(six: Fitted, tmp_path: Path) -> None:
    n, generator = 20_000, torch.Generator().manual_seed(0)
    six.data.y = torch.randint(2, (n,), generator=generator)
    six.data.node_ids = [f"customer-{i:07d}" for i in range(n)]
    six.data.num_nodes, six.data.x, six.data.edge_index = n, None, None
    six.data.train_mask, six.data.val_mask = mask(n, 0), mask(n)
    six.data.test_mask = ~six.data.val_mask
    six.result.logits = torch.randn(n, 2, generator=generator)
    six.result.label_utilization = six.result.graph = None
    page = page_of(six, tmp_path)
    assert (tmp_path / "report.html").stat().st_size < 1_000_000
    assert "2,000 of 20,000 nodes are listed: those with the lowest" in page.text


@pytest.mark.parametrize(
    ("name", "text"),
    [("metrics.json", "[]"), ("metrics.json", "{"), ("metrics.json", "[" * 100_000),
     ("config.yaml", None)],
    ids=["a list", "half", "deep", "missing"],
)  # fmt: skip
def test_broken_records_are_named(
    six: Fitted, tmp_path: Path, name: str, text: str | None
) -> None:
    path = records(tmp_path) / name
    path.unlink()
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=name):
        write_report(tmp_path, fitted=six)
    assert not (tmp_path / "report.html").exists()
