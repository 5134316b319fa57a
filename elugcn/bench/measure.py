"""Fair times on a machine that others use too.

Contestants take turns, step by step, so that whatever else the machine does meets all
of them alike; medians forget the rest. Times are processor times of this process: with
one thread that is what the clock on the wall shows when nobody disturbs, and unlike the
clock it does not count the others' turns on the core, of which a long step has more
than a short one. The wall clock is kept beside it, as the measure of disturbance.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median

from elugcn.training.progress import Advance, Progress

Step = Callable[[], object]

# In a training loop a step finds its data in the caches, where the step of another
# contestant has just been: a step shorter than this many seconds is run once more
# before the one that is timed.
SHORT = 0.05


@dataclass
class Times:
    """Processor and wall-clock seconds of repeated steps."""

    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)

    @property
    def ms(self) -> float:
        """Median processor time of a step in milliseconds."""
        return 1000 * median(self.cpu)


class Stopwatch:
    """Processor and wall-clock time since it was made, or since ``restart``."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Begin anew."""
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def read(self) -> tuple[float, float]:
        """Processor and wall-clock seconds."""
        return time.process_time() - self._cpu, time.perf_counter() - self._wall


class Rounds:
    """Contestants that take one step each per round.

    Args:
        steps: The contestants by name.
        warmup: Rounds that are run and not kept.
    """

    def __init__(self, steps: Mapping[str, Step], warmup: int = 2) -> None:
        self.times = {name: Times() for name in steps}
        self._steps = steps
        self._warmup = warmup
        self._last: dict[str, float] = {}

    def play(self) -> None:
        """One round."""
        for name, step in self._steps.items():
            if self._last.get(name, 0.0) < SHORT:
                step()
            watch = Stopwatch()
            step()
            cpu, wall = watch.read()
            self._last[name] = cpu
            if self._warmup <= 0:
                self.times[name].cpu.append(cpu)
                self.times[name].wall.append(wall)
        self._warmup -= 1


def alternate(
    steps: Mapping[str, Step], rounds: int, warmup: int = 2
) -> dict[str, Times]:
    """Times of each contestant over ``rounds`` rounds after the warm-up."""
    contest = Rounds(steps, warmup)
    for _ in range(warmup + rounds):
        contest.play()
    return contest.times


class Turns(Progress):
    """Lets others take their turn between the epochs of a training loop.

    The loop is the package's own, as users run it: this is the progress display it
    reports its epochs to. Every second epoch is timed, the one before it only warms
    the caches. ``epochs`` is how many the loop must run.

    Args:
        stage: The stage of the training that is timed; others pass by.
        others: The contestants beside the loop.
        rounds: Timed epochs.
        warmup: Timed epochs before them that are not kept.
    """

    def __init__(
        self, stage: str, others: Mapping[str, Step], rounds: int, warmup: int = 2
    ) -> None:
        self.epochs = 2 * (warmup + rounds)
        self.own = Times()
        self._stage = stage
        self._others = Rounds(others, warmup)
        self._warmup = warmup

    @property
    def times(self) -> dict[str, Times]:
        """Of the others, by name."""
        return self._others.times

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[Advance]:
        """Time this stage if it is the one, else do nothing."""
        if name != self._stage:
            yield lambda record: None
            return
        epoch = 0
        watch = Stopwatch()

        def advance(record: dict[str, float]) -> None:
            nonlocal epoch
            cpu, wall = watch.read()
            epoch += 1
            if epoch % 2 == 0:
                if epoch > 2 * self._warmup:
                    self.own.cpu.append(cpu)
                    self.own.wall.append(wall)
                self._others.play()
            watch.restart()

        yield advance
