"""The tasks by name: where their records come from, the words of their judge, and their truth where it is known.

Imports of a task happen when it is asked for, so that one task's needs are not another's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from jaxmon.judging.judge import Judge, LexicalJudge, phrases
from jaxmon.records import Record, draw


@dataclasses.dataclass(frozen=True)
class Request:
    """What a config asks of a task beside its name.

    Attributes:
      source: the raw file; "" looks where the task says.
      per_label: records per class.
      seed: of the choice of records.
      menu: the options to choose among, for tasks that let one choose; () takes the task's own.
      schema: how a row reads, for tables; "" takes the source's name with .toml.
    """

    source: str
    per_label: int
    seed: int
    menu: tuple[str, ...] = ()
    schema: str = ""


@dataclasses.dataclass(frozen=True)
class Task:
    """A task's records with what a study of them needs.

    Attributes:
      records: in a stable order.
      judge: the lexical judge with the task's words.
      truth: records -> rows in the layout of scores.csv; None where the truth is not known.
      placebos: attributes without an effect by construction, the negative controls (placebo.py).
    """

    name: str
    records: tuple[Record, ...]
    judge: Judge
    truth: Callable[[Sequence[Record]], list[dict[str, Any]]] | None = None
    placebos: tuple[str, ...] = ()


class Pool(NamedTuple):
    """All records of a task, before the choice of some; the rest as in Task."""

    records: Sequence[Record]
    judge: Judge
    truth: Callable[[Sequence[Record]], list[dict[str, Any]]] | None = None
    placebos: tuple[str, ...] = ()


def _ledger(ask: Request) -> Pool:
    from jaxmon.tasks import ledger, ledger_truth

    truth = lambda chosen: ledger_truth.pooled([row for r in chosen for row in ledger_truth.truth(r)])
    return Pool(ledger.records(ask.seed, 3 * ask.per_label), _ledger_words(), truth, ledger.PLACEBOS)


def _ladder(ask: Request) -> Pool:
    from jaxmon.tasks import ladder, ledger_truth

    truth = lambda chosen: ledger_truth.pooled([row for r in chosen for row in ladder.truth(r)])
    return Pool(ladder.records(ask.seed, ask.per_label), _ladder_words(), truth, ladder.PLACEBOS)


def _thyroid(ask: Request) -> Pool:
    from jaxmon.tasks import thyroid

    return Pool(thyroid.load(ask.source or None), _thyroid_words())


def _olympic(ask: Request) -> Pool:
    from jaxmon.tasks import olympic, words
    from jaxmon.tasks.olympic.lexicon import MENTION

    records = olympic.load(ask.source or None, ask.menu)
    return Pool(records, LexicalJudge(words.lexicon("olympic", records, MENTION)))


def _ddxplus(ask: Request) -> Pool:
    from jaxmon.tasks import ddxplus, words
    from jaxmon.tasks.english import PERSON, PERSON_USED

    records = ddxplus.load(ask.source or None)
    return Pool(records, LexicalJudge(words.lexicon("ddxplus", records, PERSON, PERSON_USED)))


def _hinted_mcqa(ask: Request) -> Pool:
    from jaxmon.tasks import hinted_mcqa

    return Pool(hinted_mcqa.load(ask.source or None, ask.seed), _hinted_mcqa_words())


def _csv(ask: Request) -> Pool:
    from jaxmon.tasks import table, words

    if not ask.source:
        raise ValueError("task csv needs the table: --config.source=TABLE.csv")
    records = table.read(ask.source, ask.schema)
    return Pool(records, LexicalJudge(words.lexicon("csv", records)))


TASKS: Mapping[str, Callable[[Request], Pool]] = {
    "ledger": _ledger,
    "ladder": _ladder,
    "thyroid": _thyroid,
    "olympic": _olympic,
    "ddxplus": _ddxplus,
    "hinted_mcqa": _hinted_mcqa,
    "csv": _csv,
}


def load(name: str, labels: Sequence[str], ask: Request) -> Task:
    """A task with `ask.per_label` records of each class.

    Args:
      name: one of TASKS.
      labels: the classes to keep; empty keeps all.
      ask: where the records come from and how they are chosen.

    Raises:
      ValueError: no such task or class, or fewer records than asked for.
      OSError: the raw file is not there.
    """
    if name not in TASKS:
        raise ValueError(f"no task {name!r} (have {', '.join(TASKS)})")
    if ask.menu and name != "olympic":
        raise ValueError(f"task {name} has no menu to choose, got {', '.join(ask.menu)}")
    if ask.schema and name != "csv":
        raise ValueError(f"task {name} takes no schema, got {ask.schema}")
    pool = TASKS[name](ask)
    chosen = _choose(pool.records, labels, ask.per_label, ask.seed, name)
    return Task(name, chosen, pool.judge, pool.truth, pool.placebos)


def without_records(name: str) -> Task:
    """A task's words alone, for chains that come with their own records.

    Raises:
      ValueError: no such task, or one whose words are made from its records.
    """
    if name not in WORDS:
        raise ValueError(f"no task {name!r} whose words stand alone (have {', '.join(WORDS)})")
    return Task(name, (), WORDS[name]())


def _ledger_words() -> Judge:
    from jaxmon.tasks import ledger

    return LexicalJudge(phrases("ledger", ledger.phrases()))


def _ladder_words() -> Judge:
    from jaxmon.tasks import ladder

    return LexicalJudge(phrases("ladder", ladder.phrases()))


def _thyroid_words() -> Judge:
    from jaxmon.tasks.thyroid.lexicon import LEXICON

    return LexicalJudge(LEXICON)


def _hinted_mcqa_words() -> Judge:
    from jaxmon.tasks.hinted_mcqa.lexicon import LEXICON

    return LexicalJudge(LEXICON)


WORDS: Mapping[str, Callable[[], Judge]] = {  # the other tasks' words are made from their records
    "ledger": _ledger_words,
    "ladder": _ladder_words,
    "thyroid": _thyroid_words,
    "hinted_mcqa": _hinted_mcqa_words,
}


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
