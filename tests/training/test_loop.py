"""The training loop: what it selects, when it stops, what it leaves behind."""

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.utils import to_undirected

from elugcn.core.sparse import features, normalized_adjacency
from elugcn.nn import GCN, MLP
from elugcn.training.loop import Fit, Trained, train
from elugcn.training.progress import Advance, Progress


class Counter(nn.Module):
    """A model whose state says from which epoch it is.

    Adam's steps have length lr for a constant gradient, so after epoch e the parameter
    is −(e+1)·lr; the buffer holds e itself.
    """

    def __init__(self) -> None:
        super().__init__()
        self.step = nn.Parameter(torch.zeros(1))
        self.register_buffer("epochs", torch.zeros(1))

    def first_layer(self) -> list[nn.Parameter]:
        return [self.step]


# Two validation nodes of class 1 and 0. A script of (accuracy, confidence) pairs says
# what the model predicts for them, epoch by epoch.
LABELS = torch.tensor([1, 0, -1])
VAL = torch.tensor([True, True, False])


def scripted(
    script: Sequence[tuple[float, float]], fit: Fit, val: Tensor = VAL, every: int = 1
) -> tuple[Trained, Counter]:
    """Train on predictions that follow ``script``: right nodes of 2, and margin."""
    model = Counter()

    def loss(epoch: int) -> Tensor:
        assert model.training
        assert torch.is_grad_enabled()
        model.epochs.fill_(epoch)
        return model.step.sum() + 100.0

    def predict() -> Tensor:
        assert not model.training
        assert not torch.is_grad_enabled()
        right, margin = script[int(model.epochs)]
        signs = [1.0 if i < right else -1.0 for i in range(2)]
        return torch.tensor(
            [
                [0.0, signs[0] * margin],
                [signs[1] * margin, 0.0],
                [float(model.epochs), 0.0],
            ]
        )

    fit = Fit(
        lr=0.1,
        weight_decay=0.0,
        epochs=fit.epochs,
        patience=fit.patience,
        select=fit.select,
    )
    return train(model, loss, predict, LABELS, val, fit, every=every), model


def loss_of(script: Sequence[tuple[float, float]], epoch: int) -> float:
    right, margin = script[epoch]
    wrong = 2 - right
    return (
        right * math.log1p(math.exp(-margin)) + wrong * math.log1p(math.exp(margin))
    ) / 2


def test_best_state_is_restored() -> None:
    # Right on both nodes in epoch 2, worse ever after.
    script = [(0, 1.0), (1, 1.0), (2, 1.0), (1, 1.0), (0, 1.0), (0, 2.0)]
    trained, model = scripted(script, Fit(epochs=6, patience=100))
    assert trained.epoch == 2
    assert trained.val_accuracy == 1.0
    assert trained.val_loss == pytest.approx(loss_of(script, 2))
    assert trained.n_iter == len(trained.history) == 6
    # Parameters and buffers are those after epoch 2: three steps of lr = 0.1.
    assert model.step.item() == pytest.approx(-0.3, abs=1e-5)
    assert float(model.epochs) == 2
    assert float(trained.logits[2, 0]) == 2
    assert not model.training


def test_history() -> None:
    script = [(0, 1.0), (2, 0.5), (1, 2.0)]
    trained, _ = scripted(script, Fit(epochs=3))
    assert [r["epoch"] for r in trained.history] == [0, 1, 2]
    assert [r["val_accuracy"] for r in trained.history] == [0.0, 1.0, 0.5]
    for i, record in enumerate(trained.history):
        assert record["val_loss"] == pytest.approx(loss_of(script, i))
        assert record["loss"] == pytest.approx(100 - 0.1 * i, abs=1e-4)
    assert trained.seconds > 0


def test_ties_in_accuracy_go_to_the_lower_loss() -> None:
    script = [(2, 1.0), (2, 3.0), (2, 2.0), (1, 9.0)]
    trained, _ = scripted(script, Fit(epochs=4))
    assert trained.epoch == 1


