import time

import pytest
import torch
from torch import nn

from elugcn.bench.measure import SHORT, Stopwatch, Turns, alternate
from elugcn.training.loop import Fit, train


def burn(seconds: float) -> None:
    """Keep the processor busy."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_contestants_alternate() -> None:
    calls: list[str] = []
    steps = {"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}
    times = alternate(steps, rounds=3, warmup=1)
    # A short step is run once before it is timed.
    assert calls == ["a", "a", "b", "b"] * 4
    assert {name: len(t.cpu) for name, t in times.items()} == {"a": 3, "b": 3}


def test_a_long_step_is_run_once_a_round() -> None:
    calls = []

    def step() -> None:
        calls.append(1)
        burn(1.2 * SHORT)

    alternate({"long": step}, rounds=2, warmup=1)
    # Before the first time it is not known to be long.
    assert len(calls) == 4


def test_times_are_those_of_the_processor() -> None:
    slow, lazy = (lambda: burn(0.02)), (lambda: time.sleep(0.02))
    times = alternate({"busy": slow, "asleep": lazy}, rounds=3, warmup=0)
    assert times["busy"].ms == pytest.approx(20, rel=0.3)
    assert times["asleep"].ms < 5
    assert min(times["asleep"].wall) >= 0.02


def test_median_forgets_the_odd_one_out() -> None:
    spent = iter([0.005, 0.005, 0.005, 0.08, 0.005])
    calls = iter(range(100))

    def step() -> None:
        if next(calls) % 2:  # each timed step follows one that is not
            burn(next(spent))

    assert alternate({"x": step}, 5, warmup=0)["x"].ms == pytest.approx(5, rel=0.5)


def test_a_stopwatch_can_begin_anew() -> None:
    watch = Stopwatch()
    burn(0.05)
    assert watch.read()[0] >= 0.05
    watch.restart()
    assert watch.read()[0] < 0.04


class TestTurns:
    def run(self, turns: Turns, name: str = "main") -> int:
        """The package's loop on three nodes; how many epochs it ran."""
        model = nn.Linear(2, 2)
        x, y = torch.rand(3, 2), torch.tensor([0, 1, 1])

        def loss(epoch: int) -> torch.Tensor:
            burn(0.003)
            return nn.functional.cross_entropy(model(x), y)

        fit = Fit(epochs=turns.epochs, patience=turns.epochs)
        mask = torch.ones(3, dtype=torch.bool)
        done = train(model, loss, lambda: model(x), y, mask, fit, progress=turns,
                     stage=name)  # fmt: skip
        return done.n_iter

    def test_the_others_play_between_epochs_and_are_not_counted(self) -> None:
        turns = Turns("main", {"peer": lambda: burn(0.06)}, rounds=4, warmup=1)
        assert self.run(turns) == 10
        assert len(turns.own.cpu) == len(turns.times["peer"].cpu) == 4
        # Every epoch burns 3 ms; a peer's turn of 60 ms shows in none of them.
        assert min(turns.own.cpu) >= 0.003
        assert turns.own.ms < 30
        assert turns.times["peer"].ms == pytest.approx(60, rel=0.3)

    def test_other_stages_pass_by(self) -> None:
        turns = Turns("main", {"peer": lambda: pytest.fail("played")}, 1, 0)
        assert self.run(turns, "pretrain") == 2
        assert turns.own.cpu == []
