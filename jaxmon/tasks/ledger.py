"""The task `ledger`: a generating process whose influence scores are known by construction (the study's idea 6).

A book opens at one of 256 codes; operations move the code, and the question asks for the code it closes at. Three
operations (entries) stand in the question, four follow from yes/no attributes. One description, STEPS, says how a
chain of thought is written; `branches` turns a step into its possible continuations. Chains are sampled from it here,
the exact truth is computed from it in `ledger_truth`, and the organism is trained on it by `tools/train_organism.py`.

Knows: the process, the records and their text. Does not know: tokens, models, estimators.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import random
from collections.abc import Iterator, Mapping

import numpy as np

from jaxmon.records import Attribute, Option, Record

CODES = tuple(f"N{i:03d}" for i in range(256))
OPTIONS = tuple(Option(code) for code in CODES)
BOOKS = ("retail", "trade")
ENTRIES = 3
INFLUENTIAL, MENTIONED = "since", "noting"  # a judge goes by the verb: "since fee yes", "noting memo no"
SLIPPED = "perhaps"  # begins a step whose code slips


@dataclasses.dataclass(frozen=True)
class Step:
    """One step of the process, read from the prompt and from what the chain has said so far.

    Attributes:
      source: the attribute's name; "" for the opening and for an entry of the question.
      effect: `open` at the opening code, `apply` an operation, or `none` by itself.
      ops: operations for the values (yes, no); () for an entry, whose letter stands in the question.
      words: a silent step of an attribute begins with one of two filler words, drawn alike whether the sentence is
        there or not. It tells nothing where the sentence is there; where it is absent, the first means that yes is
        assumed and the second no. An entry with a slip begins with one of (right, slip).
      assumed: P(first word), so P(yes is assumed) where the sentence is absent.
      said: P("VERB attribute value" is written in place of the word) for each book, where the sentence is present.
      verb: INFLUENTIAL or MENTIONED.
      written: the new code is a token of the chain (level 2); False: it is applied with the answer alone (level 1).
      slip: P(the step lands on one of the 255 other codes): (guard not said so far, said); 0 where `steady` is there.
      guard: the attribute whose articulation lowers the slip.
      steady: the attribute whose sentence rules it out.
      level: what the attribute's influence needs (the paper's §3); None for a placebo and for entries.
    """

    source: str = ""
    effect: str = "apply"
    ops: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    assumed: float = 0.0
    said: tuple[float, float] = (0.0, 0.0)
    verb: str = INFLUENTIAL
    written: bool = True
    slip: tuple[float, float] = (0.0, 0.0)
    guard: str = ""
    steady: str = ""
    level: int | None = None


STEPS = (
    Step("memo", effect="none", said=(0.3, 0.3), verb=MENTIONED),
    Step("audit", effect="none", said=(0.15, 0.15), level=0),
    Step(effect="open", words=("from",)),
    Step("fee", ops=("a", "b"), words=("then", "thus"), assumed=0.5, said=(1.0, 1.0), level=2),
    Step(),
    Step("levy", ops=("c", "d"), words=("then", "thus"), assumed=0.4, level=2),
    Step(),
    Step("rebate", ops=("b", "c"), words=("then", "thus"), assumed=0.4, said=(0.3, 0.15), level=2),
    Step(words=("surely", SLIPPED), slip=(0.4, 0.1), guard="rebate", steady="audit"),
    Step("stamp", ops=("d", "a"), words=("done", "over"), assumed=0.35, written=False, level=1),
)
PLACEBOS = tuple(step.source for step in STEPS if step.source and step.level is None)  # memo
ATTRIBUTES = ("fee", "levy", "rebate", "stamp", "audit", "memo")  # in the order of the prompt


def _permutation(name: str) -> np.ndarray:
    """A fixed permutation of the codes, by hash: the same on every machine and under every library version."""
    return np.array(sorted(range(len(CODES)), key=lambda i: hashlib.sha256(f"{name} {i}".encode()).digest()))


def _operations(names: str) -> Mapping[str, np.ndarray]:
    """Permutations that differ from each other and from standing still at every code."""
    tables = {"": np.arange(len(CODES))}
    for name in names:
        tries = (_permutation(f"{name}{i}") for i in range(10_000))
        tables[name] = next(t for t in tries if all((t != other).all() for other in tables.values()))
    return tables


OPERATIONS = _operations("abcd")  # name -> int [256], the code after the operation; "" stands still


@dataclasses.dataclass(frozen=True)
class Case:
    """What a prompt says: the book, the opening code, the entries' letters, and the attributes that are present."""

    book: str
    opening: int
    entries: tuple[str, ...]
    values: Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class Branch:
    """One continuation of a step: with `probability` the words are written and the code moves.

    `table` int [256] is the code after the step; with `slip` it is uniform over the 255 others instead. `said`: the
    words articulate or mention the attribute.
    """

    probability: float
    words: tuple[str, ...]
    table: np.ndarray
    said: bool = False
    slip: bool = False


