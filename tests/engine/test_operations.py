"""Every operation of both implementations against dense PyTorch, with gradients."""

from types import ModuleType
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.engine import (
    CSR,
    GraphInputs,
    LossTargets,
    LowRank,
    MeanPropagation,
    Views,
    engine_name,
    fast,
    reference,
)
from elugcn.training.threads import threads
from tests.engine.conftest import (
    assert_same,
    drawn,
    inputs,
    mask_of,
    sparse,
    workspace,
)

OPTIONS: dict[str, Any] = {
    "tau": 0.4, "eta": 0.3, "contrast_weight": 0.7, "entropy_weight": 0.2
}  # fmt: skip
BOTH = pytest.mark.parametrize("p", [0.0, 0.4], ids=["whole", "dropped"])


def dense(x: Any) -> Tensor:
    return x if isinstance(x, Tensor) else x.to_dense()


def dense_drop(x: CSR | Tensor, p: float) -> Tensor:
    """drop(X) with the next draw, by a mask: stored entries count within their row."""
    return dense(reference.dropout(x, p))


@BOTH
@pytest.mark.parametrize("shape", [(1, 1), (30, 5), (300, 131), (0, 4)], ids=str)
def test_dropout(ops: ModuleType, p: float, shape: tuple[int, int]) -> None:
    x = drawn(*shape)
    assert_same(
        lambda x: ops.dropout(x, p), lambda x: x * mask_of(x.shape, p) if p else x, [x]
    )


@BOTH
@pytest.mark.parametrize("x_sparse", [True, False], ids=["sparse", "dense"])
@pytest.mark.parametrize("n", [1, 7, 600])
@pytest.mark.parametrize("width", [1, 3, 16, 37, 80])
def test_dropout_linear(
    ops: ModuleType, p: float, x_sparse: bool, n: int, width: int
) -> None:
    a = sparse(n, 70, 0.3)
    x = a if x_sparse else a.to_dense()
    assert_same(
        lambda w: ops.dropout_linear(x, w, p),
        lambda w: dense_drop(x, p) @ w,
        [drawn(70, width)],
        atol=1e-4,
    )


def test_dropout_linear_gives_gradients_to_x(ops: ModuleType) -> None:
    assert_same(
        lambda x, w: ops.dropout_linear(x, w, 0.5),
        lambda x, w: (x * mask_of((6, 4), 0.5)) @ w,
        [drawn(6, 4), drawn(4, 3, seed=1)],
    )


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("width", [1, 2, 5, 8, 20])
@pytest.mark.parametrize("with_bias", [True, False], ids=["bias", "no bias"])
def test_spmm(count: int, width: int, with_bias: bool) -> None:
    a = sparse(50, 40)

    def found(z: Tensor, b: Tensor) -> Tensor:
        views = Views.side_by_side(z, count)
        out = reference.spmm(a, views, b if with_bias else None)
        assert len(out.tensors()) == count
        return torch.cat(out.tensors(), dim=1)

    def truth(z: Tensor, b: Tensor) -> Tensor:
        return a.to_dense() @ z + (b.repeat(count) if with_bias else 0.0)

    assert_same(found, truth, [drawn(40, count * width), drawn(width, seed=1)])


def test_spmm_of_one_tensor_and_of_no_matrix() -> None:
    z, b = drawn(8, 3), drawn(3)
    torch.testing.assert_close(
        reference.spmm(sparse(9, 8), z), sparse(9, 8).to_dense() @ z
    )
    torch.testing.assert_close(reference.spmm(None, z, b), z + b)
    low = LowRank(drawn(5, 2), drawn(8, 2))
    torch.testing.assert_close(reference.spmm(low, z, b), low.to_dense() @ z + b)


# --- the first layer --------------------------------------------------------------------


def first_layer(g: GraphInputs, w: Tensor, p: float) -> Tensor:
    z = dense_drop(g.x, p) @ w
    views = [dense(g.adj) @ z]
    if g.elu_graph is not None:
        views.append(dense(g.elu_graph) @ z)
    return torch.cat(views, dim=1)


@BOTH
@pytest.mark.parametrize("elu", ["none", "factors", "explicit"])
@pytest.mark.parametrize("x_sparse", [True, False], ids=["sparse", "dense"])
@pytest.mark.parametrize("width", [1, 6, 64])
def test_propagate_linear(
    ops: ModuleType, p: float, elu: str, x_sparse: bool, width: int
) -> None:
    g = inputs(n=60, d=20, x_sparse=x_sparse, elu=elu)
    assert_same(
        lambda w: torch.cat(ops.propagate_linear(g, w, p).tensors(), dim=1),
        lambda w: first_layer(g, w, p),
        [drawn(20, width)],
        atol=1e-4,
    )


