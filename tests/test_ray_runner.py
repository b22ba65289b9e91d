"""The Ray runner's own decisions, over a stand-in for Ray: deaths, bounds on retries, refusals, workers of two."""

import random
import sys
from collections import Counter
from types import SimpleNamespace

import pytest

from experiments.runners import identity, schedule
from experiments.runners.local import Local
from experiments.runners.ray_actor import Fault, Hello
from experiments.runners.ray_runner import STARTS, TRIES, Group, Ray, RunnerError
from jaxmon.rules.tasks import Task, work
from tests.test_runners import CUTS, NAMES, pretend


class Died(Exception):
    pass


class Actor:
    """One process; `lives` tasks long, 0: dies while it starts. What it is told is said when it is asked for."""

    def __init__(self, lives: float = float("inf"), who: str = "c", do=pretend):
        self.lives, self.who, self._do = lives, who, do
        self.killed = False
        self.told: list[Task] = []
        self.hello = SimpleNamespace(remote=lambda *_: (self, None))
        self.do = SimpleNamespace(remote=self._tell)
        self.place = SimpleNamespace(remote=lambda: "here:1")

    def _tell(self, task: Task):
        self.told.append(task)
        return self, task, len(self.told)  # a name of its own for every call

    def answer(self, task):
        if self.killed or self.lives <= 0:
            raise Died("no such process")
        if task is None:
            return Hello(identity.Identity(self.who, "r"), {})
        self.lives -= 1
        if self.lives <= 0:
            raise Died("killed")
        return self._do(task)


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch):
    """ray.wait gives some of what is awaited, in any order; ray.get asks the actor."""
    luck = random.Random(0)

    def wait(refs, num_returns, timeout):
        return luck.sample(refs, luck.randint(1, len(refs))), []

    kill = lambda actor: setattr(actor, "killed", True)
    other = type("Other", (Exception,), {})
    errors = SimpleNamespace(RayActorError=Died, OutOfMemoryError=other, WorkerCrashedError=other, RaySystemError=other)
    get = lambda ref: ref[0].answer(ref[1])
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(wait=wait, get=get, kill=kill, exceptions=errors))


class Cluster:
    """Workers made one after another of what `make` gives; the last of a list again and again."""

    def __init__(self, count, *make, size=1):
        self.made: list[list[Actor]] = []
        self.said: list[str] = []
        self._make, self._size = list(make), size
        self.runner = Ray(self._spawn, count, self._admit, self.said.append)

    def _spawn(self) -> Group:
        make = self._make.pop(0) if len(self._make) > 1 else self._make[0]
        self.made.append([make() for _ in range(self._size)] if self._size == 1 else make())
        return Group(self.made[-1])

    def _admit(self, hello: Hello) -> str:
        return identity.refusal(identity.Identity("c", "r"), hello.identity)

    def run(self, records: int = 5, stopping=bool) -> Counter:
        """Every unit that was reported done."""
        seen: Counter = Counter()
        works = ((f"r{i}", work(CUTS, f"r{i}", NAMES)) for i in range(records))
        heard = lambda done: seen.update((done.task.record, unit) for unit in done.task.units or [None])
        schedule.schedule(works, self.runner, heard, stopping=stopping)
        return seen


def alone(records: int = 5) -> Counter:
    seen: Counter = Counter()
    works = ((f"r{i}", work(CUTS, f"r{i}", NAMES)) for i in range(records))
    heard = lambda done: seen.update((done.task.record, unit) for unit in done.task.units or [None])
    schedule.schedule(works, Local(pretend), heard)
    return seen


@pytest.mark.parametrize("workers", [1, 3])
def test_whoever_dies_every_task_is_reported_once(workers: int):
    luck = random.Random(1)
    cluster = Cluster(workers, lambda: Actor(luck.randint(2, 9)))
    assert cluster.run() == alone()
    deaths = len(cluster.made) - workers
    assert deaths > 5
    assert cluster.said == ["a worker died; another one is started"] * deaths
    assert str(cluster.runner).endswith(f"retries {deaths}")


def test_a_task_that_ends_its_workers_ends_the_run_and_not_all_workers():
    def deadly(task):
        if task.record == "r1" and task.units:
            raise Died("out of memory")
        return pretend(task)

    cluster = Cluster(3, lambda: Actor(do=deadly))
    with pytest.raises(RunnerError, match=rf"record r1: {TRIES} workers died of one task .*: out of memory"):
        cluster.run()
    assert len(cluster.made) <= 3 + 3 * TRIES


def test_workers_that_die_while_they_start_end_the_run():
    cluster = Cluster(1, lambda: Actor(0))
    with pytest.raises(RunnerError, match=rf"{STARTS} workers in a row died while they started: no such process"):
        cluster.run()
    assert Cluster(1, lambda: Actor(0), lambda: Actor(0), Actor).run() == alone()


def test_a_worker_of_other_code_is_given_nothing():
    cluster = Cluster(3, Actor, lambda: Actor(who="older"), Actor)
    assert cluster.run() == alone()
    (refused,) = cluster.made[1]
    assert refused.killed
    assert not refused.told
    assert len(cluster.made) == 3
    assert cluster.said == ["a worker is refused: other code or packages (older, the run's c)"]
    with pytest.raises(RunnerError, match=r"no worker is left; the last was refused: other code"):
        Cluster(2, lambda: Actor(who="older")).run()


@pytest.mark.parametrize("error", [ValueError, OSError, MemoryError])
def test_what_nobody_can_do_ends_the_run_in_the_line_of_a_run_without_ray(error: type[Exception]):
    cluster = Cluster(2, lambda: Actor(do=lambda _: Fault(error.__name__, "record r0, arm x1: no")))
    with pytest.raises(error, match=r"^record r0, arm x1: no$"):
        cluster.run()


def test_a_worker_of_two_processes_lives_and_dies_as_one():
    """Both are told the same tasks; the first one's answers count; the death of the second is the death of both."""
    nothing = lambda _: Fault("ValueError", "process 0: said elsewhere")
    sound = lambda: [Actor(), Actor(do=nothing)]
    cluster = Cluster(2, lambda: [Actor(), Actor(5, do=nothing)], sound, size=2)
    assert cluster.run() == alone()
    (one, two), *others = cluster.made
    assert one.killed
    assert two.killed
    assert len(others) == 2
    assert all(a.told == b.told for a, b in cluster.made)


def test_what_dies_while_the_run_is_being_stopped_is_not_started_again():
    cluster = Cluster(4, lambda: Actor(3))
    seen: list = []

    def stopping() -> bool:
        seen.append(1)
        return len(seen) > 12

    assert cluster.run(stopping=stopping).total() < alone().total()
    assert cluster.runner.busy() == 0
    assert cluster.runner.free() >= 0
