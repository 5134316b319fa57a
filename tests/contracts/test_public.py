"""The Python half of the public contract: what users import, call and read."""

import inspect
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

import elugcn
from elugcn import (
    ELUGCNClassifier,
    InputError,
    MissingExtraError,
    NodeClassifier,
    label_utilization,
    learn_elu_graph,
    load_dataset,
)
from elugcn.methods.registry import METHOD_NAMES, resolve_name

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def data(sbm: Callable[..., Data]) -> Data:
    return sbm(0)


@pytest.fixture(scope="module")
def clf(data: Data) -> ELUGCNClassifier:
    return ELUGCNClassifier(random_state=0, epochs=4).fit(data)


# Names


def test_public_names() -> None:
    names = {
        "ELUGCNClassifier", "InputError", "MissingExtraError", "NodeClassifier",
        "label_utilization", "learn_elu_graph", "load_dataset", "__version__",
    }  # fmt: skip
    assert set(elugcn.__all__) == names
    assert names <= set(dir(elugcn))
    assert all(getattr(elugcn, name) is not None for name in names)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        elugcn.nothing  # noqa: B018


def test_one_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert elugcn.__version__ == project["version"]


def test_importing_the_package_loads_no_torch() -> None:
    code = "import sys, elugcn; print('torch' in sys.modules, elugcn.__version__)"
    done = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert done.split() == ["False", elugcn.__version__]


def test_errors_are_those_python_users_expect() -> None:
    assert issubclass(InputError, ValueError)
    assert issubclass(MissingExtraError, ImportError)
    assert str(MissingExtraError("optuna", "tune")) == (
        "optuna is not installed; it comes with: pip install 'elugcn[tune]'"
    )


def test_names_of_methods() -> None:
    assert METHOD_NAMES[:2] == ("auto", "elu-gcn")
    assert {"gcn", "mlp", "lpa", "gat", "appnp", "sgc", "cs", "grand"} <= set(
        METHOD_NAMES
    )
    assert resolve_name("elu-gcn-paper") == "elu-gcn"  # its name in 0.1
    parameters = inspect.signature(NodeClassifier).parameters
    assert parameters["method"].default == "auto"
    assert parameters["random_state"].default is None
    assert "random_state" in ELUGCNClassifier().get_params()


# Datasets


def test_load_dataset_gives_a_graph_with_masks() -> None:
    graph = load_dataset("digits", split=0, data_dir=None)
    assert isinstance(graph, Data)
    assert graph.x.shape == (1797, 64)
    assert graph.edge_index.shape[0] == 2
    train = graph.y[graph.train_mask]
    assert torch.bincount(train).tolist() == [5] * 10
    masks = graph.train_mask.int() + graph.val_mask.int() + graph.test_mask.int()
    assert int(masks.max()) == 1


# The classifier


def test_verbs(clf: ELUGCNClassifier, data: Data, tmp_path: Path) -> None:
    assert clf.predict().shape == (150,)
    assert clf.predict_proba().shape == (150, 3)
    assert 0 <= clf.score(data.test_mask) <= 1
    other = Data(x=data.x[:50], edge_index=torch.tensor([[0, 1], [1, 0]]))
    assert clf.predict(other).shape == (50,)
    clf.save(tmp_path / "model")
    files = {path.name for path in (tmp_path / "model").iterdir()}
    assert files == {"model.safetensors", "model.json"}
    loaded = ELUGCNClassifier.load(tmp_path / "model")
    assert (loaded.predict(other) == clf.predict(other)).all()


def test_attributes(clf: ELUGCNClassifier, data: Data) -> None:
    assert clf.classes_.tolist() == [0, 1, 2]
    assert clf.transduction_.shape == (150,)
    assert clf.label_distributions_.shape == (150, 3)
    assert clf.n_iter_ == len(clf.history_) == 4
    use = clf.label_utilization_
    assert use.lpa.shape == use.gcn.shape == (150,)
    assert repr(use).startswith("LabelUtilization(elu=")
    graph, dense = clf.graph_, clf.graph_.to_dense()
    assert (graph.shape, graph.rank) == ((150, 150), 3)
    z = torch.randn(150, 4, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(graph @ z, dense @ z)
    torch.testing.assert_close(graph.T @ z, dense.T @ z)
    torch.testing.assert_close(graph.rows([3, 7]), dense[[3, 7]])
    stored = graph.to_sparse(k=5).to_dense()
    torch.testing.assert_close(stored, graph.topk(5).to_dense())
    plain = NodeClassifier("sgc", epochs=1).fit(data)
    for name in ("graph_", "label_utilization_"):
        with pytest.raises(AttributeError, match=f"'sgc' has no {name}; use 'auto'"):
            getattr(plain, name)


# The pieces without the estimator


def test_the_pieces_work_alone(data: Data) -> None:
    predicted = data.y.clone()
    predicted[:30] = (data.y[:30] + 1) % 3
    reached = torch.where(torch.arange(150) < 140, data.y, -1)
    use = label_utilization(data, gcn=predicted, lpa=reached)
    assert use.nelu.nonzero().squeeze(1).tolist() == list(range(30))
    assert use.unreachable.nonzero().squeeze(1).tolist() == list(range(140, 150))
    random = torch.randn(150, 3, generator=torch.Generator().manual_seed(0))
    labels = torch.where(data.train_mask, data.y, -1)
    graph = learn_elu_graph(torch.softmax(random, dim=1), labels)
    assert (graph.shape, graph.rank) == ((150, 150), 3)
