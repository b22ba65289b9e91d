"""Which task is done next: all records' courses go on side by side, a barrier only within one record.

The oldest record's tasks come first, so records end in about their order, and another record is opened only when no
task waits: an open record always has a task waiting or in hand, so there are never more open records than workers and
one. The schedule decides when a chain is drawn, never which or how: any order makes the same files.

Knows: tasks, a runner. Does not know: rules, models, files, processes.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from typing import Protocol

from jaxmon.rules.tasks import Done, Task, Work


class Runner(Protocol):
    """Does tasks, in any order, each at least once."""

    def free(self) -> int:
        """How many tasks it would take now."""
        ...

    def busy(self) -> int:
        """How many tasks are in hand."""
        ...

    def start(self, task: Task) -> None: ...

    def wait(self) -> list[Done]:
        """Waits for news: tasks that are done, their files on disk; or none, but more workers, or none yet.

        Raises:
          ValueError, OSError, MemoryError: a task cannot be done; what is on disk is whole.
        """
        ...

    def drain(self) -> None:
        """From now on what is in hand is finished or given up, and nothing started again."""
        ...


class _Open:
    """A record under way: its work, and the tasks of the present step that are done."""

    def __init__(self, name: str, number: int, work: Work):
        self.name, self.number, self._work = name, number, work
        self.missing, self._done = 0, list[Done]()

    def begin(self) -> list[Task]:
        return self._asked(next(self._work, []))

    def hear(self, done: Done) -> list[Task]:
        """The tasks that follow; none while others of the step are missing, or at the end."""
        self._done.append(done)
        self.missing -= 1
        if self.missing:
            return []
        step, self._done = self._done, []
        try:
            return self._asked(self._work.send(step))
        except StopIteration:
            return []

    def _asked(self, tasks: list[Task]) -> list[Task]:
        self.missing = len(tasks)
        return tasks


def schedule(
    works: Iterable[tuple[str, Work]],
    runner: Runner,
    heard: Callable[[Done], object] = id,
    finished: Callable[[str], object] = id,
    stopping: Callable[[], bool] = bool,
) -> bool:
    """Does the works of all records; returns False where it was stopped before the end.

    Args:
      works: (record id, its work), opened one after another as workers become free.
      heard: called with every task that is done.
      finished: called with a record's id when all of its tasks are.
      stopping: once true, what is in hand is finished and nothing is started.
    """
    coming = enumerate(works)
    waiting: list[tuple[int, int, Task]] = []
    opened: dict[str, _Open] = {}
    sequence = 0

    def add(record: _Open, tasks: list[Task]) -> None:
        nonlocal sequence
        for task in tasks:
            heapq.heappush(waiting, (record.number, sequence, task))
            sequence += 1
        if not tasks and not record.missing:
            opened.pop(record.name, None)
            finished(record.name)

    while True:
        stop = stopping()
        if stop:
            runner.drain()
        else:
            while len(waiting) < max(1, runner.free()) and (following := next(coming, None)):
                number, (name, work) = following
                opened[name] = _Open(name, number, work)
                add(opened[name], opened[name].begin())
            while waiting and runner.free():
                runner.start(heapq.heappop(waiting)[2])
        if not runner.busy() and (stop or not waiting):
            return not stop
        for done in runner.wait():
            heard(done)
            record = opened[done.task.record]
            add(record, record.hear(done))
