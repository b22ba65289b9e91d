"""This process does the work, one task after another."""

from __future__ import annotations

from collections.abc import Callable

from jaxmon.rules.tasks import Done, Task


class Local:
    """A runner (schedule.Runner) with one worker, which works while it is waited for."""

    def __init__(self, do: Callable[[Task], Done]):
        self._do, self._task = do, list[Task]()

    def free(self) -> int:
        return 1 - len(self._task)

    def busy(self) -> int:
        return len(self._task)

    def start(self, task: Task) -> None:
        self._task.append(task)

    def wait(self) -> list[Done]:
        return [self._do(self._task.pop())]

    def drain(self) -> None:
        """What is in hand is finished by the next wait."""

    def __str__(self) -> str:
        return ""
