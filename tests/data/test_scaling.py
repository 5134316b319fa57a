"""Scaling of a matrix against scikit-learn, and what ``auto`` chooses."""

from typing import Any

import numpy as np
import psutil
import pytest
import torch
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import StandardScaler, normalize
from torch import Tensor

from elugcn.data.scaling import FeatureScaler
from elugcn.errors import InputError

RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(50, 20, (300, 4)).astype(np.float32)
WORDS = (RNG.random((300, 40)) < 0.1).astype(np.float32)
FLAGS = (RNG.random((300, 2)) < 0.5).astype(np.float32)
MIXED = np.hstack([NUMBERS, FLAGS])
# Ages beside one-hot columns: mostly zero, but the ages outweigh all else.
TABLE = np.hstack([NUMBERS[:, :1], WORDS])


def tensor(x: Any) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(x))


@pytest.mark.parametrize(
    ("x", "kind", "sparse_kind"),
    [
        (NUMBERS, "standard", "standard"),
        (3 * WORDS, "row", "row"),
        (FLAGS, "none", "none"),
        (MIXED, "mixed", "standard"),
        (TABLE, "mixed", "row"),
        (-WORDS, "standard", "row"),
        (np.zeros((5, 2), np.float32), "row", "none"),
    ],
    ids=range(7),
)
def test_what_auto_chooses(x: Any, kind: str, sparse_kind: str) -> None:
    assert FeatureScaler.fit(tensor(x)).kind == kind
    assert FeatureScaler.fit(tensor(x).to_sparse_csr()).kind == sparse_kind


@pytest.mark.parametrize("sparse", [False, True])
def test_values_agree_with_scikit_learn(sparse: bool) -> None:
    def given(x: Any) -> Tensor:
        return tensor(x).to_sparse_csr() if sparse else tensor(x)

    rows = FeatureScaler.fit(given(MIXED - 40), "row")(given(MIXED - 40))
    assert (rows.layout == torch.sparse_csr) == sparse
    expected = normalize(MIXED - 40, norm="l1")
    np.testing.assert_allclose(rows.to_dense(), expected, rtol=1e-5)
    empty = FeatureScaler("row")(given(np.zeros((2, 3), np.float32)))
    assert not empty.to_dense().any()

    scaler, reference = FeatureScaler.fit(given(MIXED), "standard"), StandardScaler()
    reference.fit(MIXED.astype(np.float64))
    other = MIXED[:7] * 2
    np.testing.assert_allclose(
        scaler(given(other)), reference.transform(other), rtol=1e-4, atol=1e-5
    )
    assert torch.equal(
        FeatureScaler.fit(given(MIXED), "none")(given(MIXED)).to_dense(), tensor(MIXED)
    )


def test_constant_columns_and_large_values() -> None:
    x = np.full((40, 3), 0.1, np.float32)
    x[:, 1] = 1e7 + 2 * (np.arange(40) % 2)
    x[:, 2] = np.linspace(-3e38, 3e38, 40)
    scaled = FeatureScaler.fit(tensor(x), "standard")(tensor(x))
    assert not scaled[:, 0].any()
    assert scaled[:, 1].tolist() == [-1.0, 1.0] * 20
    assert torch.isfinite(scaled).all()


def test_a_matrix_of_several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = FeatureScaler.fit(tensor(MIXED))
    monkeypatch.setattr("elugcn.data.features._BLOCK_ENTRIES", 64)
    blocks = FeatureScaler.fit(tensor(MIXED))
    assert np.array_equal(blocks(tensor(MIXED))[:, 4:], FLAGS)
    assert blocks.kind == whole.kind
    torch.testing.assert_close(blocks.mean, whole.mean)
    torch.testing.assert_close(blocks.std, whole.std)


@pytest.mark.parametrize("kind", ["row", "none", "standard", "auto"])
def test_state_and_back(kind: str) -> None:
    scaler = FeatureScaler.fit(tensor(MIXED), kind)
    tensors, facts = scaler.state()
    again = FeatureScaler.restore(tensors, facts)
    assert again.kind == scaler.kind
    assert torch.equal(again(tensor(MIXED)), scaler(tensor(MIXED)))


def test_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="feature_norm='loud': expected auto, row, st"):
        FeatureScaler.fit(tensor(WORDS), "loud")
    for facts in ({"kind": "standard"}, {"kind": "loud"}, {"kind": 3}):
        with pytest.raises(ValueError, match="incomplete"):
            FeatureScaler.restore({}, facts)
    free = type("Memory", (), {"available": 2**10})
    monkeypatch.setattr(psutil, "virtual_memory", lambda: free)
    sparse = tensor(WORDS).to_sparse_csr()
    with pytest.raises(InputError, match=r"'standard' makes 300×40 sparse .*'row' or"):
        FeatureScaler.fit(sparse, "standard")
    FeatureScaler.fit(sparse)(sparse)


@pytest.mark.parametrize("sparse", [False, True])
def test_columns_and_words_agree_with_scikit_learn(sparse: bool) -> None:
    def given(x: Any) -> Tensor:
        return tensor(x).to_sparse_csr() if sparse else tensor(x)

    new = 2 * TABLE[:9]
    x = np.hstack([TABLE, np.ones((300, 1), np.float32)])  # a constant column is kept
    scaler = FeatureScaler.fit(given(x), "column")
    reference = StandardScaler(with_mean=False).fit(x.astype(np.float64))
    found = scaler(given(np.hstack([new, np.ones((9, 1), np.float32)])))
    assert (found.layout == torch.sparse_csr) == sparse
    expected = reference.transform(np.hstack([new, np.ones((9, 1))]))
    np.testing.assert_allclose(found.to_dense(), expected, rtol=1e-4)

    scaler = FeatureScaler.fit(given(WORDS), "tfidf")
    words = TfidfTransformer().fit(WORDS)
    expected = words.transform(WORDS[:9]).toarray()
    found = scaler(given(WORDS[:9]))
    assert (found.layout == torch.sparse_csr) == sparse
    np.testing.assert_allclose(found.to_dense(), expected, rtol=1e-5, atol=1e-7)
    again = FeatureScaler.restore(*scaler.state())(given(WORDS[:9]))
    torch.testing.assert_close(again.to_dense(), found.to_dense())
