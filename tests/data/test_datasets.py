"""The datasets against the published figures and independent readings of the files."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import loadmat, savemat
from scipy.sparse import csr_matrix
from torch_geometric.data import Data
from torch_geometric.io import read_npz
from torch_geometric.io.planetoid import read_planetoid_data
from torch_geometric.transforms import LargestConnectedComponents
from torch_geometric.utils import to_dense_adj

from elugcn.data.datasets import (
    dataset_info,
    is_on_disk,
    list_datasets,
    load_dataset,
)
from elugcn.data.splits import draw_labels, per_class_split, random_split
from elugcn.errors import InputError

pytestmark = pytest.mark.usefixtures("cache")

NAMES = [info.name for info in list_datasets() if info.name != "uf21"]
PLANETOID = ["cora", "citeseer", "pubmed"]
WIKIPEDIA = ["chameleon", "squirrel", "chameleon_filtered", "squirrel_filtered"]
FACEBOOK = ["Caltech36", "Hamilton46", "Tulane29", "Northeastern19"]
MASKS = ("train_mask", "val_mask", "test_mask")

# nodes, undirected edges, features, classes, train, validation, test (split 0)
SIZES = {
    "cora": (2708, 5278, 1433, 7, 140, 500, 1000),
    "citeseer": (3327, 4552, 3703, 6, 120, 500, 1000),
    "pubmed": (19717, 44324, 500, 3, 60, 500, 1000),
    "computers": (13381, 245778, 767, 10, 200, 300, 12881),
    "photo": (7487, 119043, 745, 8, 160, 240, 7087),
    "chameleon": (2277, 31371, 2325, 5, 1092, 729, 456),
    "squirrel": (5201, 198353, 2089, 5, 2496, 1664, 1041),
    "chameleon_filtered": (890, 8854, 2325, 5, 409, 287, 194),
    "squirrel_filtered": (2223, 46998, 2089, 5, 1053, 718, 452),
    "caltech36": (769, 33312 // 2, 592, 4, 461, 154, 154),
    "hamilton46": (2314, 192788 // 2, 1176, 6, 1388, 463, 463),
    "tulane29": (7752, 567836 // 2, 3021, 6, 4651, 1550, 1550),
    "northeastern19": (13882, 763868 // 2, 3210, 6, 8328, 2776, 2776),
    "digits": (1797, 12340, 64, 10, 50, 30, 1717),
    "karate": (34, 78, 34, 4, 4, 4, 26),
    "sbm": (1000, 5000, 64, 5, 50, 50, 900),
}

Load = Callable[..., Data]


@pytest.fixture
def load(request: pytest.FixtureRequest) -> Load:
    """Loads from the raw files; those that need none are tested everywhere."""

    def loader(name: str, split: int = 0, **options: Any) -> Data:
        needs_files = bool(dataset_info(name).files)
        place = request.getfixturevalue("data_dir") if needs_files else None
        return load_dataset(name, split, place, download=False, **options)

    return loader


def same(a: Data, b: Data) -> bool:
    keys = ("x", "edge_index", "y", *MASKS)
    return all(torch.equal(a[key], b[key]) for key in keys)


def matrix(edge_index: torch.Tensor, n: int) -> csr_matrix:
    row, col = edge_index.numpy()
    return csr_matrix((np.ones(row.size), (row, col)), shape=(n, n))


def homophily(data: Data) -> float:
    a, b = data.y[data.edge_index]
    known = (a >= 0) & (b >= 0)
    return float((a == b)[known].double().mean())


@pytest.mark.parametrize("name", NAMES)
def test_contract_and_sizes(name: str, load: Load) -> None:
    data = load(name)
    info = dataset_info(name)
    masks = [data[mask] for mask in MASKS]
    n = data.num_nodes
    found = (n, data.num_edges // 2, data.num_features, len(data.class_names))
    assert (*found, *(int(mask.sum()) for mask in masks)) == SIZES[name]
    described = (info.n_nodes, info.n_edges, info.n_features, info.n_classes)
    assert (*described, info.n_train, info.n_val, info.n_test) == SIZES[name]
    assert info.homophily == pytest.approx(homophily(data), abs=6e-4)

    data.validate(raise_on_error=True)
    assert data.x.dtype == torch.float32
    assert data.x.is_contiguous()
    assert data.x.shape == (n, data.num_features)
    assert data.edge_index.dtype == torch.int64
    keys = data.edge_index[0] * n + data.edge_index[1]
    assert (keys.diff() > 0).all()  # sorted by row then column, nothing twice
    assert (data.edge_index[0] != data.edge_index[1]).all()
    assert torch.equal(keys, (data.edge_index[1] * n + data.edge_index[0]).sort()[0])
    assert data.y.dtype == torch.int64
    assert data.y.shape == (n,)
    assert set(data.y.tolist()) - {-1} == set(range(len(data.class_names)))
    assert all(mask.dtype == torch.bool and mask.shape == (n,) for mask in masks)
    assert torch.stack(masks).sum(0).max() == 1
    assert not (torch.stack(masks).any(0) & (data.y < 0)).any()
    assert (data.name, data.split, data.directed) == (name, 0, False)
    assert all(type(label) is str for label in data.class_names)
    extra = {"name", "class_names", "directed", "split"}
    if dataset_info(name).directed_files:
        extra.add("links")
    assert set(data.keys()) == {"x", "edge_index", "y", *MASKS, *extra}


@pytest.mark.parametrize("name", PLANETOID)
def test_planetoid_equals_pytorch_geometric(
    name: str, load: Load, data_dir: Path
) -> None:
    data = load(name)
    other = read_planetoid_data(str(data_dir / "planetoid"), name)
    for key in ("x", "y", *MASKS):
        assert torch.equal(data[key], other[key]), key
    assert torch.equal(data.edge_index, other.coalesce().edge_index)


def test_planetoid_class_names_fit_the_published_class_sizes(load: Load) -> None:
    cora, citeseer = load("cora"), load("citeseer")
    sizes = dict(zip(cora.class_names, cora.y.bincount().tolist(), strict=True))
    assert sizes["Neural_Networks"] == 818
    assert sizes["Rule_Learning"] == 180
    sizes = dict(zip(citeseer.class_names, citeseer.y.bincount().tolist(), strict=True))
    assert sizes["DB"] == 701
    assert sizes["AI"] == 249 + 15  # the fifteen nodes nobody knows the class of


@pytest.mark.parametrize("name", ["computers", "photo"])
def test_amazon_equals_pytorch_geometric(name: str, load: Load, data_dir: Path) -> None:
    data = load(name)
    whole = read_npz(str(data_dir / f"amazon/amazon_electronics_{name}.npz"))
    other = LargestConnectedComponents()(whole)
    assert torch.equal(data.x, other.x)
    assert torch.equal(data.y, other.y)
    assert torch.equal(data.edge_index, other.coalesce().edge_index)
    for mask, count in (("train_mask", 20), ("val_mask", 30)):
        assert set(data.y[data[mask]].bincount().tolist()) == {count}


@pytest.mark.parametrize("name", WIKIPEDIA)
def test_wikipedia_equals_its_files(name: str, load: Load, data_dir: Path) -> None:
    links = {"chameleon": 36101, "squirrel": 217073}
    links |= {"chameleon_filtered": 13584, "squirrel_filtered": 65718}
    loops = 50 if "chameleon" in name else 140
    with np.load(data_dir / f"wikipedia/{name}_directed.npz") as raw:
        edges = raw["edges"]
        masks = [raw[f"{part}s"] for part in MASKS]
        features, labels = raw["node_features"], raw["node_labels"]
    n = labels.size
    assert edges.shape == (links[name], 2)

    directed, both = load(name, 7, directed=True), load(name, 7)
    assert directed.directed is True
    assert directed.num_edges == links[name] - loops
    published = {(a, b) for a, b in edges.tolist() if a != b}
    assert set(map(tuple, directed.edge_index.T.tolist())) == published
    one_way = matrix(directed.edge_index, n)
    assert ((one_way + one_way.T > 0) != (matrix(both.edge_index, n) > 0)).nnz == 0
    for data in (directed, both):
        assert torch.equal(data.links, directed.edge_index)
        assert np.array_equal(data.x.numpy(), features)
        assert np.array_equal(data.y.numpy(), labels)
        for mask, published_mask in zip(MASKS, masks, strict=True):
            assert np.array_equal(data[mask].numpy(), published_mask[7])


@pytest.mark.parametrize("college", FACEBOOK)
def test_facebook_equals_its_file(college: str, load: Load, data_dir: Path) -> None:
    data = load(college.lower())
    raw = loadmat(data_dir / f"facebook100/{college}.mat")
    info = raw["local_info"].astype(int)
    n = len(info)
    assert ((raw["A"] > 0) != (matrix(data.edge_index, n) > 0)).nnz == 0
    flags = [int(data.class_names[c]) if c >= 0 else 0 for c in data.y.tolist()]
    assert flags == info[:, 0].tolist()
    masks = data.train_mask | data.val_mask | data.test_mask
    assert torch.equal(masks, data.y >= 0)
    # Every known value is one 1; two nodes share a 1 where they share the value.
    assert np.array_equal(data.x.sum(1).numpy(), (info[:, 1:] > 0).sum(1))
    some = np.random.default_rng(0).choice(n, 200, replace=False)
    shared = (info[some, None, 1:] == info[None, some, 1:]) & (info[some, None, 1:] > 0)
    ones = data.x[torch.from_numpy(some)]
    assert np.array_equal((ones @ ones.T).numpy(), shared.sum(2))


def test_caltech_keeps_the_flags_that_occur(load: Load) -> None:
    data = load("caltech36")
    assert data.class_names == ["1", "2", "5", "6"]
    assert data.y.bincount().tolist() == [553, 159, 55, 2]


def fake_college(path: Path) -> np.ndarray:
    info = np.array(
        [[1, 1, 2, 0, 5, 9, 7], [3, 2, 2, 1, 0, 9, 8], [0, 0, 0, 0, 0, 0, 0]]
    )
    adjacency = csr_matrix(np.array([[0, 2, 0], [1, 1, 1], [0, 1, 0]], dtype=float))
    savemat(path, {"A": adjacency, "local_info": info.astype(np.uint16)})
    return info


def test_uf21_is_read_where_the_user_puts_it(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(InputError, match=r"UF21\.mat is missing") as caught:
        load_dataset("uf21", data_dir=tmp_path)
    assert str(cache / "facebook100" / "UF21.mat") in str(caught.value)
    assert not is_on_disk("uf21", tmp_path)

    fake_college(tmp_path / "UF21.mat")
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


@pytest.mark.parametrize("content", [b"", b"nonsense" * 100])
def test_uf21_that_is_no_matlab_file_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "UF21.mat").write_bytes(content)
    with pytest.raises(InputError, match=r"UF21\.mat: not a Facebook100") as caught:
        load_dataset("uf21", data_dir=tmp_path)
    assert "\n" not in str(caught.value)


def test_uf21_with_wrong_shapes_is_named(tmp_path: Path) -> None:
    path = tmp_path / "UF21.mat"
    savemat(path, {"A": np.eye(3), "local_info": np.zeros((4, 7))})
    with pytest.raises(InputError, match=r"UF21\.mat: expected an n×n matrix A"):
        load_dataset("uf21", data_dir=tmp_path)


def test_digits_is_the_symmetric_nearest_neighbour_graph() -> None:
    data = load_dataset("digits")
    assert data.x.max() == 1.0
    distance = torch.cdist(data.x.double(), data.x.double())
    distance.fill_diagonal_(torch.inf)
    tenth = distance.kthvalue(10, dim=1).values
    a, b = data.edge_index
    # An edge is never longer than the tenth neighbour of one of its ends...
    assert (distance[a, b] <= torch.maximum(tenth[a], tenth[b]) + 1e-9).all()
    # ... and everything nearer than that is an edge.
    nearer = distance < tenth[:, None] - 1e-9
    assert (to_dense_adj(data.edge_index)[0].bool() | ~nearer).all()
    assert data.y[data.train_mask].bincount().tolist() == [5] * 10
    assert data.y[data.val_mask].bincount().tolist() == [3] * 10


def test_karate_is_the_known_club() -> None:
    data = load_dataset("karate")
    degree = data.edge_index[0].bincount()
    assert [int(degree[node]) for node in (0, 32, 33)] == [16, 12, 17]
    assert data.train_mask.nonzero().flatten().tolist() == [0, 4, 8, 24]
    assert torch.equal(data.x, torch.eye(34))
    assert data.y[data.val_mask].sort()[0].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["photo", "caltech36", "digits", "karate", "sbm"])
def test_split_is_the_only_seed(name: str, load: Load) -> None:
    state = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    first, again, other = load(name, 3), load(name, 3), load(name, 4)
    assert same(first, again)
    assert not torch.equal(first.val_mask, other.val_mask)
    assert other.split == 4
    assert torch.equal(torch.get_rng_state(), state[0])
    assert np.array_equal(np.random.get_state()[1], state[1])  # noqa: NPY002
    load(name, 123456)  # seeded splits have no last one


@pytest.mark.parametrize("name", ["cora", "citeseer", "pubmed"])
def test_labels_drawn_outside_the_public_masks(name: str, load: Load) -> None:
    public = load(name)
    drawn = load(name, 11, labels_per_class=50)
    assert same(drawn, load(name, 11, labels_per_class=50))
    assert not torch.equal(
        drawn.train_mask, load(name, 12, labels_per_class=50).train_mask
    )
    counts = drawn.y[drawn.train_mask].bincount().tolist()
    assert counts == [50] * len(public.class_names)
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


@pytest.mark.parametrize(("name", "k"), [("photo", 20), ("digits", 5), ("karate", 1)])
def test_labels_drawn_from_the_training_nodes(name: str, k: int, load: Load) -> None:
    assert same(load(name, 2, labels_per_class=k), load(name, 2))
    with pytest.raises(InputError, match=rf"labels_per_class={k + 1}: class .* only"):
        load(name, 2, labels_per_class=k + 1)
    if k > 1:
        fewer = load(name, 2, labels_per_class=1)
        assert not (fewer.train_mask & ~load(name, 2).train_mask).any()


def test_labels_of_a_class_that_does_not_train(load: Load) -> None:
    data = load("hamilton46")
    count = int((data.train_mask & (data.y == 5)).sum())
    with pytest.raises(InputError, match=rf"class '6' has only {count} labelled"):
        load("hamilton46", labels_per_class=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "core"}, r"unknown dataset 'core'; known: cora, .*mean 'cora'\?$"),
        ({"name": "xyzzy"}, r"unknown dataset 'xyzzy'; known: cora, .*, sbm$"),
        ({"name": "cora", "colour": 1}, "unknown option 'colour' for dataset cora"),
        ({"name": "sbm", "nodes": 1}, "unknown option 'nodes'.*known: n, n_classes"),
        ({"name": "cora", "split": 1}, "split must be 0 for dataset cora"),
        ({"name": "squirrel", "split": 10}, "split must be 0 to 9"),
        (
            {"name": "squirrel", "split": 10, "labels_per_class": 2},
            "split must be 0 to 9",
        ),
        ({"name": "digits", "split": -1}, "split must be a whole number"),
        ({"name": "digits", "split": 1.0}, "split must be a whole number"),
        ({"name": "digits", "split": True}, "split must be a whole number"),
        ({"name": "digits", "labels_per_class": 0}, "labels_per_class must be at"),
        ({"name": "digits", "labels_per_class": "3"}, "labels_per_class must be a"),
        ({"name": "photo", "directed": True}, "photo has no directed version"),
        ({"name": "cora", "data_dir": "no/such/place"}, "data_dir: no/such/place is"),
    ],
)
def test_wrong_requests_are_one_line(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        load_dataset(**arguments)
    assert "\n" not in str(caught.value)


def test_names_are_forgiving() -> None:
    assert dataset_info("Chameleon-Filtered").name == "chameleon_filtered"
    assert load_dataset(" Karate").name == "karate"


def test_on_disk(data_dir: Path, tmp_path: Path) -> None:
    names = {info.name for info in list_datasets()}
    assert {name for name in names if is_on_disk(name, data_dir)} >= names - {"uf21"}
    offline = {name for name in names if is_on_disk(name, tmp_path)}
    assert offline == {"digits", "karate", "sbm"}


@pytest.mark.parametrize("flat", [False, True])
def test_the_source_directory_is_never_written_to(
    flat: bool, data_dir: Path, tmp_path: Path, cache: Path
) -> None:
    source = tmp_path / "source"
    names = ["cora", "photo", "chameleon", "caltech36"]
    for name in names:
        for relative in dataset_info(name).files:
            target = source / (Path(relative).name if flat else relative)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(data_dir / relative, target)
    folders = [source, *(path for path in source.iterdir() if path.is_dir())]

    def listing() -> list[tuple[Path, int, int]]:
        paths = sorted([source, *source.rglob("*")])
        return [(p, p.stat().st_mtime_ns, p.stat().st_size) for p in paths]

    for folder in folders:
        folder.chmod(0o555)
    try:
        before = listing()
        for name in names:
            from_copy = load_dataset(name, data_dir=source, download=False)
            assert same(from_copy, load_dataset(name, data_dir=data_dir))
        assert listing() == before
        assert not cache.exists()
    finally:
        for folder in folders:
            folder.chmod(0o755)


@st.composite
def labels(draw: st.DrawFn) -> tuple[np.ndarray, list[str], int]:
    """Classes of at least six nodes each, shuffled, and some nodes of none."""
    counts = draw(st.lists(st.integers(6, 20), min_size=1, max_size=6))
    unknown = draw(st.integers(0, 10))
    y = np.repeat(np.arange(-1, len(counts)), [unknown, *counts])
    seed = draw(st.integers(0, 2**32))
    names = [f"c{label}" for label in range(len(counts))]
    return np.random.default_rng(seed).permutation(y), names, seed


@given(labels(), st.integers(1, 3), st.integers(1, 3))
def test_per_class_split(
    problem: tuple[np.ndarray, list[str], int], n_train: int, n_val: int
) -> None:
    y, names, seed = problem
    split = per_class_split(y, n_train, n_val, seed, names)
    assert np.array_equal(np.sum(split, axis=0), y >= 0)
    assert np.bincount(y[split.train]).tolist() == [n_train] * len(names)
    assert np.bincount(y[split.val]).tolist() == [n_val] * len(names)
    again = per_class_split(y, n_train, n_val, seed, names)
    assert all(np.array_equal(a, b) for a, b in zip(split, again, strict=True))


@given(labels(), st.floats(0, 0.5), st.floats(0, 0.5))
def test_random_split(
    problem: tuple[np.ndarray, list[str], int], train: float, val: float
) -> None:
    y, _, seed = problem
    split = random_split(y, train, val, seed)
    assert np.array_equal(np.sum(split, axis=0), y >= 0)
    n = int((y >= 0).sum())
    assert abs(split.train.sum() - train * n) <= 0.5
    assert abs(split.val.sum() - val * n) <= 1.0


@given(labels(), st.integers(1, 8))
def test_draw_labels(problem: tuple[np.ndarray, list[str], int], k: int) -> None:
    y, names, seed = problem
    eligible = np.random.default_rng(seed + 1).random(y.size) < 0.7
    have = np.bincount(y[eligible & (y >= 0)], minlength=len(names))
    if (have < k).any():
        short = int(np.argmax(have < k))
        with pytest.raises(InputError, match=f"'c{short}' has only {have[short]} "):
            draw_labels(y, k, seed, eligible, names)
        return
    drawn = draw_labels(y, k, seed, eligible, names)
    assert not (drawn & ~eligible).any()
    assert np.bincount(y[drawn]).tolist() == [k] * len(names)