def test_propagate_linear_in_draws_that_drop_rows(ops: ModuleType) -> None:
    """Each draw drops entries of X, then rows; S* multiplies the first draw."""
    g = inputs()

    def truth(w: Tensor) -> Tensor:
        draws = []
        for _ in range(3):
            z = dense_drop(g.x, 0.3) @ w
            draws.append(z * mask_of((40, 1), 0.5))
        views = [g.adj.to_dense() @ z for z in draws]
        return torch.cat([*views, dense(g.elu_graph) @ draws[0]], dim=1)

    def found(w: Tensor) -> Tensor:
        views = ops.propagate_linear(g, w, 0.3, drop_rows=0.5, draws=3)
        return torch.cat(views.tensors(), dim=1)

    assert_same(found, truth, [drawn(9, 5)])


@pytest.mark.parametrize("order", [0, 1, 4])
def test_mean_propagation(ops: ModuleType, order: int) -> None:
    """Π against repeated dense products."""
    base = inputs(elu="none")
    mean = MeanPropagation(base.adj, order)
    adj = base.adj.to_dense()
    power, total = torch.eye(40), torch.eye(40)
    for _ in range(order):
        power = adj @ power
        total = total + power
    pi = total / (order + 1)
    g = GraphInputs(base.x, mean)
    assert g.layer(1) is None
    assert_same(
        lambda w: ops.propagate_linear(g, w, 0.4).tensors()[0],
        lambda w: pi @ (dense_drop(g.x, 0.4) @ w),
        [drawn(9, 5)],
    )


# --- the hidden layer -------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("kind", ["wide", "apart", "lazy", "one"])
@pytest.mark.parametrize(
    ("n", "h", "k"), [(1, 1, 1), (9, 5, 3), (41, 64, 7), (33, 19, 40), (4100, 8, 2)]
)
def test_relu_dropout_linear(
    ops: ModuleType, p: float, kind: str, n: int, h: int, k: int
) -> None:
    count = 1 if kind == "one" else 2
    rank = 3 if kind == "lazy" else 0
    leaves = [drawn(n, count * h), drawn(rank, h, seed=1), drawn(h), drawn(h, k)]
    left = drawn(n, rank, seed=5)

    def parts(z: Tensor, right: Tensor) -> list[Any]:
        views = list((z * 1.0).chunk(count, dim=1))
        return [views[0], LowRank(left, right.T)] if rank else views

    def found(z: Tensor, right: Tensor, b: Tensor, w: Tensor) -> Tensor:
        given = parts(z, right)
        views = Views.side_by_side(z * 1.0, 2) if kind == "wide" else Views(given)
        return torch.cat(ops.relu_dropout_linear_(views, b, w, p).tensors(), dim=1)

    def truth(z: Tensor, right: Tensor, b: Tensor, w: Tensor) -> Tensor:
        out = []
        for view in parts(z, right):
            hidden = F.relu(dense(view) + b)
            out.append((hidden * mask_of(hidden.shape, p) if p else hidden) @ w)
        return torch.cat(out, dim=1)

    assert_same(found, truth, leaves, rtol=1e-3, atol=1e-3)


