"""What a worker is: a model and a run directory; it does a task and says what is then on disk.

Knows: how a task becomes files. Does not know: which task comes next, or that there are other workers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from experiments import draws, hosts, store
from experiments.opening import Study
from jaxmon.arms import X1, arms
from jaxmon.records import Record
from jaxmon.rules.tasks import Done, Task, Unit


class Worker:
    """Keeps the prompts of the record in hand open, so that each is read once while that record is worked on."""

    def __init__(self, study: Study, drawer: draws.Drawer):
        self.study, self.drawer = study, drawer
        self._records = {r.id: r for r in study.task.records}
        self._opener = functools.lru_cache(1)(self._opener_of)

    def _opener_of(self, record: str) -> Callable[[str], draws.Arm]:
        return draws.opener(self.drawer, arms(self._records[record], self.study.studied[record]))

    def do(self, task: Task) -> Done:
        """Draws what is missing.

        Raises:
          ValueError: a prompt that does not fit, logits that are NaN, a file that is damaged.
          OSError, MemoryError: no room on a disk, a device.
        """
        record = self._records[task.record]
        return self._chains(record, task) if task.units else Done(task, p10=self._answers(record))

    def _answers(self, record: Record) -> float:
        """The T = 0 answers of every arm; returns p10."""
        path = self.study.answers(record)
        if not hosts.lead(functools.partial(store.has, path)):
            names = arms(record, self.study.studied[record.id])
            table = draws.answers(draws.no_cot(self.drawer, list(map(self._opener(record.id), names))))
            hosts.lead(lambda: str(store.save(path, table, self.drawer.made_by)))

        def read() -> float:
            answers = store.load(path, draws.ANSWERS, makers=self.study.makers)
            columns = (answers.column(name).to_pylist() for name in ("arm", "target"))
            return float(dict(zip(*columns, strict=True))[X1])

        return float(hosts.lead(read))

    def _chains(self, record: Record, task: Task) -> Done:
        root = self.study.root
        opener = lambda unit: functools.partial(self._opener(record.id), unit.arm)
        drawn = draws.fill(self.drawer, root, [draws.Wanted(record.id, *unit, opener(unit)) for unit in task.units])

        def hits(unit: Unit) -> int:
            shard = draws.load_shard(root, record.id, *unit, columns=("code",), makers=self.study.makers)
            return shard.column("code").to_pylist().count(record.target)

        return Done(task, tuple(hosts.lead(lambda: [hits(unit) for unit in task.units])), drawn)
