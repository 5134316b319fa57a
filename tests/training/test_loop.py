"""The training loop: what it selects, when it stops, what it leaves behind."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elugcn.engine import GraphInputs, Workspace, as_features, normalized_adjacency
from elugcn.models.mlp import MLP
from elugcn.models.two_view_gcn import TwoViewGCN
from elugcn.training.loop import Objective, Trainer, TrainResult, TrainSettings
from elugcn.training.progress import Advance, Progress

TARGET = torch.tensor([1, 0])
NONE = torch.zeros(0, dtype=torch.long)


class Counter(nn.Module):
    """A model whose state says from which epoch it is.

    Adam's steps have length lr for a constant gradient, so after epoch e the parameter
    is −(e+1)·lr; the buffer holds e itself.
    """

    def __init__(self) -> None:
        super().__init__()
        self.step = nn.Parameter(torch.zeros(1))
        self.register_buffer("epochs", torch.zeros(1))


class Scripted(Objective):
    """Predictions for two nodes by a script: right nodes of 2, and margin, per epoch."""

    def __init__(self, script: Sequence[tuple[float, float]], every: int = 1) -> None:
        self.network = self.model = Counter()
        self.script = script
        self.validate_every = every

    def loss(self, epoch: int) -> Tensor:
        assert self.model.training
        assert torch.is_grad_enabled()
        self.model.epochs.fill_(epoch)
        return self.model.step.sum() + 100.0

    def val_logits(self) -> Tensor:
        assert not self.model.training
        assert not torch.is_grad_enabled()
        right, margin = self.script[int(self.model.epochs)]
        signs = [1.0 if i < right else -1.0 for i in range(2)]
        return torch.tensor([[0.0, signs[0] * margin], [signs[1] * margin, 0.0]])

    def logits(self) -> Tensor:
        return torch.cat([self.val_logits(), self.model.epochs.repeat(1, 2)])


def settings(**options: Any) -> TrainSettings:
    return TrainSettings(**{"lr": 0.1, "weight_decay": 0.0} | options)


def trained(
    objective: Objective, target: Tensor = TARGET, **options: Any
) -> TrainResult:
    trainer = Trainer(objective, settings(**options), target, Workspace(0))
    trainer.run_until(10**6)
    result = trainer.result()
    assert trainer.finished
    assert result.n_iter == len(result.history)
    return result


def loss_of(script: Sequence[tuple[float, float]], epoch: int) -> float:
    right, margin = script[epoch]
    ours = right * math.log1p(math.exp(-margin))
    return (ours + (2 - right) * math.log1p(math.exp(margin))) / 2


def test_best_state_is_restored() -> None:
    # Right on both nodes in epoch 2, worse ever after.
    script = [(0, 1.0), (1, 1.0), (2, 1.0), (1, 1.0), (0, 1.0), (0, 2.0)]
    objective = Scripted(script)
    result = trained(objective, epochs=6)
    assert (result.epoch, result.n_iter, result.val_accuracy) == (2, 6, 1.0)
    assert result.val_loss == pytest.approx(loss_of(script, 2))
    # Parameters and buffers are those after epoch 2: three steps of lr = 0.1.
    assert objective.model.step.item() == pytest.approx(-0.3, abs=1e-5)
    assert float(objective.model.epochs) == float(result.logits[2, 0]) == 2
    assert not objective.model.training


def test_history() -> None:
    script = [(0, 1.0), (2, 0.5), (1, 2.0)]
    history = trained(Scripted(script), epochs=3).history
    assert [r["epoch"] for r in history] == [0, 1, 2]
    assert [r["val_accuracy"] for r in history] == [0.0, 1.0, 0.5]
    for i, record in enumerate(history):
        assert record["val_loss"] == pytest.approx(loss_of(script, i))
        assert record["loss"] == pytest.approx(100 - 0.1 * i, abs=1e-4)


NAN = math.nan
SELECTIONS = {
    "ties go to the lower loss": ([(2, 1.0), (2, 3.0), (2, 2.0), (1, 9.0)], {}, 1),
    "equal epochs keep the first": ([(1, 1.0)] * 4, {}, 0),
    "NaN is worse than any loss": ([(1, NAN), (1, 3.0), (1, NAN), (1, 1.0)], {}, 3),
    "NaN is worse, by loss": (
        [(1, NAN), (1, 3.0), (1, NAN), (1, 1.0)],
        {"select": "loss"},
        3,
    ),
    "the best outlives a divergence": ([(1, 1.0), (2, 3.0), (1, NAN)], {}, 1),
    "accuracy first": ([(2, 0.01), (1, 0.0)], {}, 0),
    "the last": ([(2, 1.0), (0, 1.0), (0, 1.0)], {"select": "last"}, 2),
}


@pytest.mark.parametrize("name", SELECTIONS)
def test_selection(name: str) -> None:
    script, options, expected = SELECTIONS[name]
    objective = Scripted(script)
    result = trained(objective, epochs=len(script), **options)
    assert result.epoch == expected
    assert float(objective.model.epochs) == expected


@pytest.mark.parametrize(("select", "expected"), [("accuracy", 0), ("loss", 1)])
def test_each_rule_prefers_another_epoch(select: str, expected: int) -> None:
    """Both right by a hair (loss 0.69), then one by far and one wrong by a hair."""
    objective = Scripted([])
    rows = [[0.0, 0.01], [0.01, 0.0]], [[0.0, 20.0], [0.0, 0.01]]
    objective.val_logits = lambda: torch.tensor(  # type: ignore[method-assign]
        rows[int(objective.model.epochs)]
    )
    assert trained(objective, epochs=2, select=select).epoch == expected


def test_an_own_score_selects_in_place_of_accuracy() -> None:
    script = [(0, 1.0), (2, 1.0), (1, 1.0), (1, 2.0)]
    scores = iter([0.1, 0.2, 0.9, 0.3])
    objective = Scripted(script)
    trainer = Trainer(
        objective, settings(epochs=4), TARGET, Workspace(0), lambda z, y: next(scores)
    )
    trainer.run_until(4)
    result = trainer.result()
    assert (result.epoch, result.val_accuracy) == (2, 0.5)
    assert [r["val_score"] for r in result.history] == [0.1, 0.2, 0.9, 0.3]


@pytest.mark.parametrize("patience", [1, 3, 5])
@pytest.mark.parametrize("best", [0, 2])
def test_patience_stops_exactly_when_it_should(patience: int, best: int) -> None:
    # A little better in every epoch up to the best one.
    script = [(0, 3.0 - i) for i in range(best)] + [(2, 1.0)] + [(1, 1.0)] * 40
    result = trained(Scripted(script), epochs=30, patience=patience)
    # ``patience`` epochs without an improvement after the best one, then the end.
    assert (result.epoch, result.n_iter) == (best, best + 1 + patience)


def test_an_improvement_in_time_starts_patience_again() -> None:
    script = [(0, 1.0), (1, 1.0), (0, 1.0), (0, 1.0), (2, 1.0), *[(0, 1.0)] * 20]
    result = trained(Scripted(script), epochs=20, patience=3)
    assert (result.epoch, result.n_iter) == (4, 8)
    result = trained(Scripted(script), epochs=20, patience=2)
    assert (result.epoch, result.n_iter) == (1, 4)


def test_only_every_third_epoch_competes_and_the_last() -> None:
    # Epoch 3 is the best of all; 2 and 5 are validated, and 6 because it is the last.
    script = [(0, 1.0), (0, 1.0), (1, 1.0), (2, 1.0), (0, 1.0), (0, 1.0), (1, 2.0)]
    result = trained(Scripted(script, every=3), epochs=7)
    assert (result.epoch, result.n_iter) == (2, 7)
    known = [not math.isnan(r["val_accuracy"]) for r in result.history]
    assert known == [False, False, True, False, False, True, True]
    script[6] = (2, 1.0)
    assert trained(Scripted(script, every=3), epochs=7).epoch == 6
    # Patience is in epochs, and runs out where it is looked at.
    long = [(0, 1.0), (1, 1.0), *[(0, 1.0)] * 30]
    assert trained(Scripted(long, every=2), epochs=30, patience=3).n_iter == 6


def test_without_validation_nodes_the_last_epoch_is_kept() -> None:
    class Unvalidated(Scripted):
        def val_logits(self) -> Tensor:
            return torch.zeros(0, 2)

    objective = Unvalidated([(2, 1.0)] * 10)
    result = trained(objective, NONE, epochs=10, patience=2)
    assert (result.epoch, result.n_iter) == (9, 10)
    assert float(objective.model.epochs) == 9
    assert math.isnan(result.val_accuracy)
    assert math.isnan(result.val_loss)


# --- real networks ------------------------------------------------------------------------

Problem = tuple[GraphInputs, Tensor]


@pytest.fixture(scope="module")
def problem() -> Problem:
    generator = torch.Generator().manual_seed(9)
    edges = torch.randint(0, 40, (2, 80), generator=generator)
    x = torch.randn(40, 12, generator=generator)
    x = as_features(torch.where(x > 0.9, x, 0.0))
    y = torch.randint(0, 3, (40,), generator=generator)
    return GraphInputs(x, normalized_adjacency(edges, 40)), y


class Labels(Objective):
    """Cross-entropy on nodes 0 to 14; nodes 15 to 24 select."""

    def __init__(self, problem: Problem, kind: str = "gcn", seed: int = 3) -> None:
        torch.manual_seed(seed)
        self.network = TwoViewGCN(12, 8, 3) if kind == "gcn" else MLP(12, 8, 3)
        self.inputs, self.y = problem

    def loss(self, epoch: int) -> Tensor:
        return F.cross_entropy(self.logits()[:15], self.y[:15])

    def logits(self) -> Tensor:
        return self.network(self.inputs)

    def val_logits(self) -> Tensor:
        return self.logits()[15:25]


def trainer_of(problem: Problem, seed: int = 0, **options: Any) -> Trainer:
    given = settings(**{"epochs": 30} | options)
    return Trainer(Labels(problem), given, problem[1][15:25], Workspace(seed))


def test_pausing_changes_nothing(problem: Problem) -> None:
    """Another training may run meanwhile; the state of Adam and the bits are kept."""
    whole, paused, other = (trainer_of(problem, seed) for seed in (0, 0, 1))
    whole.run_until(30)
    for epoch in (1, 2, 9, 9, 10, 30, 99):
        paused.run_until(epoch)
        assert len(paused.history) == min(epoch, 30)
        assert paused.finished == (epoch >= 30)
        other.run_until(epoch)
    one, two, different = whole.result(), paused.result(), other.result()
    assert torch.equal(one.logits, two.logits)
    assert one.history == two.history
    assert one.history != different.history


@pytest.mark.parametrize("decay", ["all", "first"])
@pytest.mark.parametrize("kind", ["gcn", "mlp"])
def test_equals_a_loop_by_hand(problem: Problem, decay: str, kind: str) -> None:
    objective, twin = Labels(problem, kind), Labels(problem, kind)
    objective.val_logits = lambda: torch.zeros(0, 3)  # type: ignore[method-assign]
    options = {"lr": 0.02, "weight_decay": 0.05, "decay": decay, "epochs": 25}
    result = trained(objective, NONE, **options)
    named = dict(twin.network.named_parameters())
    later = 0.05 if decay == "all" else 0.0
    groups = [
        {"params": [named["W1"], named["b1"]], "weight_decay": 0.05},
        {"params": [named["W2"], named["b2"]], "weight_decay": later},
    ]
    optimizer = torch.optim.Adam(groups, lr=0.02, fused=True)
    with Workspace(0) as workspace:
        for epoch in range(25):
            workspace.begin_step(epoch)
            optimizer.zero_grad()
            twin.loss(epoch).backward()
            optimizer.step()
    for name, parameter in objective.network.named_parameters():
        assert torch.equal(parameter, named[name]), name
    twin.network.eval()
    with torch.no_grad():
        assert torch.equal(result.logits, twin.logits())


class Parts(Objective):
    """A network of one parameter per name, and a head; all gradients are as given."""

    def __init__(self, gradients: dict[str, float], head: float = 0.0) -> None:
        self.network = nn.ParameterDict({k: torch.ones(1) for k in gradients})
        self.head = nn.ParameterDict({"head": torch.ones(1)})
        self.extra = (self.head,)
        self.gradients = gradients | {"head": head}

    def loss(self, epoch: int) -> Tensor:
        named = [*self.network.items(), *self.head.items()]
        return torch.stack([x.sum() * self.gradients[k] for k, x in named]).sum()

    def val_logits(self) -> Tensor:
        return torch.zeros(0, 2)

    logits = val_logits


def test_groups_of_parameters() -> None:
    """Adam's first step has the length of its learning rate, whatever the decay."""
    groups = {"a": {"lr": 0.01}, "c": {"weight_decay": 0.0}}
    objective = Parts({"a": 0.0, "b": 0.0, "c": 0.0})
    trained(objective, NONE, epochs=1, weight_decay=1.0, param_groups=groups)
    values = {k: x.item() for k, x in objective.network.items()}
    assert values == pytest.approx({"a": 0.99, "b": 0.9, "c": 1.0}, abs=1e-5)
    # Without a gradient only decay could move the head, and it has none.
    assert objective.head["head"].item() == 1.0
    objective = Parts({"a": 0.0}, head=1.0)
    trained(objective, NONE, epochs=4)
    assert objective.head["head"].item() == pytest.approx(0.6, abs=1e-5)


def test_progress_hears_of_every_epoch() -> None:
    class Recorder(Progress):
        stages: list[tuple[str, int]] = []  # noqa: RUF012
        records: list[Any] = []  # noqa: RUF012

        @contextmanager
        def stage(self, name: str, total: int, done: int = 0) -> Iterator[Advance]:
            self.stages.append((name, total))
            yield self.records.append

    progress = Recorder()
    objective = Scripted([(1, 1.0)] * 50)
    trainer = Trainer(objective, settings(epochs=50, patience=4), TARGET, Workspace(0))
    trainer.run_until(50, progress, "gcn")
    assert progress.stages == [("gcn", 50)]
    assert progress.records == trainer.history
    assert len(progress.records) == 5
