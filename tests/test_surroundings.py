"""A fit and what surrounds it: other threads, PyTorch's settings, the user's objects."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.transforms import ToSparseTensor

from elugcn import ELUGCNClassifier, InputError, label_utilization
from elugcn.transforms import AddELUGraph

Draw = Callable[..., Data]


def quick(**options: Any) -> ELUGCNClassifier:
    return ELUGCNClassifier(**({"epochs": 6} | options))


@pytest.fixture
def data(sbm: Draw) -> Data:
    return sbm(0)


def test_fits_in_threads_come_out_as_one_after_the_other(data: Data) -> None:
    def proba(seed: int) -> np.ndarray:
        return quick(random_state=seed).fit(data).predict_proba()

    serial = [proba(seed) for seed in range(3)]
    with ThreadPoolExecutor(3) as pool:
        parallel = list(pool.map(proba, range(3)))
    for one, other in zip(serial, parallel, strict=True):
        assert (one == other).all()


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_a_fit_does_not_care_for_gradients_being_off(
    sbm: Draw, mode: Callable[[], Any]
) -> None:
    expected = quick().fit(sbm(0)).predict_proba()
    with mode():
        model = quick().fit(sbm(0))  # the graph is made in that mode, too
        assert not torch.is_grad_enabled()
    assert (model.predict_proba() == expected).all()


def test_a_fit_does_not_care_for_the_default_dtype(data: Data) -> None:
    expected = quick().fit(data).predict_proba()
    use = label_utilization(data)
    edges = AddELUGraph(topk=3, epochs=4)(data.clone()).elu_edge_weight
    torch.set_default_dtype(torch.float64)
    try:
        assert (quick().fit(data).predict_proba() == expected).all()
        assert torch.equal(label_utilization(data).elu, use.elu)
        again = AddELUGraph(topk=3, epochs=4)(data.clone()).elu_edge_weight
        assert torch.equal(again, edges)
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_what_the_caller_changes_later_changes_no_answer(data: Data) -> None:
    mine = data.clone()
    model = quick().fit(mine)
    score, answers = model.score(), model.predict()
    mine.y[:] = 0
    mine.test_mask[:] = False
    mine.val_mask[:] = False
    proba = model.predict_proba()
    proba[:] = 0
    assert model.score() == score
    assert (model.predict() == answers).all()
    assert int(model.fitted_.data.val_mask.sum()) == int(data.val_mask.sum())


def test_columns_of_a_frame_are_compared_by_name(data: Data, tmp_path: Path) -> None:
    frame = pd.DataFrame(data.x[:, :4].numpy(), columns=list("abcd"))
    labels = torch.where(data.train_mask, data.y, -1).numpy()
    model = quick().fit(frame, labels)
    assert model.feature_names_in_.tolist() == list("abcd")
    model.predict(frame)
    model.save(tmp_path / "model")
    for one in (model, ELUGCNClassifier.load(tmp_path / "model")):
        with pytest.raises(InputError, match=r"'d' where .* 'a'.*another order"):
            one.predict(frame[list("dcba")])
        with pytest.raises(InputError, match="'z' where the model was fitted with 'b'"):
            one.predict(frame.rename(columns={"b": "z"}))
        one.predict(frame.to_numpy())  # nameless, as scikit-learn takes it
    model.fit(frame.to_numpy(), labels)
    assert not hasattr(model, "feature_names_in_")
    model.predict(frame[list("dcba")])


def test_a_model_that_is_saved_can_be_loaded(data: Data, tmp_path: Path) -> None:
    n = int(data.num_nodes)
    described = {
        "node_ids": np.arange(n) + 7,
        "name": Path("some") / "graph",
        "table_schema": object(),
        "class_names": dict(enumerate(["x", "y", "z", "u", "v"])),
        "directed": torch.tensor(False),
    }
    mine = data.clone()
    for name, value in described.items():
        mine[name] = value
    model = quick().fit(mine)
    assert any("table_schema" in note for note in model.notes_)
    model.save(tmp_path / "model")
    loaded = ELUGCNClassifier.load(tmp_path / "model")
    assert (loaded.predict_proba() == model.predict_proba()).all()
    facts = json.loads((tmp_path / "model" / "model.json").read_text("utf-8"))
    assert facts["node_ids"][:2] == ["7", "8"]
    assert facts["class_names"][:2] == ["x", "y"]
    assert model.classes_.dtype.kind == "i"  # of a Data object: its integers


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("node_ids", ["a"], "node_ids has 1 entries: expected"),
        ("node_ids", "abc", "node_ids is a str"),
        ("directed", torch.tensor([True, False]), "directed is a Tensor"),
        ("train_mask", torch.ones(3, dtype=torch.uint8), r"train_mask\.bool\(\)"),
    ],
)
def test_descriptions_that_are_refused(
    data: Data, name: str, value: Any, said: str
) -> None:
    mine = data.clone()
    mine[name] = value
    with pytest.raises(InputError, match=said):
        quick().fit(mine)


def test_other_kinds_of_graphs_are_named(data: Data) -> None:
    with pytest.raises(InputError, match=r"list of 2 graphs.*Batch"):
        quick().fit([data, data])
    with pytest.raises(InputError, match=r"HeteroData.*to_homogeneous"):
        quick().fit(HeteroData())
    with pytest.raises(InputError, match="leave ToSparseTensor out"):
        quick().fit(ToSparseTensor(layout=torch.sparse_csr)(data.clone()))


def test_a_batch_of_graphs_is_one_graph(data: Data) -> None:
    n = int(data.num_nodes)
    data.node_ids = [f"n{i}" for i in range(n)]
    data.class_names = ["ant", "bee", "cat"]
    kept = quick().fit(Batch.from_data_list([data, data])).fitted_.data
    assert (kept.num_nodes, kept.name, kept.directed) == (2 * n, "sbm", False)
    assert kept.class_names == ["ant", "bee", "cat"]
    assert kept.node_ids == data.node_ids * 2


def test_another_graph_may_say_anything_of_labels_and_splits(data: Data) -> None:
    model = quick().fit(data)
    n = int(data.num_nodes)
    bare = Data(x=data.x, edge_index=data.edge_index)
    expected = model.predict_proba(bare)
    bare.y = torch.rand(n, 4)
    bare.train_mask = torch.ones(n, 3, dtype=torch.bool)
    bare.test_mask = bare.train_mask
    assert (model.predict_proba(bare) == expected).all()
    assert bare.y.shape == (n, 4)


def test_a_column_of_a_mask_is_a_mask(data: Data) -> None:
    mine = data.clone()
    mine.train_mask = data.train_mask[:, None]
    expected = quick().fit(data).predict_proba()
    assert (quick().fit(mine).predict_proba() == expected).all()


def test_labels_of_pandas_with_gaps_stay_whole_numbers(data: Data) -> None:
    labels = data.y.tolist()
    known = data.train_mask.tolist()
    gaps = [v if k else None for v, k in zip(labels, known, strict=True)]
    model = quick().fit(data.x.numpy(), pd.Series(gaps, dtype="Int64"))
    assert model.classes_.dtype.kind == "i"
    plain = quick().fit(data.x.numpy(), [-1 if v is None else v for v in gaps])
    assert (plain.predict_proba() == model.predict_proba()).all()


def test_numbers_in_an_array_of_objects_are_numbers(data: Data) -> None:
    labels = torch.where(data.train_mask, data.y, -1).numpy()
    x = data.x.numpy()
    expected = quick().fit(x, labels).predict_proba()
    assert (quick().fit(x.astype(object), labels).predict_proba() == expected).all()
    with pytest.raises(InputError, match="dtype object"):
        quick().fit(np.full(x.shape, "a", dtype=object), labels)


def test_a_sparse_tensor_says_nothing_of_torch(
    data: Data, recwarn: pytest.WarningsRecorder
) -> None:
    mine = data.clone()
    mine.x = data.x.to_sparse_coo()
    quick().fit(mine)
    assert not [w for w in recwarn if "beta" in str(w.message)]


def test_names_and_numbers_of_classes_go_together(data: Data) -> None:
    n = int(data.num_nodes)
    numbers = np.arange(n) % 2 * 2  # classes 0 and 2
    words = np.array(["ant", "bee", "cat"])[numbers]
    graph = Data(num_nodes=n, class_names=["ant", "bee", "cat"])
    assert bool(label_utilization(graph, gcn=words, lpa=numbers).elu.all())
    with pytest.raises(InputError, match=r"data\.class_names"):
        label_utilization(Data(num_nodes=n), gcn=words, lpa=numbers)


def test_threads_are_those_asked_for(
    sbm: Draw, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elugcn.fitting.threads", lambda count: nullcontext())
    clf = ELUGCNClassifier(epochs=2, n_threads=2).fit(sbm(0))
    assert clf.fitted_.threads == 2


def test_the_seed_decides_what_is_held_out(sbm: Draw) -> None:
    data = sbm(0)
    bare = Data(x=data.x, edge_index=data.edge_index, y=data.y)
    one, again, other = (
        ELUGCNClassifier(epochs=1, random_state=s).fit(bare).fitted_.data.val_mask
        for s in (1, 1, 2)
    )
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