def test_consumed_views_are_overwritten(
    ops: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reference fills them with NaN on request; a second reader is an error."""
    monkeypatch.setattr(reference, "_CHECK_CONSUMED", True)
    z, b, w = drawn(6, 4).requires_grad_(), torch.zeros(4), drawn(4, 2)
    kept = z * 1.0
    out = ops.relu_dropout_linear_(Views([kept]), b, w, 0.0).tensors()[0]
    again = kept.square().sum()
    grad = torch.autograd.grad(out.sum(), z, retain_graph=True)[0]
    torch.testing.assert_close(grad, (z > 0) * w.sum(dim=1))
    if ops is reference:
        assert bool(kept.isnan().all())
    elif engine_name() == "fast":
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            again.backward()


def test_what_is_not_owned_is_left_alone(ops: ModuleType) -> None:
    """A leaf is not consumed, whoever needs its gradient."""
    z = drawn(6, 4).requires_grad_()
    before = z.detach().clone()
    out = ops.relu_dropout_linear_(Views([z]), drawn(4), drawn(4, 2), 0.5)
    out.tensors()[0].sum().backward()
    assert torch.equal(z.detach(), before)


# --- the loss ---------------------------------------------------------------------------


def targets_of(n: int, c: int, kinds: str = "both") -> LossTargets:
    generator = torch.Generator().manual_seed(4)
    kind = torch.randint(0, 3, (n,), generator=generator)
    if kinds == "no ELU":
        kind[kind == 1] = 0
    weight = torch.rand(n, generator=generator) * (torch.arange(n) % 3 == 0)
    target = torch.randint(0, c, (n,), generator=generator)
    return LossTargets(target, weight, kind == 1, kind == 2)


def dense_loss(
    original: Tensor, elu: Tensor, w: Tensor, b: Tensor, t: LossTargets, **o: Any
) -> Tensor:
    """Eq. 13, written out."""
    m = (1 - o["eta"]) * original + o["eta"] * elu
    loss = (F.cross_entropy(m, t.target, reduction="none") * t.weight).sum()
    y = m.softmax(dim=1)
    loss = loss - o["entropy_weight"] * (y * y.log()).sum(dim=1).mean()
    p, q = (F.normalize(F.elu(z @ w.T + b), dim=1) for z in (original, elu))
    if not (t.elu.any() and t.nelu.any()):
        return loss
    if o["contrast"] == "distance":
        d = (p - q).square().sum(dim=1)
        pos, neg = (torch.exp(d[x].mean() / o["tau"]) for x in (t.elu, t.nelu))
    else:
        d = torch.exp((p * q).sum(dim=1) / o["tau"])
        pos, neg = d[t.elu].mean(), d[t.nelu].mean()
    return loss - o["contrast_weight"] * torch.log(pos / (pos + neg))


@pytest.mark.parametrize("contrast", ["similarity", "distance"])
@pytest.mark.parametrize("kinds", ["both", "no ELU"])
@pytest.mark.parametrize(("n", "c"), [(5, 2), (70, 7), (4200, 3), (40, 70)])
def test_two_view_loss(
    ops: ModuleType, contrast: str, kinds: str, n: int, c: int
) -> None:
    targets = targets_of(n, c, kinds)
    options = OPTIONS | {"contrast": contrast}

    def found(z: Tensor, w: Tensor, b: Tensor) -> Tensor:
        loss = ops.two_view_loss(Views.side_by_side(z, 2), w, b, targets, **options)
        return 3.0 * loss + z.mean()  # the loss may be a part of an objective

    def truth(z: Tensor, w: Tensor, b: Tensor) -> Tensor:
        loss = dense_loss(*z.chunk(2, dim=1), w, b, targets, **options)
        return 3.0 * loss + z.mean()

    assert_same(found, truth, [drawn(n, 2 * c), drawn(c, c), drawn(c)], atol=1e-4)


@pytest.mark.parametrize("tau", [1e-3, 10.0])
@pytest.mark.parametrize("scale", [1e-4, 1e3])
def test_the_loss_at_its_limits(ops: ModuleType, tau: float, scale: float) -> None:
    """Logits and temperatures at which exponentials would overflow."""
    z, w, b = drawn(50, 8) * scale, drawn(4, 4), torch.zeros(4)
    targets = targets_of(50, 4)
    options = OPTIONS | {"tau": tau}

    def loss(z: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return ops.two_view_loss(Views.side_by_side(z, 2), w, b, targets, **options)

    def exact(z: Tensor, w: Tensor, b: Tensor) -> Tensor:
        wide = Views.side_by_side(z.double(), 2)
        out = reference.two_view_loss(wide, w.double(), b.double(), targets, **options)
        return out.float()

    assert_same(loss, exact, [z, w, b], rtol=2e-2, atol=1e-3 / min(1.0, scale))


def test_nan_stays_nan(ops: ModuleType) -> None:
    z = drawn(10, 6)
    z[3, 2] = torch.nan
    loss = ops.two_view_loss(
        Views.side_by_side(z, 2), drawn(3, 3), drawn(3), targets_of(10, 3), **OPTIONS
    )
    assert bool(loss.isnan())
    hidden = ops.relu_dropout_linear_(Views([z]), torch.zeros(6), drawn(6, 2), 0.0)
    assert bool(hidden.tensors()[0][3].isnan().all())


# --- a whole step -----------------------------------------------------------------------


def step(ops: ModuleType, g: GraphInputs, p: float = 0.5) -> Any:
    """Loss and gradients of the two-view GCN."""
    shapes = [(9, 16), (16,), (16, 3), (3,), (3, 3), (3,)]
    w1, b1, w2, b2, head, bias = leaves = [
        drawn(*shape, seed=i).requires_grad_() for i, shape in enumerate(shapes)
    ]  # fmt: skip
    views = ops.propagate_linear(g, w1, p)
    views = ops.relu_dropout_linear_(views, b1, w2, p)
    views = reference.spmm(g.layer(1), views, b2)
    targets = targets_of(g.num_nodes, 3)
    loss = ops.two_view_loss(views, head, bias, targets, **OPTIONS)
    return loss.detach(), torch.autograd.grad(loss, leaves)


@pytest.mark.parametrize("x_sparse", [True, False], ids=["sparse", "dense"])
def test_a_step_does_not_depend_on_threads(x_sparse: bool) -> None:
    g = inputs(5000, x_sparse=x_sparse)
    results = []
    for count in (1, 2, 3, 2):
        with workspace(), threads(count):
            results.append(step(fast, g))
    for loss, grads in results[1:]:
        torch.testing.assert_close(loss, results[0][0])
        for a, b in zip(grads, results[0][1], strict=True):
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)
    for a, b in zip(results[1][1], results[3][1], strict=True):
        assert torch.equal(a, b)