@pytest.mark.parametrize("select", ["accuracy", "loss"])
def test_an_epoch_without_a_loss_is_worse_than_any_other(select: str) -> None:
    script = [(1, math.nan), (1, 3.0), (1, math.nan), (1, 1.0), (1, 2.0)]
    trained, _ = scripted(script, Fit(epochs=5, select=select))
    assert trained.history[0]["val_accuracy"] == 1.0  # argmax of what is no number
    assert trained.epoch == 3
    assert trained.val_loss == pytest.approx(loss_of(script, 3))


def test_equal_epochs_keep_the_first() -> None:
    trained, _ = scripted([(1, 1.0)] * 4, Fit(epochs=4))
    assert trained.epoch == 0


def test_selection_by_accuracy_or_by_loss() -> None:
    """Two epochs where each rule prefers the other one."""
    model = Counter()
    # Epoch 0: both right by a hair (loss ≈ 0.69). Epoch 1: one right by far, one
    # wrong by a hair (loss ≈ 0.35).
    outputs = [
        torch.tensor([[0.0, 0.01], [0.01, 0.0], [0.0, 0.0]]),
        torch.tensor([[0.0, 20.0], [0.0, 0.01], [0.0, 0.0]]),
    ]

    def run(select: str) -> int:
        def loss(epoch: int) -> Tensor:
            model.epochs.fill_(epoch)
            return model.step.sum()

        fit = Fit(epochs=2, select=select)
        return train(
            model, loss, lambda: outputs[int(model.epochs)], LABELS, VAL, fit
        ).epoch

    assert run("accuracy") == 0
    assert run("loss") == 1


@pytest.mark.parametrize("patience", [1, 3, 5])
@pytest.mark.parametrize("best", [0, 2])
def test_patience_stops_exactly_when_it_should(patience: int, best: int) -> None:
    # A little better in every epoch up to the best one.
    script = [(0, 3.0 - i) for i in range(best)] + [(2, 1.0)] + [(1, 1.0)] * 40
    trained, _ = scripted(script, Fit(epochs=30, patience=patience))
    assert trained.epoch == best
    # ``patience`` epochs without an improvement after the best one, then the end.
    assert trained.n_iter == best + 1 + patience


def test_only_every_third_epoch_competes_and_the_last() -> None:
    # Epoch 3 is the best of all; 2 and 5 are validated, and 6 because it is the last.
    script = [(0, 1.0), (0, 1.0), (1, 1.0), (2, 1.0), (0, 1.0), (0, 1.0), (1, 2.0)]
    trained, model = scripted(script, Fit(epochs=7), every=3)
    assert trained.epoch == 2
    assert float(model.epochs) == 2
    known = [not math.isnan(r["val_accuracy"]) for r in trained.history]
    assert known == [False, False, True, False, False, True, True]
    assert trained.n_iter == 7
    script[6] = (2, 1.0)
    assert scripted(script, Fit(epochs=7), every=3)[0].epoch == 6
    # Patience is in epochs, and runs out where it is looked at.
    long = [(0, 1.0), (1, 1.0), *[(0, 1.0)] * 30]
    assert scripted(long, Fit(epochs=30, patience=3), every=2)[0].n_iter == 6


def test_an_improvement_in_time_starts_patience_again() -> None:
    script = [(0, 1.0), (1, 1.0), (0, 1.0), (0, 1.0), (2, 1.0), *[(0, 1.0)] * 20]
    trained, _ = scripted(script, Fit(epochs=20, patience=3))
    assert trained.epoch == 4
    assert trained.n_iter == 8
    trained, _ = scripted(script, Fit(epochs=20, patience=2))
    assert trained.epoch == 1
    assert trained.n_iter == 4


