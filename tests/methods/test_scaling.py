"""Feature scaling: chosen once, applied alike."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from elugcn.errors import InputError
from elugcn.methods import scaling
from elugcn.methods.scaling import FeatureScaler


@pytest.fixture
def counts() -> torch.Tensor:
    x = torch.zeros(6, 8)
    x[0, 1], x[0, 2], x[2, 5] = 1.0, 3.0, 2.0
    return x


def test_rows_sum_to_one_and_empty_rows_stay(counts: torch.Tensor) -> None:
    scaler = FeatureScaler.fit(counts)
    assert scaler.kind == "row"
    out = scaler(counts)
    assert out[0, 1:3].tolist() == [0.25, 0.75]
    assert out.sum(dim=1).tolist() == [1, 0, 1, 0, 0, 0]
    given = counts.to_sparse_csr()  # torch remarks on its beta state, once a process
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sparse = scaler(given)
    assert sparse.layout == torch.sparse_csr
    assert torch.equal(sparse.to_dense(), out)
    negative = torch.tensor([[-1.0, 3.0]])
    assert FeatureScaler("row")(negative).tolist() == [[-0.25, 0.75]]


def test_columns_get_mean_zero_and_variance_one() -> None:
    x = torch.randn(50, 3, generator=torch.Generator().manual_seed(0)) * 7 + 100
    x[:, 2] = 5.0  # a constant column says nothing and must not be divided by zero
    scaler = FeatureScaler.fit(x)
    assert scaler.kind == "standard"
    out = scaler(x)
    torch.testing.assert_close(out.mean(dim=0), torch.zeros(3), atol=1e-4, rtol=0)
    torch.testing.assert_close(out[:, :2].var(dim=0, correction=0), torch.ones(2))
    assert out[:, 2].abs().max() == 0
    # Another graph is scaled by what was measured on the first.
    torch.testing.assert_close(
        scaler(x + 7)[:, 0], out[:, 0] + 7 / x[:, 0].std(correction=0)
    )
    sparse = FeatureScaler.fit(x.to_sparse_csr())
    torch.testing.assert_close(sparse(x.to_sparse_csr()), out)


def test_blocks_of_rows_measure_what_numpy_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = torch.randn(103, 3, generator=torch.Generator().manual_seed(0)) * 7 + 1e4
    x[:, 1] = 123456.7  # constant, and not exact in any format
    whole = FeatureScaler.fit(x, "standard")
    monkeypatch.setattr(scaling, "_BLOCK_ENTRIES", 30)
    scaler = FeatureScaler.fit(x, "standard")
    assert scaler.mean is not None
    assert scaler.std is not None
    wide = x.numpy().astype(np.float64)
    np.testing.assert_allclose(scaler.mean, wide.mean(axis=0), rtol=1e-7)
    np.testing.assert_allclose(scaler.std[[0, 2]], wide[:, [0, 2]].std(axis=0), 1e-6)
    assert scaler.std[1] == 1
    torch.testing.assert_close(scaler(x), whole(x))


def test_what_auto_chooses(counts: torch.Tensor) -> None:
    inside = torch.rand(20, 4, generator=torch.Generator().manual_seed(0))
    assert FeatureScaler.fit(inside).kind == "none"
    assert FeatureScaler.fit(inside * 2).kind == "standard"
    assert FeatureScaler.fit(inside - 0.5).kind == "standard"
    assert FeatureScaler.fit(-counts).kind == "standard"
    assert FeatureScaler.fit(counts.to_sparse_csr()).kind == "row"
    assert FeatureScaler.fit(-counts.to_sparse_csr()).kind == "row"  # stays sparse
    assert FeatureScaler.fit(torch.zeros(4, 3)).kind == "row"
    assert FeatureScaler.fit(torch.zeros(4, 3).to_sparse_csr()).kind == "none"
    assert torch.equal(FeatureScaler.fit(inside, "none")(inside), inside)


def test_signed_sparse_features_stay_sparse(counts: torch.Tensor) -> None:
    signed = counts * torch.tensor([1.0, -1.0]).repeat(4)
    scaled = FeatureScaler.fit(signed.to_sparse_csr())(signed.to_sparse_csr())
    assert scaled.layout == torch.sparse_csr
    total = signed.abs().sum(dim=1, keepdim=True).clamp(min=1e-30)
    torch.testing.assert_close(scaled.to_dense(), signed / total)


def test_sparse_features_that_would_not_fit_are_not_centred(
    counts: torch.Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    sparse = counts.to_sparse_csr()
    scaler = FeatureScaler.fit(sparse, "standard")
    free = SimpleNamespace(available=8 * counts.numel())
    monkeypatch.setattr(scaling.psutil, "virtual_memory", lambda: free)
    for scale in (
        lambda: FeatureScaler.fit(sparse, "standard"),
        lambda: scaler(sparse),
    ):
        with pytest.raises(
            InputError, match="feature_norm 'standard' makes 6×8 sparse"
        ):
            scale()
    FeatureScaler.fit(counts, "standard")  # is dense already


@pytest.mark.parametrize("kind", ["row", "standard", "none"])
def test_state_round_trip(kind: str, counts: torch.Tensor) -> None:
    scaler = FeatureScaler.fit(counts, kind)
    again = FeatureScaler.restore(*scaler.state())
    assert again.kind == kind
    assert torch.equal(again(counts * 3), scaler(counts * 3))


def test_unknown_kinds_are_refused(counts: torch.Tensor) -> None:
    with pytest.raises(InputError, match="feature_norm must be one of auto, row"):
        FeatureScaler.fit(counts, "l2")