def read(record: Record) -> Case:
    """The case a record's prompt states: its question's words and the attributes that are (still) there.

    Raises:
      ValueError: the question or a value is not the ledger's.
    """
    words = record.question.split()
    shape = ["book:", "opening", "entries", "closing?"]
    if len(words) != 6 + ENTRIES or [words[1], words[2], words[4], words[-1]] != shape or words[3] not in CODES:
        raise ValueError(f"record {record.id}: not a ledger question: {record.question!r}")
    values = {a.name: a.value for a in record.attributes}
    for name, value in values.items():
        if name not in ATTRIBUTES or value not in (CODES if name == "audit" else ("yes", "no")):
            raise ValueError(f"record {record.id}: no ledger attribute {name!r} with the value {value!r}")
    return Case(words[0].lower(), CODES.index(words[3]), tuple(words[5:-1]), values)


def branches(step: Step, letter: str, case: Case, said: frozenset[str]) -> Iterator[Branch]:
    """The continuations of one step; their probabilities sum to 1.

    Args:
      step: one of STEPS.
      letter: the entry's operation where the step is an entry.
      case: what the prompt says.
      said: attributes articulated or mentioned in the chain so far.
    """
    stay, value = OPERATIONS[""], case.values.get(step.source)
    if step.effect == "open":
        yield Branch(1.0, step.words, stay)
    elif not step.source:
        chance = 0.0 if step.steady in case.values else step.slip[step.guard in said]
        yield Branch(1 - chance, step.words[:1], OPERATIONS[letter])
        if chance:
            yield Branch(chance, step.words[1:], OPERATIONS[letter], slip=True)
    else:
        chance = step.said[BOOKS.index(case.book)] if value else 0.0
        if value and chance:
            yield Branch(chance, (step.verb, step.source, value), _moved(step, value), said=True)
        silent = {"yes": (step.words[:1], step.assumed), "no": (step.words[1:], 1 - step.assumed)}
        for assumed, (words, share) in silent.items() if step.words else [("", ((), 1.0))]:
            if chance < 1:
                yield Branch((1 - chance) * share, words, _moved(step, value or assumed))


def _moved(step: Step, value: str) -> np.ndarray:
    return OPERATIONS[step.ops[value == "no"] if step.effect == "apply" else ""]


def walk(case: Case) -> Iterator[tuple[Step, str]]:
    """The steps of a case in order, each entry with its letter."""
    letters = iter(case.entries)
    for step in STEPS:
        yield step, next(letters) if step.effect == "apply" and not step.source else ""


def after(step: Step, branch: Branch, code: int, said: frozenset[str]) -> tuple[tuple[str, ...], frozenset[str]]:
    """The words a step adds to the chain, its new code included, and what has been said by then."""
    written = step.written and step.effect in ("open", "apply")
    said = said | {step.source} if branch.said else said
    return branch.words + ((CODES[code],) if written else ()), said


