"""The memory a fit is said to take, against what processes were seen to take."""

import json
import subprocess
import sys
import warnings
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from elugcn.data.checks import check_data
from elugcn.data.datasets import load_dataset
from elugcn.errors import InputError
from elugcn.fitting import fit_graph
from elugcn.memory import estimate_memory
from elugcn.methods.elu_config import ELUGCNConfig
from elugcn.methods.gat import GATConfig
from elugcn.methods.grand import GRANDConfig
from elugcn.methods.network_config import GCNConfig
from elugcn.methods.sgc import SGCConfig

MB = 2**20
HIDDEN = ["--set", "hidden_channels=128"]
# Features that outweigh all the rest, and a member that scales them its own way.
WIDE = ["--data-option", "n_features=512"]
# Weights that do: 10,000 rows of 1,024.
HEAVY = ["--data-option", "n_features=10000", "--set", "hidden_channels=1024"]
OWN_WAY = "variants=[{name: scaled, feature_norm: standard, lambda_con: 0.0}]"


@pytest.mark.parametrize(
    ("method", "n", "options"),
    [
        ("elu-gcn", 20_000, []),
        ("elu-gcn", 100_000, []),
        ("elu-gcn", 40_000, [*WIDE, "--set", "feature_norm=none", "--set", OWN_WAY]),
        ("gcn", 2_000, HEAVY),
        ("elu-gcn-paper", 8_000, ["--graph-mode", "paper"]),
        ("gat", 20_000, ["--data-option", "mean_degree=40"]),
        (
            "gcn",
            40_000,
            [
                *HIDDEN,
                "--set",
                "norm=layer",
                "--set",
                "residual=true",
                "--set",
                "jump=last",
            ],
        ),
    ],
)
def test_estimate_is_close_to_a_real_process(
    method: str, n: int, options: list[str], tmp_path: object
) -> None:
    base = ["train", "--dataset", "sbm", "--data-option", f"n={n}", "--data-option",
            "n_classes=10", "--method", method, "--set", "epochs=2", "--no-report",
            "--json", "--out", f"{tmp_path}/run", *options]  # fmt: skip
    command = [sys.executable, "-c", "from elugcn.cli import main; main()", *base]
    said = json.loads(subprocess.check_output([*command, "--dry-run"]))
    real = json.loads(subprocess.check_output(command))
    assert said["memory_mb"]["total"] == pytest.approx(real["peak_rss_mb"], rel=0.25)
    assert said["n_nodes"] == real["n_nodes"]
    assert said["n_edges"] == real["n_edges"]
    assert said["left_out"] == real["details"].get("left_out", [])


def test_parts_by_hand() -> None:
    data = check_data(load_dataset("sbm", n=300, n_features=8)).data
    edges = data.edge_index.T.tolist()
    val = set(data.val_mask.nonzero().squeeze(1).tolist())
    near = len(val | {a for a, b in edges if b in val})
    assert 0 < near < 225  # else the features would not be propagated beforehand
    part = estimate_memory(data, GCNConfig(hidden_channels=16))
    # As given, scaled, and two bytes for dropout.
    assert part.features == (4 + 4 + 2) * 300 * 8 + 4 * near * 8
    assert part.graph == 36 * data.edge_index.size(1)
    assert part.step == 4 * 300 * (2 * 16 + 5 * 5)
    wider = [GCNConfig(hidden_channels=16, num_layers=3),
             GCNConfig(hidden_channels=16, residual=True)]  # fmt: skip
    deep, apart = (estimate_memory(data, config).step for config in wider)
    assert deep == 4 * 300 * (4 * 16 + 5 * 5)
    assert apart == 4 * 300 * ((3.5 + 3) * 16 + 12 * 5)
    # Itself, its gradient, two moments, the best so far.
    assert part.weights == 5 * 4 * 8 * 16
    assert part.slack == part.features + part.graph + part.weights + part.step
    assert part.megabytes()["total"] == round(part.total / MB, 1)
    # Features with few entries are stored again, by entry.
    sparse = replace_x(data, torch.eye(300))
    estimate = estimate_memory(sparse, GCNConfig())
    assert estimate.features == 4 * 300 * 300 + 60 * 300 + 4 * (4 * 300)
    del data.val_mask
    assert estimate_memory(data, GCNConfig()).features == (4 + 4 + 2) * 300 * 8


def test_every_member_keeps_its_weights() -> None:
    data = check_data(load_dataset("sbm", n=300, n_features=8)).data
    variants = ({"name": "a", "hidden_channels": 32}, {"name": "b", "eta": 0.1})
    config = ELUGCNConfig(variants=variants, hidden_channels=16)
    # The GCN, the two members, and what trains the widest.
    assert estimate_memory(data, config).weights == 4 * 8 * (16 + 32 + 16 + 4 * 32)
    heads = estimate_memory(data, GATConfig(heads=4, hidden_channels=8)).weights
    assert heads == 5 * 4 * 8 * 32
    classes = estimate_memory(data, SGCConfig()).weights
    assert classes == 5 * 4 * 8 * 5


