"""How large a run the driver can carry: the scheduler itself over simulated workers, and Ray's own cost apart.

    python -m tools.scheduler_size --units=1000000 --workers=100          # in this process, no Ray
    python -m tools.scheduler_size --units=10000 --workers=2 --ray        # no-op Ray actors, one unit a task

Records have the shape of a thyroid study: 22 attributes, n = 1000, two stages, units of 200 chains; of every record's
pairs 3 in 22 go on. A simulated worker takes unit_seconds, times a lognormal factor, of a clock that only counts; so
what is timed is the driver's work alone, and what is simulated is how long workers wait for barriers and for the end.

Not measured in this process: messages (that is --ray), files, models.
"""

from __future__ import annotations

import heapq
import logging
import random
import resource
import time
from collections.abc import Iterator
from typing import Any

from absl import flags

from experiments import cli
from experiments.runners import schedule
from experiments.runners.ray_actor import Hello
from experiments.runners.ray_runner import Group, Ray
from jaxmon.rules import staged
from jaxmon.rules.adaptive import Plan
from jaxmon.rules.tasks import Cuts, Done, Task, Work, work

ATTRIBUTES = tuple(f"attribute{i:02}" for i in range(22))
MOVE = ("x0:attribute00", "x0:attribute01", "x0:attribute02")  # without these the target is rarer


def pretend(task: Task) -> Done:
    """Half of the chains hit the target, fewer in the arms that have an effect."""
    count = lambda u: int((u.stop - u.first) * (0.25 if u.arm in MOVE else 0.5))
    return Done(task, tuple(map(count, task.units)), sum(u.stop - u.first for u in task.units), 0.0)


class Simulated:
    """Workers on a clock that only counts: the runner's interface, without work."""

    def __init__(self, workers: int, seconds: float, spread: float, seed: int):
        self._free, self._luck = workers, random.Random(seed)
        self._seconds, self._spread = seconds, spread
        self._hand: list[tuple[float, int, Task]] = []
        self.now = self.worked = 0.0
        self.tasks = 0

    def free(self) -> int:
        return self._free

    def busy(self) -> int:
        return len(self._hand)

    def start(self, task: Task) -> None:
        takes = self._seconds * self._luck.lognormvariate(0.0, self._spread) if task.units else 0.0
        self._free, self.worked, self.tasks = self._free - 1, self.worked + takes, self.tasks + 1
        heapq.heappush(self._hand, (self.now + takes, self.tasks, task))

    def wait(self) -> list[Done]:
        self.now, _, task = heapq.heappop(self._hand)
        self._free += 1
        return [pretend(task)]

    def drain(self) -> None:
        pass


def works(cuts: Cuts, records: int) -> Iterator[tuple[str, Work]]:
    for i in range(records):
        yield f"record{i}", work(cuts, f"record{i}", ATTRIBUTES)


def per_record(cuts: Cuts) -> int:
    """Units of one record."""
    runner = Simulated(1, 1.0, 0.0, 0)
    schedule.schedule(works(cuts, 1), runner)
    return runner.tasks


class Nothing:
    """An actor that draws nothing."""

    def hello(self, place: str | None, processes: int, process: int) -> Hello:
        return Hello(None, {})  # type: ignore[arg-type]  # everybody is let in

    def do(self, task: Task) -> Done:
        return pretend(task)


def actors(workers: int) -> Ray:
    """The Ray runner over actors that draw nothing, on this machine."""
    import ray

    ray.init("local", num_cpus=workers, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    make: Any = ray.remote(Nothing).options(num_cpus=1)
    return Ray(lambda: Group([make.remote()]), workers, lambda _: "", print)


def main(argv: list[str]) -> None:
    if argv[1:]:
        raise ValueError(f"unexpected argument {argv[1]!r}")
    f = flags.FLAGS
    rule = staged.make(f.rule, Plan())
    cuts = Cuts(rule, 200, 200)
    records = max(1, round(f.units / per_record(cuts)))
    runner: Any = actors(f.workers) if f.ray else Simulated(f.workers, f.unit_seconds, f.spread, 0)
    heard = opened = 0
    most, ended = 0, 0

    def opening() -> Iterator[tuple[str, Work]]:
        nonlocal opened
        for each in works(cuts, records):
            opened += 1
            yield each

    def hear(done: Done) -> None:
        nonlocal heard, most
        heard, most = heard + 1, max(most, opened - ended)

    def end(name: str) -> None:
        nonlocal ended
        ended += 1

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    schedule.schedule(opening(), runner, hear, end)
    took = time.perf_counter() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{heard:,} units of {records:,} records, {f.workers} workers: {took:.2f} s, {heard / took:,.0f} units/s")
    print(
        f"open records at most {most}; peak memory {memory / 1024:,.0f} MiB, {(memory - before) / 1024:,.1f} of it here"
    )
    if not f.ray:
        share = runner.worked / (f.workers * runner.now)
        print(f"simulated: {runner.now / 3600:,.2f} h, workers busy {share:.1%} of it")


if __name__ == "__main__":
    flags.DEFINE_integer("units", 1_000_000, "About how many.", 1)
    flags.DEFINE_integer("workers", 100, "How many.", 1)
    flags.DEFINE_string("rule", "two_stage", "two_stage or staged.")
    flags.DEFINE_float("unit_seconds", 60.0, "Of a simulated unit.", 0)
    flags.DEFINE_float("spread", 0.3, "Standard deviation of the logarithm of a unit's time.", 0)
    flags.DEFINE_bool("ray", False, "Real Ray actors that draw nothing, in place of simulated workers.")
    cli.start(main)