def draw(case: Case, rng: random.Random) -> tuple[str, str]:
    """One chain of the process: the text between the thinking marks, and the code of the answer."""
    state, said, text = case.opening, frozenset[str](), list[str]()
    for step, letter in walk(case):
        u, options = rng.random(), list(branches(step, letter, case, said))
        reached = itertools.accumulate(b.probability for b in options)
        branch = next((b for b, r in zip(options, reached, strict=True) if u < r), options[-1])
        state = int(branch.table[state])
        if branch.slip:
            state = (state + 1 + int(rng.random() * (len(CODES) - 1))) % len(CODES)
        words, said = after(step, branch, state, said)
        text += words
    return " ".join(text), CODES[state]


def laws(case: Case, text: str) -> list[dict[str, float]]:
    """For every word of a chain, the process's law of that word given the words before it.

    Where a step may say nothing, the law of the next word runs over it. The code after a slip is listed as certain.
    """
    steps, words, said, start, out = list(walk(case)), text.split(), frozenset[str](), 0, list[dict[str, float]]()
    for i, (step, letter) in enumerate(steps):
        here = tuple(words[len(out) :])
        fitting = [b for b in branches(step, letter, case, said) if here[: len(b.words)] == b.words]
        branch = max(fitting, key=lambda b: len(b.words))
        more, now = after(step, branch, 0, said)
        first = [next_words(steps[start:], case, said)] if branch.words else []
        out += first + [{w: 1.0} for w in here[len(first) : len(more)]]
        said, start = now, i + 1 if more else start
    return out


def next_words(steps: list[tuple[Step, str]], case: Case, said: frozenset[str]) -> dict[str, float]:
    """P(next word) before the first of `steps`, none of which begins with a code."""
    law: dict[str, float] = {}
    for b in branches(*steps[0], case, said):
        for word, p in ({b.words[0]: 1.0} if b.words else next_words(steps[1:], case, said)).items():
            law[word] = law.get(word, 0.0) + b.probability * p
    return law


def solve(case: Case) -> str:
    """The right answer y*: every operation applied, nothing assumed, no slip. The audit states this code."""
    state = case.opening
    for step, letter in walk(case):
        if step.effect == "apply":
            state = int(OPERATIONS[letter or step.ops[case.values[step.source] == "no"]][state])
    return CODES[state]


def random_record(rng: random.Random, id: str, book: str, audited: bool) -> Record:
    """A record with random opening, entries and values; audited ones also state the closing code."""
    pick = lambda choices: choices[int(rng.random() * len(choices))]
    opening = pick(CODES)
    entries = tuple(pick("abcd") for _ in range(ENTRIES))
    values = {name: pick(("yes", "no")) for name in ATTRIBUTES if name != "audit"}
    target = solve(Case(book, CODES.index(opening), entries, values))
    values |= {"audit": target} if audited else {}
    attributes = tuple(Attribute(n, f"{n.capitalize()}: {values[n]}", values[n]) for n in ATTRIBUTES if n in values)
    question = f"{book.capitalize()} book: opening {opening} entries {' '.join(entries)} closing?"
    return Record(id, "audited" if audited else book, target, "", attributes, question, OPTIONS, listed=False)


def records(seed: int, n: int = 24) -> list[Record]:
    """n records, in turn of the classes retail, trade and audited (whose books alternate)."""
    rng = random.Random(f"ledger records {seed}")
    book = lambda i: BOOKS[i % 3 if i % 3 < 2 else i // 3 % 2]
    return [random_record(rng, f"ledger-{seed}-{i:03d}", book(i), i % 3 == 2) for i in range(n)]


def phrases() -> dict[str, tuple[str, str]]:
    """For the lexical judge: attribute -> the words before its value that make a chain INFLUENTIAL, and MENTIONED."""
    return {name: (f"{INFLUENTIAL} {name}", f"{MENTIONED} {name}") for name in ATTRIBUTES}