@pytest.mark.parametrize(
    ("total", "available", "said"),
    [(1.0, 1.0, ""), (1.0, 0.9, "warned"), (0.51, 0.5, "warned"), (0.49, 0.4, "no")],
)
def test_what_can_not_fit_is_not_begun(
    total: float, available: float, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = check_data(load_dataset("karate"))
    config = GCNConfig(hidden_channels=16, epochs=1)
    part = estimate_memory(graph.data, config)
    needed = part.weights + part.step
    memory = SimpleNamespace(total=total * needed, available=available * needed)
    monkeypatch.setattr("psutil.virtual_memory", lambda: memory)
    if said == "no":
        with pytest.raises(InputError, match=r"this machine has .* hidden_channels"):
            fit_graph(graph, "gcn", config)
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit_graph(graph, "gcn", config)
    found = [w for w in caught if "may not fit" in str(w.message)]
    assert len(found) == (said == "warned")


def test_attention_is_counted_by_edge_and_head() -> None:
    data = check_data(load_dataset("sbm", n=300, n_features=8)).data
    step = estimate_memory(data, GATConfig(heads=4, hidden_channels=8)).step
    entries = data.edge_index.size(1) + 300
    assert step == 4 * 300 * (3.5 * 32 + 12 * 5) + 56 * entries * 4


def test_explicit_graphs_are_counted() -> None:
    data = check_data(load_dataset("sbm", n=300, n_features=8)).data
    plain = ELUGCNConfig(variants=())
    implicit = estimate_memory(data, plain).graph
    for options, entries in (
        ({"graph_mode": "topk", "topk": 20}, 300 * 20),
        ({"graph_mode": "topk", "topk": 5000}, 300 * 300),
        ({"graph_mode": "paper", "keep": 0.5}, 300 * 150),
    ):
        config = replace(plain, **options)
        assert estimate_memory(data, config).graph - implicit == 64 * entries


def test_a_reading_of_its_own_is_counted() -> None:
    data = check_data(load_dataset("sbm", n=300, n_features=8)).data
    del data.val_mask  # nothing is propagated beforehand
    entries, edges = 300 * 8, data.edge_index.size(1)
    plain = ELUGCNConfig(variants=({"name": "a", "eta": 0.1},), feature_norm="none")
    scaled = replace(plain, variants=({"name": "b", "feature_norm": "standard"},))
    looped = replace(plain, variants=({"name": "c", "self_loops": False},))
    both = replace(plain, variants=(*scaled.variants, *looped.variants))
    found = [estimate_memory(data, c) for c in (plain, scaled, looped, both)]
    # Given, with two bytes for dropout; another such reading; a scaled one.
    sizes = [4 + 2, 4 + 2 + 6, 4 + 2 + 2, 4 + 2 + 6]
    assert [f.features for f in found] == [s * entries for s in sizes]
    assert [f.graph for f in found] == [36 * edges * k for k in (1, 2, 2, 2)]
    everywhere = estimate_memory(data, replace(plain, feature_norm="standard"))
    assert everywhere.features == (4 + 6) * entries


def test_sparse_features_are_dense_once_standardised() -> None:
    data = check_data(load_dataset("sbm", n=300, n_features=8)).data
    del data.val_mask
    x = torch.zeros(300, 8)
    x[::2, 3] = 2.0
    sparse = replace_x(data, x.to_sparse_csr())
    row, standard = (
        estimate_memory(sparse, GCNConfig(feature_norm=kind)).features
        for kind in ("row", "standard")
    )
    assert (row, standard) == (60 * 150, 6 * 300 * 8)


def replace_x(data: object, x: torch.Tensor) -> object:
    out = data.clone()  # type: ignore[attr-defined]
    out.x = x
    return out


def test_a_sample_holds_features_and_bags() -> None:
    data = check_data(load_dataset("sbm", n=300, n_features=8)).data
    masks = int(data.train_mask.sum() + data.val_mask.sum())
    config = GRANDConfig(sample=50, neighbours=16, draws=2)
    step = estimate_memory(data, config).step
    assert step == 4 * 300 * 8 + 12 * 300 * 16 + 4 * (50 + masks) * 8 * 2 * 5


def test_the_hungriest_member_counts() -> None:
    data = check_data(load_dataset("sbm", n=300)).data
    config = ELUGCNConfig()
    members = [replace(config, variants=(v,)) for v in config.variants]
    each = [estimate_memory(data, m).step for m in members]
    assert estimate_memory(data, config).step == max(each)
    assert each[0] > each[1]