def test_without_validation_nodes_the_last_epoch_is_kept() -> None:
    script = [(2, 1.0)] + [(0, 1.0)] * 9
    trained, model = scripted(
        script, Fit(epochs=10, patience=2), val=torch.zeros(3, dtype=torch.bool)
    )
    assert trained.epoch == 9
    assert trained.n_iter == 10
    assert float(model.epochs) == 9
    assert math.isnan(trained.val_accuracy)
    assert math.isnan(trained.val_loss)


def test_only_validation_nodes_decide() -> None:
    # Node 2 has no label (−1): it would break the loss if it were looked at.
    trained, _ = scripted([(1, 1.0)], Fit(epochs=1))
    assert trained.val_accuracy == 0.5


class Recorder(Progress):
    def __init__(self) -> None:
        self.stages: list[tuple[str, int]] = []
        self.records: list[dict[str, float]] = []

    def stage(self, name: str, total: int) -> AbstractContextManager[Advance]:
        self.stages.append((name, total))
        return nullcontext(self.records.append)


def test_progress_hears_of_every_epoch() -> None:
    progress = Recorder()
    model = Counter()
    trained = train(
        model, lambda _: model.step.sum(), lambda: torch.zeros(3, 2), LABELS, VAL,
        Fit(epochs=50, patience=4), progress=progress, stage="gcn",
    )  # fmt: skip
    assert progress.stages == [("gcn", 50)]
    assert progress.records == trained.history
    assert len(progress.records) == 5


# --- against a loop written by hand -----------------------------------------------------


def problem() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(9)
    edges = to_undirected(torch.randint(0, 40, (2, 80), generator=generator))
    x = torch.randn(40, 12, generator=generator)
    x = torch.where(x > 0.9, x, 0.0)
    y = torch.randint(0, 3, (40,), generator=generator)
    mask = torch.zeros(40, dtype=torch.bool)
    mask[:15] = True
    return edges, x, y, mask


def by_hand(
    model: nn.Module, groups: list[dict], epochs: int, loss: Callable[[], Tensor]
) -> None:
    optimizer = torch.optim.Adam(groups, lr=0.02, fused=True)
    for _ in range(epochs):
        model.train()
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
    model.eval()


@pytest.mark.parametrize("decay", ["all", "first"])
@pytest.mark.parametrize("kind", ["gcn", "mlp"])
def test_equals_a_loop_by_hand_bit_for_bit(decay: str, kind: str) -> None:
    edges, x, y, mask = problem()
    adj, inputs = normalized_adjacency(edges, 40), features(x)

    def build() -> nn.Module:
        torch.manual_seed(3)
        return GCN(12, 8, 3) if kind == "gcn" else MLP(12, 8, 3)

    def logits(model: nn.Module) -> Tensor:
        return model(inputs, adj)[0] if kind == "gcn" else model(inputs)

    def objective(model: nn.Module) -> Tensor:
        return F.cross_entropy(logits(model)[mask], y[mask])

    model = build()
    fit = Fit(lr=0.02, weight_decay=0.05, decay=decay, epochs=25)
    none = torch.zeros(40, dtype=torch.bool)
    trained = train(
        model, lambda _: objective(model), lambda: logits(model), y, none, fit
    )

    twin = build()
    named = dict(twin.named_parameters())
    first = {"weights.0", "biases.0"} if kind == "gcn" else {"weight", "bias"}
    assert first < set(named)
    groups = [
        {"params": [p for n, p in named.items() if n in first], "weight_decay": 0.05},
        {
            "params": [p for n, p in named.items() if n not in first],
            "weight_decay": 0.05 if decay == "all" else 0.0,
        },
    ]
    by_hand(twin, groups, 25, lambda: objective(twin))
    for (name, ours), theirs in zip(
        model.named_parameters(), twin.parameters(), strict=True
    ):
        assert torch.equal(ours, theirs), name
    with torch.no_grad():
        assert torch.equal(trained.logits, logits(twin))


