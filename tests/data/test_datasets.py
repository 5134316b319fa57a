"""The datasets against the published figures and independent readings of the files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from scipy.io import savemat
from scipy.sparse import csr_matrix
from sklearn.datasets import load_digits
from sklearn.neighbors import kneighbors_graph
from torch_geometric.data import Data
from torch_geometric.io import read_npz
from torch_geometric.io.planetoid import read_planetoid_data
from torch_geometric.transforms import LargestConnectedComponents
from torch_geometric.utils import homophily, to_networkx

from elugcn.data.datasets import dataset_info, is_on_disk, list_datasets, load_dataset
from elugcn.errors import InputError

pytestmark = pytest.mark.usefixtures("cache")

NAMES = [info.name for info in list_datasets() if info.name != "uf21"]
DEVELOPMENT = [info.name for info in list_datasets() if info.family == "development"]
MASKS = ("train_mask", "val_mask", "test_mask")

Load = Callable[..., Data]


@pytest.fixture
def load(request: pytest.FixtureRequest) -> Load:
    """Loads from the raw files; those that need none are tested everywhere."""

    def loader(name: str, split: int = 0, **options: Any) -> Data:
        place = None
        if files := dataset_info(name).files:
            place = request.getfixturevalue("data_dir")
            if not is_on_disk(name, place):
                pytest.skip(f"no raw files: {files[0]}")
        return load_dataset(name, split, place, download=False, **options)

    return loader


def same(a: Data, b: Data) -> bool:
    return all(torch.equal(a[key], b[key]) for key in ("x", "edge_index", "y", *MASKS))


def matrix(edge_index: torch.Tensor, n: int) -> csr_matrix:
    row, col = edge_index.numpy()
    return csr_matrix((np.ones(row.size), (row, col)), shape=(n, n))


@pytest.mark.parametrize("name", NAMES)
def test_contract_and_sizes(name: str, load: Load) -> None:
    data, info = load(name), dataset_info(name)
    masks = torch.stack([data[mask] for mask in MASKS])
    n, names = data.num_nodes, data.class_names
    figures = (info.n_nodes, info.n_edges, info.n_features, info.n_classes)
    figures = (*figures, info.n_train, info.n_val, info.n_test)  # as published
    found = (n, data.num_edges // 2, data.num_features, len(names), *masks.sum(1))
    assert tuple(map(int, found)) == figures
    known = (data.y[data.edge_index] >= 0).all(0)
    truth = homophily(data.edge_index[:, known], data.y, method="edge")
    assert info.homophily == pytest.approx(truth, abs=6e-4)

    data.validate(raise_on_error=True)
    assert data.x.dtype == torch.float32
    assert data.x.is_contiguous()
    assert data.edge_index.dtype == data.y.dtype == torch.int64
    keys = data.edge_index[0] * n + data.edge_index[1]
    assert (keys.diff() > 0).all()  # sorted by row then column, nothing twice
    assert not data.has_self_loops()
    assert data.is_undirected()
    assert set(data.y.tolist()) - {-1} == set(range(len(names)))
    assert masks.dtype == torch.bool
    assert masks.sum(0).max() == 1
    assert not (masks.any(0) & (data.y < 0)).any()
    assert (data.name, data.split, data.directed) == (name, 0, False)
    assert all(type(label) is str for label in names)
    extra = {"name", "class_names", "directed", "split"}
    extra |= {"links"} if info.has_direction else set()
    assert set(data.keys()) == {"x", "edge_index", "y", *MASKS, *extra}


@pytest.mark.parametrize("name", ["cora", "citeseer", "pubmed", "photo"])
def test_values_are_those_of_pytorch_geometric(
    name: str, load: Load, data_dir: Path
) -> None:
    data = load(name)
    if name == "photo":
        whole = read_npz(str(data_dir / "amazon/amazon_electronics_photo.npz"))
        other = LargestConnectedComponents()(whole)
        for mask, count in (("train_mask", 20), ("val_mask", 30)):
            assert set(data.y[data[mask]].bincount().tolist()) == {count}
            other[mask] = data[mask]  # drawn: there is no public split
        other.test_mask = data.test_mask
    else:
        other = read_planetoid_data(str(data_dir / "planetoid"), name)
    assert same(data, other.coalesce())


def test_wikipedia_equals_its_files(load: Load, data_dir: Path) -> None:
    with np.load(data_dir / "wikipedia/chameleon_directed.npz") as raw:
        published = {key: raw[key] for key in raw.files}
    directed, both = load("chameleon", 7, directed=True), load("chameleon", 7)
    assert directed.directed is True
    assert directed.num_edges == len(published["edges"]) - 50 == 36051
    n = directed.num_nodes
    whole = matrix(torch.from_numpy(published["edges"].T), n)
    whole.setdiag(0)
    assert ((whole > 0) != (matrix(directed.edge_index, n) > 0)).nnz == 0
    assert ((whole + whole.T > 0) != (matrix(both.edge_index, n) > 0)).nnz == 0
    for data in (directed, both):
        assert torch.equal(data.links, directed.edge_index)
        assert np.array_equal(data.x.numpy(), published["node_features"])
        assert np.array_equal(data.y.numpy(), published["node_labels"])
        for mask in MASKS:
            assert np.array_equal(data[mask].numpy(), published[f"{mask}s"][7])


def test_uf21_is_read_where_the_user_puts_it(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "UF21.mat"
    with pytest.raises(
        InputError, match=r"UF21\.mat: file not found, and no"
    ) as caught:
        load_dataset("uf21", data_dir=tmp_path)
    assert str(cache / "facebook100" / "UF21.mat") in str(caught.value)
    assert not is_on_disk("uf21", tmp_path)
    info = [[1, 1, 2, 0, 5, 9, 7], [3, 2, 2, 1, 0, 9, 8], [0, 0, 0, 0, 0, 0, 0]]
    adjacency = csr_matrix(np.array([[0, 2, 0], [1, 1, 1], [0, 1, 0]], dtype=float))
    savemat(path, {"A": adjacency, "local_info": np.array(info, dtype=np.uint16)})
    assert is_on_disk("uf21", tmp_path)
    data = load_dataset("uf21", data_dir=tmp_path)
    assert data.y.tolist() == [0, 1, -1]
    assert data.class_names == ["1", "3"]
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    # gender 1|2, major 2, second major 1, dormitory 5, year 9, school 7|8
    assert data.x.tolist() == [
        [1, 0, 1, 0, 1, 1, 1, 0],
        [0, 1, 1, 1, 0, 1, 0, 1],
        [0, 0, 0, 0, 0, 0, 0, 0],
    ]
    savemat(path, {"A": np.eye(3), "local_info": np.zeros((4, 7))})
    with pytest.raises(InputError, match=r"UF21\.mat: expected an n×n matrix A"):
        load_dataset("uf21", data_dir=tmp_path)


@pytest.mark.parametrize("name", DEVELOPMENT)
def test_splits_of_development_graphs(name: str, load: Load, data_dir: Path) -> None:
    data = load(name, 3)
    train, val, test = (data[mask].numpy() for mask in MASKS)
    with np.load(data_dir / f"development/{name}.npz") as raw:
        assert np.array_equal(data.y.numpy(), raw["y"])
        if "split" in raw:
            assert np.array_equal(train + 2 * val + 3 * test, raw["split"][3])
            return
    classes = data.y.bincount().tolist()
    in_train, in_val = (data.y[mask].bincount().tolist() for mask in (train, val))
    if len(classes) == 2:
        shares = train.mean(), val.mean(), test.mean()
        assert shares == pytest.approx([0.5, 0.25, 0.25], abs=1e-3)
    else:
        assert in_train == [min(20, size // 3) for size in classes]
        assert in_val == [min(30, size // 3) for size in classes]
    assert (train | val | test).all()


def test_digits_is_the_symmetric_nearest_neighbour_graph() -> None:
    data, pixels = load_dataset("digits"), load_digits().data
    assert np.array_equal(data.x.numpy() * 16, pixels)
    nearest = kneighbors_graph(pixels, 10)
    joined = matrix(data.edge_index, data.num_nodes) > 0
    assert ((nearest + nearest.T > 0) != joined).nnz == 0
    assert data.y[data.train_mask].bincount().tolist() == [5] * 10
    assert data.y[data.val_mask].bincount().tolist() == [3] * 10


def test_karate_is_the_known_club() -> None:
    data = load_dataset("karate")
    assert nx.utils.edges_equal(
        to_networkx(data, to_undirected=True).edges, nx.karate_club_graph().edges
    )
    assert data.train_mask.nonzero().flatten().tolist() == [0, 4, 8, 24]
    assert torch.equal(data.x, torch.eye(34))
    assert data.y[data.val_mask].sort()[0].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "name", ["photo", "caltech36", "acm", "digits", "karate", "sbm"]
)
def test_split_is_the_only_seed(name: str, load: Load) -> None:
    state = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    first, again, other = load(name, 3), load(name, 3), load(name, 123456)
    assert same(first, again)
    assert not torch.equal(first.val_mask, other.val_mask)
    assert other.split == 123456
    assert torch.equal(torch.get_rng_state(), state[0])
    assert np.array_equal(np.random.get_state()[1], state[1])  # noqa: NPY002


def test_labels_drawn_outside_the_public_masks(load: Load) -> None:
    public, drawn = load("cora"), load("cora", 11, labels_per_class=50)
    assert same(drawn, load("cora", 11, labels_per_class=50))
    other = load("cora", 12, labels_per_class=50)
    assert not torch.equal(drawn.train_mask, other.train_mask)
    assert drawn.y[drawn.train_mask].bincount().tolist() == [50] * 7
    for mask in ("val_mask", "test_mask"):
        assert torch.equal(drawn[mask], public[mask])
        assert not (drawn.train_mask & drawn[mask]).any()
    assert (drawn.train_mask & ~public.train_mask).any()


def test_labels_are_never_drawn_from_nodes_of_unknown_class(load: Load) -> None:
    data = load("citeseer")
    unknown = data.x.sum(1) == 0
    outside = ~(data.val_mask | data.test_mask)
    assert int(unknown.sum()) == 15
    assert (data.y[unknown] == 0).all()
    k = int((outside & ~unknown & (data.y == 0)).sum())
    drawn = load("citeseer", 0, labels_per_class=k)
    assert not (drawn.train_mask & unknown).any()
    with pytest.raises(InputError, match=rf"class 'AI' has only {k} labelled"):
        load("citeseer", 0, labels_per_class=k + 1)


@pytest.mark.parametrize(("name", "k"), [("digits", 5), ("karate", 1)])
def test_labels_drawn_from_the_training_nodes(name: str, k: int, load: Load) -> None:
    assert same(load(name, 2, labels_per_class=k), load(name, 2))
    with pytest.raises(InputError, match=rf"labels_per_class={k + 1}: class .* only"):
        load(name, 2, labels_per_class=k + 1)
    fewer = load(name, 2, labels_per_class=1)
    assert not (fewer.train_mask & ~load(name, 2).train_mask).any()


def test_names_and_files(data_dir: Path, tmp_path: Path) -> None:
    assert dataset_info("Chameleon-Filtered").name == "chameleon_filtered"
    assert load_dataset(" Karate").name == "karate"
    names = {info.name for info in list_datasets()}
    needed = names - {"uf21", *DEVELOPMENT}
    assert {name for name in names if is_on_disk(name, data_dir)} >= needed
    offline = {name for name in names if is_on_disk(name, tmp_path)}
    assert offline == {"digits", "karate", "sbm"}
