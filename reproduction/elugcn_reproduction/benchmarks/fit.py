"""Suite ``fit``: a whole fit of the default, beside the training of PyG's GCN."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from elugcn.api import fit
from elugcn.data.scaling import FeatureScaler
from elugcn.data.validation import CheckedGraph
from elugcn.methods.registry import get_method
from elugcn_reproduction.benchmarks.peers import PyGGCN, pyg_epochs
from elugcn_reproduction.benchmarks.suite import (
    Outcome,
    Settings,
    Suite,
    alternately,
    load,
    median_mb,
    median_ms,
)
from elugcn_reproduction.figures import draw_dots
from elugcn_reproduction.page import Page

EPOCHS, QUICK_EPOCHS = 200, 20
EFFORTS = ("quick", "normal")


def measure(settings: Settings) -> Outcome:
    """Every dataset in turn, each fit in a process of its own, alternately."""
    outcome = Outcome(FIT.name)
    epochs = settings.epochs or (QUICK_EPOCHS if settings.quick else EPOCHS)
    where = None if settings.data_dir is None else str(settings.data_dir)
    for name in FIT.chosen(settings):
        n = int(load(name, settings.data_dir).data.num_nodes or 0)
        ways = {way: (way, name, where, epochs) for way in (*EFFORTS, "gcn")}
        runs = alternately(name, prepare, ways, settings, outcome)
        outcome.add(name, n, "epochs", epochs, "epochs")
        for way, of in runs.items():
            outcome.add(name, n, f"{way}_ms", median_ms(of), "ms")
            outcome.add(name, n, f"{way}_mb", median_mb(of), "MB")
        for effort in EFFORTS:
            ratio = median_ms(runs[effort]) / median_ms(runs["gcn"])
            outcome.add(name, n, f"ratio_{effort}", ratio)
    return outcome


def prepare(
    way: str, dataset: str, data_dir: str | None, epochs: int
) -> Callable[[], None]:
    """Load the graph, try the code on a tiny one, return the fit."""

    def work(graph: CheckedGraph, epochs: int) -> None:
        if way == "gcn":
            train_gcn(graph, epochs)
        else:
            fit_default(graph, way)

    work(load("karate"), 2)
    graph = load(dataset, None if data_dir is None else Path(data_dir))
    return lambda: work(graph, epochs)


def fit_default(graph: CheckedGraph, effort: str) -> None:
    """``auto``, from the graph to the answer."""
    # The default of 0.1 has no effort.
    known = "effort" in get_method("auto").Config.model_fields
    fit(graph, "auto", {"effort": effort} if known else {}, device="cpu", n_threads=1)


def train_gcn(graph: CheckedGraph, epochs: int) -> None:
    """PyG's GCN, without early stopping."""
    data = graph.data
    x = data.x.to_dense()
    x = FeatureScaler.fit(x)(x)
    model = PyGGCN(x.size(1), int(data.y.max()) + 1)
    epoch = pyg_epochs(model, data, x, data.edge_index)
    for _ in range(epochs):
        epoch()


def write(outcome: Outcome, page: Page) -> None:
    """A panel per dataset, and the numbers."""
    ways = {f"auto, {effort}": f"{effort}_ms" for effort in EFFORTS}
    ways["PyG GCN"] = "gcn_ms"
    page.text(
        "A fit is all that `NodeClassifier(effort=...).fit(data)` does, from scaling "
        "to the answer, on the first split of each dataset. PyG's GCN has 64 hidden "
        "units and the epochs of the table, each with validation and without early "
        "stopping. Each fit has a process of its own and they alternate; medians of "
        "milliseconds of processor time. Memory is the peak minus what the process "
        "held before the fit: Python, PyTorch and the data."
    )
    page.figure(
        draw_dots(
            outcome.panels(ways), list(ways), xlabel="milliseconds per fit", log=True
        ),
        "Milliseconds per fit, by dataset",
    )
    metrics = ("epochs", "gcn_ms", "quick_ms", "ratio_quick", "normal_ms",
               "ratio_normal", "gcn_mb", "quick_mb", "normal_mb")  # fmt: skip
    page.table(
        ("dataset", "nodes", "epochs of GCN", "PyG GCN ms", "quick ms", "of GCN",
         "normal ms", "of GCN", "PyG GCN MB", "quick MB", "normal MB"),
        [(d, f"{n:,}", *outcome.shown((d, n), metrics)) for d, n in outcome.cases()],
    )  # fmt: skip


FIT = Suite(
    "fit",
    "A whole fit",
    "What does the default cost from the graph to the answer, beside 200 epochs of "
    "PyG's GCN?",
    measure,
    write,
    ("cora", "citeseer", "blogcatalog", "photo", "pubmed", "computers"),
    ("digits",),
)