def test_decay_of_the_first_layer_leaves_the_others() -> None:
    # No gradient at all: only weight decay could move a parameter.
    model = GCN(4, 3, 2)
    before = [p.detach().clone() for p in model.parameters()]
    none = torch.zeros(1, dtype=torch.bool)
    fit = Fit(lr=0.01, weight_decay=1.0, decay="first", epochs=3)
    train(
        model, lambda _: sum((p * 0).sum() for p in model.parameters()),
        lambda: torch.zeros(1, 2), torch.tensor([0]), none, fit,
    )  # fmt: skip
    moved = [
        not torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True)
    ]
    names = [n for n, _ in model.named_parameters()]
    # Biases start at zero, where decay has nothing to take.
    assert [n for n, m in zip(names, moved, strict=True) if m] == ["weights.0"]


def test_extra_parameters_are_trained_without_decay() -> None:
    model, head = Counter(), nn.Linear(2, 1, bias=False)
    idle = nn.Parameter(torch.ones(3))
    head.register_parameter("idle", idle)
    start = head.weight.detach().clone()
    train(
        model, lambda _: head.weight.sum() + model.step.sum() + (idle * 0).sum(),
        lambda: torch.zeros(3, 2), LABELS, VAL, Fit(lr=0.1, weight_decay=1.0, epochs=4), extra=head,
    )  # fmt: skip
    torch.testing.assert_close(head.weight, start - 0.4, atol=1e-5, rtol=0)
    assert torch.equal(idle, torch.ones(3))


@pytest.mark.parametrize("drop_node", [0.0, 0.3])
def test_same_seed_same_bits(drop_node: float) -> None:
    edges, x, y, mask = problem()
    val = torch.zeros(40, dtype=torch.bool)
    val[15:25] = True

    def run(seed: int) -> Trained:
        torch.manual_seed(seed)
        model = GCN(12, 8, 3, drop_node=drop_node)
        adj, inputs = normalized_adjacency(edges, 40), features(x)
        return train(
            model, lambda _: F.cross_entropy(model(inputs, adj)[0][mask], y[mask]),
            lambda: model(inputs, adj)[0], y, val, Fit(epochs=30),
        )  # fmt: skip

    one, two, other = run(0), run(0), run(1)
    assert torch.equal(one.logits, two.logits)
    assert one.history == two.history
    assert not torch.equal(one.logits, other.logits)


def test_training_learns() -> None:
    _, x, y, mask = problem()
    model = MLP(12, 16, 3, dropout=0.0)
    none = torch.zeros(40, dtype=torch.bool)
    x = torch.randn(40, 12)
    trained = train(
        model, lambda _: F.cross_entropy(model(x)[mask], y[mask]), lambda: model(x),
        y, none, Fit(lr=0.05, weight_decay=0.0, epochs=100),
    )  # fmt: skip
    assert torch.equal(trained.logits[mask].argmax(dim=1), y[mask])
    assert trained.history[-1]["loss"] < 0.05


@pytest.mark.parametrize("select", ["accuracy", "loss"])
def test_the_best_epoch_outlives_a_divergence_at_the_end(select: str) -> None:
    script = [(1, 1.0), (2, 3.0), (1, math.nan), (1, math.nan)]
    trained, model = scripted(script, Fit(epochs=4, select=select))
    assert trained.epoch == 1
    assert float(model.epochs) == 1


def test_what_is_trained_apart_keeps_the_decay() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = (nn.Parameter(torch.ones(1)) for _ in range(2))

    m = Two()
    fit_ = Fit(lr=0.1, weight_decay=1.0, epochs=1, apart={"a": {"lr": 0.01}})
    train(
        m,
        lambda _: (m.a * 0 + m.b * 0).sum(),
        lambda: torch.zeros(1, 2),
        torch.tensor([0]),
        torch.zeros(1, dtype=torch.bool),
        fit_,
    )
    # Adam's first step has the length of its lr, whatever the decay.
    assert m.a.item() == pytest.approx(0.99, abs=1e-5)
    assert m.b.item() == pytest.approx(0.9, abs=1e-5)
