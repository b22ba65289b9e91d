"""Runners that draw nothing, for tests and for measuring the scheduler: workers as a list of tasks in hand."""

from __future__ import annotations

import random
from collections.abc import Callable

from jaxmon.rules.tasks import Done, Task


class Shuffling:
    """`workers` tasks in hand, done in an order of its own; every fourth one is done twice, as after a death.

    Attributes: most: tasks that were in hand at once. drained: whether `drain` was called.
    """

    def __init__(self, do: Callable[[Task], Done], workers: int, seed: int):
        self._do, self._workers, self._luck = do, workers, random.Random(seed)
        self._hand: list[Task] = []
        self.most, self.drained = 0, False

    def free(self) -> int:
        return self._workers - len(self._hand)

    def busy(self) -> int:
        return len(self._hand)

    def start(self, task: Task) -> None:
        assert not self.drained
        self._hand.append(task)
        self.most = max(self.most, len(self._hand))

    def wait(self) -> list[Done]:
        count = self._luck.randint(1, len(self._hand))
        self._luck.shuffle(self._hand)
        taken, self._hand = self._hand[:count], self._hand[count:]
        again = [task for task in taken if self._luck.random() < 0.25]
        first = [self._do(task) for task in taken]
        assert [self._do(task).hits for task in again] == [d.hits for d in first if d.task in again]
        return first

    def drain(self) -> None:
        self.drained = True
