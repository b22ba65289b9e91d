"""Workers of a Ray cluster do the work: one per group of accelerators, an idle one takes the next task.

Ray starts processes where the accelerators are, carries messages, and says who has died. Retries are ours, not Ray's
max_restarts: a new actor has to say who it is before it is given a task, a task that has ended TRIES workers ends the
run instead of all of them, and the count is shown. A worker has one task at a time and asks for nothing, so one whose
driver is gone writes one task's files more at most (the bytes that anybody would write) before Ray ends it.

Knows: Ray, actors, who is let in. Does not know: what a task is made of.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from experiments import places, rundir
from experiments.cli import line
from experiments.runners import identity
from experiments.runners.ray_actor import Actor, Fault, Hello
from jaxmon.rules.tasks import Done, Task
from models import mesh

if TYPE_CHECKING:
    from experiments.opening import Study

TRIES = 3  # workers that one task may end
REACH_S = 10.0
LOOK_S = 1.0  # between looks at whether the run is to stop
STARTS = 3  # workers in a row that may die while they start
INSTALL = "--runner=ray needs the package ray: pip install -r requirements-ray.txt"


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


@contextmanager
def cluster(
    address: str | None, workers: int | None, processes: int = 1
) -> Iterator[Callable[[Study, rundir.Terms], Any]]:
    """Joins a cluster, or makes one on this machine; yields what starts a study's workers.

    The driver itself keeps off the accelerators: they are the workers'.

    Args:
      address: HOST:PORT, or "auto" on a node of the cluster; None makes a cluster of this machine.
      workers: how many; None for as many as the accelerators allow, or one per node without any.
      processes: of each worker, on as many hosts, which hold the config's mesh together.

    Raises:
      RunnerError: Ray is not installed, or no cluster answers.
    """
    try:
        import ray
    except ImportError:
        raise RunnerError(INSTALL) from None
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray would report the use of its clusters
    own: dict[str, Any] = {}
    if address is None:
        own = {"num_cpus": max(workers or 1, os.cpu_count() or 1), "include_dashboard": False}
    _reach(address)
    try:
        ray.init(address or "local", log_to_driver=False, logging_level=logging.ERROR, **own)
    except Exception as error:  # among them plain ones, of a node that does not come up
        raise RunnerError(f"no Ray cluster at {address or 'this machine'}: {line(error)}") from None
    import jax

    jax.config.update("jax_platforms", "cpu")
    try:
        yield partial(_workers, workers, processes)
    finally:
        ray.shutdown()


def _reach(address: str | None) -> None:
    """Knocks at a cluster's door: Ray itself would say so for a minute, in lines of its own."""
    host, colon, port = (address or "").rpartition(":")
    if not colon:
        return
    try:
        socket.create_connection((host, int(port)), REACH_S).close()
    except (OSError, ValueError, OverflowError) as error:
        raise RunnerError(f"no Ray cluster at {address} (HOST:PORT of its head): {line(error)}") from None


@contextmanager
def _workers(workers: int | None, processes: int, study: Study, terms: rundir.Terms) -> Iterator[Ray]:
    """The runner of a study: its workers are started here and ended on leaving.

    Raises:
      RunnerError: no node has the accelerators that the mesh needs; a judge that wants one itself.
    """
    import ray
    from tqdm import tqdm

    if study.config["judge"] == "model":
        raise RunnerError(
            "config: judge = model needs an accelerator, and with --runner=ray they are the workers'; sample with "
            "judge = lexical, then label with python -m experiments.judge --judge=model"
        )
    if str(study.root).startswith("memory:"):
        raise RunnerError(f"{study.root} is one process's own; workers need a directory or URL that all of them reach")
    data, model = mesh.sizes(study.config["mesh"])
    if data * model % processes:
        raise RunnerError(f"a mesh of {study.config['mesh']} is not shared out evenly by {processes} processes")
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    options, count = needs(data * model // processes, nodes)
    make = ray.remote(Actor).options(**options, scheduling_strategy="SPREAD", max_restarts=0, max_task_retries=0)
    here = dict(study.config), places.absolute(study.root), str(Path.cwd())
    started: list[Group] = []

    def spawn() -> Group:
        started.append(Group([make.remote(*here) for _ in range(processes)]))
        return started[-1]

    say = lambda text: tqdm.write(text, file=sys.stderr)
    try:
        yield Ray(spawn, workers or max(1, count // processes), _door(study, terms), say)
    finally:
        for worker in started:
            worker.kill()


def needs(devices: int, nodes: list[dict[str, float]]) -> tuple[dict[str, Any], int]:
    """What a process with so many devices asks Ray for, and how many such processes the nodes hold.

    Raises:
      RunnerError: none of them holds one.
    """
    kind = next((k for k in ("GPU", "TPU") if any(node.get(k) for node in nodes)), "CPU")
    fits = len(nodes) if kind == "CPU" else sum(int(node.get(kind, 0)) // devices for node in nodes)
    if not fits:
        most = max(int(node.get(kind, 0)) for node in nodes)
        raise RunnerError(f"a worker needs {devices} {kind}s (config.mesh), and no node has more than {most}")
    asked: dict[str, dict[str, Any]] = {
        "GPU": {"num_gpus": devices, "num_cpus": 1},
        "TPU": {"resources": {"TPU": devices}, "num_cpus": 1},
        "CPU": {"num_cpus": 1},
    }
    return asked[kind], fits


def _door(study: Study, terms: rundir.Terms) -> Callable[[Hello], str]:
    """Lets a worker in, or says why not: the first one's model and device are the run's, unless it has begun before."""
    from experiments.opening import log

    run = identity.Identity(identity.code(), identity.records(study.task.records, study.studied))

    def admit(hello: Hello) -> str:
        nonlocal run
        if why := identity.refusal(run, hello.identity):
            return why
        if not run.model:
            command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])
            try:
                log(study, {**hello.entry, "command": command}, terms)
            except rundir.RunError as error:
                return line(error)
            run = hello.identity
        return ""

    return admit
