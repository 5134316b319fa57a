"""Dense products of either library against double precision."""

import pytest
import torch
from torch import Tensor

from elugcn.core import dense
from elugcn.core.dense import add_transposed_product, dense_product

# Rows, inner dimension, columns: below and above what oneDNN is used for.
SIZES = [(3, 4, 2), (300, 70, 20), (300, 70, 5), (257, 64, 16), (1000, 129, 64)]


@pytest.fixture(params=[True, False], ids=["oneDNN", "MKL"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if request.param and not dense._wide_vectors():
        pytest.skip("no AVX-512, or a PyTorch without oneDNN")
    monkeypatch.setattr(dense, "_wide_vectors", lambda: request.param)
    return bool(request.param)


def close(ours: Tensor, truth: Tensor) -> None:
    assert ours.dtype == torch.float32
    torch.testing.assert_close(ours.double(), truth, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(("n", "d", "k"), SIZES)
def test_products(n: int, d: int, k: int, library: bool) -> None:
    a, b = torch.randn(n, d), torch.randn(d, k)
    truth = a.double() @ b.double()
    close(dense_product(a, b), truth)
    place = torch.empty(n, k)
    assert dense_product(a, b, place).data_ptr() == place.data_ptr()
    close(place, truth)
    # Rows of something larger, as blocks are.
    close(dense_product(torch.cat([a, a])[n:], b), truth)


@pytest.mark.parametrize(("n", "d", "k"), SIZES)
def test_transposed_products_are_added(n: int, d: int, k: int, library: bool) -> None:
    a, b, out = torch.randn(n, d), torch.randn(n, k), torch.randn(k, d)
    truth = out.double() + b.double().T @ a.double()
    assert add_transposed_product(out, a, b) is out
    close(out, truth)


def test_gradients_in_any_layout(library: bool) -> None:
    a = torch.randn(300, 70)
    repeated, turned = torch.randn(20).expand(300, 20), torch.randn(20, 300).T
    for b in (repeated, turned, torch.randn(300, 40)[:, ::2]):
        out = add_transposed_product(torch.zeros(20, 70), a, b)
        close(out, b.double().T @ a.double())
    for b in (torch.randn(20, 70).T, torch.randn(70, 1).expand(70, 20)):
        close(dense_product(a, b), a.double() @ b.double())


def test_what_does_not_fit_is_refused(library: bool) -> None:
    with pytest.raises(RuntimeError):
        dense_product(torch.randn(300, 70), torch.randn(71, 20))


def test_other_dtypes_are_left_to_the_operator(library: bool) -> None:
    a, b = torch.randn(300, 70).double(), torch.randn(70, 20).double()
    assert torch.equal(dense_product(a, b), a @ b)


def test_processors_without_wide_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")
    assert not dense._wide_vectors.__wrapped__()


def test_a_pytorch_that_has_it_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    monkeypatch.setattr(torch.ops, "mkldnn", object())
    assert not dense._wide_vectors.__wrapped__()
