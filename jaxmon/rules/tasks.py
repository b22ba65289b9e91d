"""The work of one record as tasks: a task is what one worker does in one go, and twice does no harm.

A unit is a range of chain ids of one arm of one record, cut at fixed ids (arms.shards): one file, one writer, the same
chains whoever draws them. A task is a few units of one record that are drawn together, or the record's answers without
a chain. Cuts and groups are functions of the config and of what a step asks for, never of workers or of what is there.

Knows: records' courses, units. Does not know: models, files, who does a task or when.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import NamedTuple

from jaxmon.arms import shards, together
from jaxmon.rules.course import course
from jaxmon.rules.staged import Rule


class Unit(NamedTuple):
    """The chains first … stop - 1 of an arm."""

    arm: str
    first: int
    stop: int


class Task(NamedTuple):
    """Units of one record; none: its answers without a chain (T = 0), in all arms."""

    record: str
    units: tuple[Unit, ...] = ()


class Done(NamedTuple):
    """A task whose files are on disk.

    Attributes:
      hits: target answers, per unit.
      drawn: chains that had to be drawn for it; the others were there.
      p10: of the whole prompt, where the task was the record's answers.
    """

    task: Task
    hits: tuple[int, ...] = ()
    drawn: int = 0
    p10: float | None = None

    @property
    def chains(self) -> int:
        return sum(u.stop - u.first for u in self.task.units)


Work = Generator[list[Task], Sequence[Done], None]  # yields tasks, is sent them done: each yield is a barrier


@dataclasses.dataclass(frozen=True)
class Cuts:
    """How a run's work is cut, from its config alone.

    Attributes:
      size: most chains of a unit (arms.unit_size).
      slots: chains that a worker has in flight.
      p10_max: a record whose p10 reaches it stops early; None: p10 stops nothing, and nothing waits for it.
    """

    rule: Rule
    size: int
    slots: int
    p10_max: float | None = None

    def units(self, arm: str, ids: range) -> list[Unit]:
        return [Unit(arm, *cut) for cut in shards(ids.start, ids.stop, self.size, *self.rule.borders())]

    def tasks(self, record: str, wanted: Mapping[str, range]) -> list[Task]:
        """The tasks of one step: units of one size, as many as the slots hold."""
        units = [u for arm, ids in wanted.items() for u in self.units(arm, ids)]
        size = lambda u: u.stop - u.first
        alike = itertools.groupby(sorted(units, key=size), size)
        return [Task(record, group) for n, same in alike for group in _groups(list(same), together(self.slots, n))]


def _groups(units: Sequence[Unit], many: int) -> Iterator[tuple[Unit, ...]]:
    return (tuple(units[i : i + many]) for i in range(0, len(units), many))


def work(cuts: Cuts, record: str, attributes: Sequence[str], spared: Callable[[int], object] = int) -> Work:
    """All tasks of one record, from its answers without a chain to the end of its course.

    Args:
      attributes: those under study.
      spared: hears of chains that will not be drawn after all.
    """
    tasks = [Task(record)]
    ruled_out = False
    if cuts.p10_max is not None:
        (answered,) = yield tasks
        assert answered.p10 is not None
        ruled_out, tasks = answered.p10 >= cuts.p10_max, []
    going = course(attributes, cuts.rule, ruled_out)
    step = next(going, None)
    while step is not None:
        spared(step.spared)
        tasks += cuts.tasks(record, step.wanted)
        hits = Counter(dict.fromkeys(step.wanted, 0))
        for done in (yield tasks) if tasks else ():
            for unit, k in zip(done.task.units, done.hits, strict=True):
                hits[unit.arm] += k
        tasks = []
        try:
            step = going.send(hits)
        except StopIteration:
            step = None
