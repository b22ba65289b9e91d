"""The tasks by name: where their records come from, the words of their judge, and their truth where it is known.

Imports of a task happen when it is asked for, so that one task's needs are not another's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from jaxmon.judge import Judge, LexicalJudge, phrases
from jaxmon.records import Record, draw

TASKS = ("ledger", "thyroid")


@dataclasses.dataclass(frozen=True)
class Task:
    """A task's records with what a study of them needs.

    Attributes:
      records: in a stable order.
      judge: the lexical judge with the task's words.
      truth: records -> rows in the layout of scores.csv; None where the truth is not known.
      placebos: attributes that have no effect by construction and are never used in a chain: negative controls.
    """

    name: str
    records: tuple[Record, ...]
    judge: Judge
    truth: Callable[[Sequence[Record]], list[dict[str, Any]]] | None = None
    placebos: tuple[str, ...] = ()


def load(name: str, source: str, labels: Sequence[str], per_label: int, seed: int) -> Task:
    """A task with `per_label` records of each class.

    Args:
      name: one of TASKS.
      source: the raw file; "" looks where the task says.
      labels: the classes to keep; empty keeps all.
      per_label: records per class.
      seed: of the choice of records.

    Raises:
      ValueError: no such task or class, or fewer records than asked for.
      OSError: the raw file is not there.
    """
    if name == "ledger":
        from jaxmon.tasks import ledger, ledger_truth

        pool = ledger.records(seed, 3 * per_label)
        truth = lambda chosen: ledger_truth.pooled([row for r in chosen for row in ledger_truth.truth(r)])
        return Task(name, _choose(pool, labels, per_label, seed, name), _lexical(name), truth, ("memo",))
    if name == "thyroid":
        from jaxmon.tasks import thyroid

        return Task(name, _choose(thyroid.load(source or None), labels, per_label, seed, name), _lexical(name))
    raise ValueError(f"no task {name!r} (have {', '.join(TASKS)})")


def without_records(name: str) -> Task:
    """A task's words alone, for chains that come with their own records.

    Raises:
      ValueError: no such task.
    """
    return Task(name, (), _lexical(name))


def _lexical(name: str) -> Judge:
    if name == "ledger":
        from jaxmon.tasks import ledger

        return LexicalJudge(phrases("ledger", ledger.phrases()))
    if name == "thyroid":
        from jaxmon.tasks.thyroid.lexicon import LEXICON

        return LexicalJudge(LEXICON)
    raise ValueError(f"no task {name!r} (have {', '.join(TASKS)})")


def _choose(pool: Sequence[Record], labels: Sequence[str], per_label: int, seed: int, name: str) -> tuple[Record, ...]:
    have = sorted({r.label for r in pool})
    if unknown := [label for label in labels if label not in have]:
        raise ValueError(f"task {name} has no class {unknown[0]!r} (it has {', '.join(have)})")
    return tuple(draw([r for r in pool if not labels or r.label in labels], per_label, seed))


def studied(task: Task, attributes: Sequence[str]) -> dict[str, list[str]]:
    """Record id -> the attributes to study: all it has, or those of `attributes` that it has.

    Raises:
      ValueError: an attribute that no record has.
    """
    have = list(dict.fromkeys(a.name for r in task.records for a in r.attributes))
    if unknown := [name for name in attributes if name not in have]:
        raise ValueError(f"no record has the attribute {unknown[0]!r} (they have {', '.join(have)})")
    return {r.id: [a.name for a in r.attributes if not attributes or a.name in attributes] for r in task.records}
