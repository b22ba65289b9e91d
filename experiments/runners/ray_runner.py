"""Workers of a Ray cluster do the work: one per group of accelerators, an idle one takes the next task.

Ray starts processes where the accelerators are, carries messages, and says who has died. Retries are ours, not Ray's
max_restarts: a new actor has to say who it is before it is given a task, a task that has ended TRIES workers ends the
run instead of all of them, and the count is shown. A worker has one task at a time and asks for nothing, so one whose
driver is gone writes one task's files more at most (the bytes that anybody would write) before Ray ends it.

Knows: Ray, actors. Does not know: what a task is made of, who is let in and why (ray_cluster.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from experiments.cli import line
from experiments.runners.ray_actor import Fault, Hello
from jaxmon.rules.tasks import Done, Task

TRIES = 3  # workers that one task may end
LOOK_S = 1.0  # between looks at whether the run is to stop
STARTS = 3  # workers in a row that may die while they start


class RunnerError(ValueError):
    """The cluster cannot do the run, or not now; one line."""


class Group:
    """A worker: the actors (ray_actor.py) of its processes, which are told the same; the first one's answer counts."""

    def __init__(self, actors: Sequence[Any]):
        self._actors = actors

    def hello(self) -> list[Any]:
        """What to wait for, the first one's answer first."""
        many = len(self._actors)
        place = self._actors[0].place.remote() if many > 1 else None
        return [actor.hello.remote(place, many, i) for i, actor in enumerate(self._actors)]

    def do(self, task: Task) -> list[Any]:
        return [actor.do.remote(task) for actor in self._actors]

    def kill(self) -> None:
        import ray

        for actor in self._actors:
            ray.kill(actor)


class Awaited(NamedTuple):
    """Who answers, on which task (None: who it is), and whether it is the worker's first process."""

    worker: Group
    task: Task | None
    counts: bool


class Ray:
    """A runner (schedule.Runner) over `count` workers.

    Args:
      spawn: starts a worker.
      admit: hears what a new one says of itself; returns why it is refused, or "".
      say: prints a line beside the progress bar.
    """

    def __init__(
        self, spawn: Callable[[], Group], count: int, admit: Callable[[Hello], str], say: Callable[[str], object]
    ):
        self._spawn, self._admit, self._say = spawn, admit, say
        self._at: dict[Any, Awaited] = {}
        self._idle: list[Group] = []
        self._again: list[Task] = []  # of workers that died
        self._tries: Counter[Task] = Counter()
        self._tasks = self._dead_at_start = 0
        self._draining = False
        for _ in range(count):
            self._welcome()

    def __str__(self) -> str:
        alive = len(self._idle) + sum(a.counts and a.task is not None for a in self._at.values())
        return f"workers {alive}, retries {self._tries.total()}"

    def free(self) -> int:
        return max(0, len(self._idle) - len(self._again))

    def busy(self) -> int:
        return self._tasks

    def start(self, task: Task) -> None:
        self._tasks += 1
        self._give(task)

    def drain(self) -> None:
        self._draining = True
        self._tasks -= len(self._again)
        self._again.clear()

    def wait(self) -> list[Done]:
        """See schedule.Runner.

        Raises:
          RunnerError: no worker is left, a task ends every worker, or the cluster is gone.
        """
        import ray

        try:
            ray.wait(list(self._at), num_returns=1, timeout=LOOK_S)
            ready, _ = ray.wait(list(self._at), num_returns=len(self._at), timeout=0)
            heard = [self._hear(ref) for ref in ready if ref in self._at]  # not those of a worker that just died
        except (ray.exceptions.RaySystemError, ConnectionError) as error:
            raise RunnerError(f"the Ray cluster is gone ({line(error)}); the same command resumes the run") from None
        while self._again and self._idle:
            self._give(self._again.pop())
        return [done for done in heard if done is not None]

    def _welcome(self) -> None:
        worker = self._spawn()
        self._await(worker, None, worker.hello())

    def _give(self, task: Task) -> None:
        worker = self._idle.pop()
        self._await(worker, task, worker.do(task))

    def _await(self, worker: Group, task: Task | None, refs: Sequence[Any]) -> None:
        self._at |= {ref: Awaited(worker, task, i == 0) for i, ref in enumerate(refs)}

    def _hear(self, ref: Any) -> Done | None:
        """One answer: a task done, a new worker, or a death."""
        import ray

        heard = self._at.pop(ref)
        worker, task, counts = heard
        deaths = ray.exceptions.RayActorError, ray.exceptions.OutOfMemoryError, ray.exceptions.WorkerCrashedError
        try:
            said = ray.get(ref)
        except deaths as error:
            self._died(heard, error)
            return None
        if not counts:  # an error of one process is the first one's too (hosts.py)
            return None
        if isinstance(said, Fault):
            raise said.error()
        if isinstance(said, Hello):
            self._dead_at_start = 0
            if why := self._admit(said):
                self._say(f"a worker is refused: {why}")
                self._forget(worker)
                if not self._at and not self._idle:
                    raise RunnerError(f"no worker is left; the last was refused: {why}")
                return None
        self._idle.append(worker)
        if task is None:
            return None
        self._tasks -= 1
        return said

    def _forget(self, worker: Group) -> None:
        worker.kill()  # also where it was only out of reach
        self._at = {ref: a for ref, a in self._at.items() if a.worker is not worker}
        self._idle = [other for other in self._idle if other is not worker]

    def _died(self, heard: Awaited, error: Exception) -> None:
        """One of a worker's processes is gone: the others go with it, what it was at goes to another worker."""
        mine = [heard, *(a for a in self._at.values() if a.worker is heard.worker)]
        lost = next((a for a in mine if a.counts), None)
        self._forget(heard.worker)
        why = line(error)
        if lost is not None and lost.task is None:
            self._dead_at_start += 1
            if self._dead_at_start >= STARTS:
                raise RunnerError(f"{STARTS} workers in a row died while they started: {why}")
        elif lost is not None and lost.task is not None:
            self._lost(lost.task, why)
        if not self._draining:
            self._say("a worker died; another one is started")
            self._welcome()

    def _lost(self, task: Task, why: str) -> None:
        if self._draining:
            self._tasks -= 1
            return
        self._tries[task] += 1
        if self._tries[task] >= TRIES:
            raise RunnerError(f"record {task.record}: {TRIES} workers died of one task {task.units}: {why}")
        self._again.append(task)
