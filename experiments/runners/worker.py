"""What a worker is: a model and a run directory; it does a task and says what is then on disk.

Knows: how a task becomes files. Does not know: which task comes next, or that there are other workers.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import pyarrow as pa

from experiments import draws, hosts
from experiments.runners.tasks import Done, Task, Unit
from jaxmon.arms import X1, arms
from jaxmon.records import Record

if TYPE_CHECKING:
    from experiments.study import Study


class Worker:
    """Keeps as many prompts open as one record has arms, so that each is read once while a record is worked on."""

    def __init__(self, study: Study, drawer: draws.Drawer):
        self.study, self.drawer = study, drawer
        self._records = {r.id: r for r in study.task.records}
        self._arm = functools.lru_cache(1 + max(map(len, study.studied.values())))(self._open)

    def _open(self, record: str, arm: str) -> draws.Arm:
        whole = self._records[record]
        return draws.open_arm(self.drawer, arms(whole, self.study.studied[record])[arm], arm)

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
        if not hosts.lead(path.exists):
            names = arms(record, self.study.studied[record.id])
            rows = [draws.no_cot(self.drawer, self._arm(record.id, name)) for name in names]
            table = pa.table({f.name: pa.array([r[f.name] for r in rows], f.type) for f in draws.ANSWERS})
            hosts.lead(functools.partial(draws.save, path, table.cast(draws.ANSWERS)))

        def read() -> float:
            answers = draws.load(path, draws.ANSWERS)
            columns = (answers.column(name).to_pylist() for name in ("arm", "target"))
            return float(dict(zip(*columns, strict=True))[X1])

        return float(hosts.lead(read))

    def _chains(self, record: Record, task: Task) -> Done:
        root = self.study.root
        opener = lambda unit: functools.partial(self._arm, record.id, unit.arm)
        drawn = draws.fill(self.drawer, root, [draws.Wanted(record.id, *unit, opener(unit)) for unit in task.units])

        def hits(unit: Unit) -> int:
            return draws.load_shard(root, record.id, *unit).column("code").to_pylist().count(record.target)

        return Done(task, tuple(hosts.lead(lambda: [hits(unit) for unit in task.units])), drawn)
