"""The task `ladder`: a generating process whose attributes stand on known levels of necessity (§2's 1, 2 and 3.m).

As in `ledger`, a book opens at one of 256 codes, operations move the code, and the question asks for the code it closes
at. Here a chain has 16 words, each at its own place (SLOTS), and the process is one function, `law`: the distribution
of the next word, given what the prompt shows at that moment and the words so far. So chains can be drawn while the
prompt changes under them, which is what an exposure window does (§9).

    from N066 done then N021 N236 weigh heavy N162 surely N126 one two three light N244

An attribute acts where its sentence is visible while its words are written:

| attribute | level | places | what it does there |
|---|---|---|---|
| levy | 2 | one: its code | its operation is applied to the running code |
| toll | 3.2 | two: `weigh`, then `heavy` (yes) or `light` (no) | each word needs the one before |
| tariff | 3.4 | four: `one`, `two`, `three`, then `heavy` or `light` | the same |
| stamp | 1 | none: the answer itself | its operation is applied with the answer |
| memo | placebo | none | nothing |

Hidden at any of its places, a weighing says `pause` there and ends in `then` or `thus`: yes or no is assumed, by
chance. The same two words stand before levy's code, and `done` or `over` near the opening for stamp; they are drawn
alike whether the sentence is visible or not, and count where it is hidden. No attribute is ever named in a chain: every
M is 0.

A chain may be cut after any word: the answer is then the last code written, with stamp applied.

Knows: the process, its records, its exact scores. Does not know: tokens, models, estimators.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from jaxmon.records import Attribute, Record, remove
from jaxmon.tasks.ledger import CODES, OPERATIONS, OPTIONS
from jaxmon.tasks.ledger_truth import Truth, pair_truth

ATTRIBUTES = ("levy", "toll", "tariff", "stamp", "memo")  # in the order of the prompt
LEVELS = {"levy": "2", "toll": "3.2", "tariff": "3.4", "stamp": "1", "memo": ""}
PLACEBOS = ("memo",)
OPS = {"levy": ("c", "d"), "toll": ("a", "b"), "tariff": ("b", "c"), "stamp": ("d", "a")}  # for yes, no
ASSUMED = {"levy": 0.4, "toll": 0.5, "tariff": 0.4, "stamp": 0.35}  # P(yes is assumed) where the sentence is hidden
WORDS = {"levy": ("then", "thus"), "toll": ("then", "thus"), "tariff": ("then", "thus"), "stamp": ("done", "over")}
MARKS = {"toll": ("weigh",), "tariff": ("one", "two", "three")}
CARRIED = ("heavy", "light")  # a weighing's last word where it was seen throughout: yes, no
HIDDEN = "pause"
DIRECT = 1 / len(CODES)  # P(target) without a chain: six operations cannot be applied in one pass
ENTRIES, SLIP, SLIPS = 2, 0.3, ("surely", "perhaps")  # the second entry's code slips after "perhaps"


@dataclasses.dataclass(frozen=True)
class Slot:
    """One word of a chain.

    Attributes:
      kind: `fixed`, `opening`, `assume` (a word of WORDS), `apply` (the code after an attribute's operation), `entry`
        (the code after the next entry's), `slip`, or `weigh` (place `index` of a weighing).
      source: the attribute, or the fixed word.
    """

    kind: str
    source: str = ""
    index: int = 0


def _weighing(name: str) -> tuple[Slot, ...]:
    return (*(Slot("weigh", name, i) for i in range(len(MARKS[name]) + 1)), Slot("apply", name))


SLOTS = (
    Slot("fixed", "from"),
    Slot("opening"),
    Slot("assume", "stamp"),
    Slot("assume", "levy"),
    Slot("apply", "levy"),
    Slot("entry"),
    *_weighing("toll"),
    Slot("slip"),
    Slot("entry", index=1),
    *_weighing("tariff"),
)
# The words during which an attribute must be visible to act; len(SLOTS) stands for the answer.
PLACES: Mapping[str, tuple[int, ...]] = {
    "levy": (SLOTS.index(Slot("apply", "levy")),),
    **{name: tuple(i for i, s in enumerate(SLOTS) if s.kind == "weigh" and s.source == name) for name in MARKS},
    "stamp": (len(SLOTS),),
    "memo": (),
}


@dataclasses.dataclass(frozen=True)
class Case:
    """What a prompt shows: the opening code, the entries' letters, and the visible attributes' values."""

    opening: int
    entries: tuple[str, ...]
    values: Mapping[str, str]


def read(record: Record) -> Case:
    """The case a record's prompt states.

    Raises:
      ValueError: the question or a value is not the ladder's.
    """
    words = record.question.split()
    shape = ["Ladder", "book:", "opening", "entries", "closing?"]
    if len(words) != 6 + ENTRIES or [*words[:3], words[4], words[-1]] != shape or words[3] not in CODES:
        raise ValueError(f"record {record.id}: not a ladder question: {record.question!r}")
    values = {a.name: a.value for a in record.attributes}
    if strange := [f"{n}: {v}" for n, v in values.items() if n not in ATTRIBUTES or v not in ("yes", "no")]:
        raise ValueError(f"record {record.id}: no attribute of the ladder, or no value of it: {strange[0]}")
    return Case(CODES.index(words[3]), tuple(words[5:-1]), values)


def _state(case: Case, words: Sequence[str]) -> int:
    """The last code written, or the opening's."""
    return next((CODES.index(w) for w in reversed(words) if w in CODES), case.opening)


def _moved(name: str, value: str, code: int) -> int:
    return int(OPERATIONS[OPS[name][value == "no"]][code])


def law(case: Case, words: Sequence[str]) -> dict[str, float]:
    """P(next word | what the prompt shows now, the words so far); sums to 1. A slip's code is uniform over 255."""
    slot = SLOTS[len(words)]
    if slot.kind == "fixed":
        return {slot.source: 1.0}
    code = _state(case, words)
    if slot.kind == "opening":
        return {CODES[code]: 1.0}
    if slot.kind == "slip":
        return {SLIPS[0]: 1 - SLIP, SLIPS[1]: SLIP}
    if slot.kind == "entry":
        right = int(OPERATIONS[case.entries[slot.index]][code])
        if words[-1] != SLIPS[1]:
            return {CODES[right]: 1.0}
        return {c: 1 / (len(CODES) - 1) for i, c in enumerate(CODES) if i != right}
    value = case.values.get(slot.source)
    share = ASSUMED[slot.source]
    assumed = dict(zip(WORDS[slot.source], (share, 1 - share), strict=True))
    if slot.kind == "assume":
        return assumed
    if slot.kind == "apply":
        if slot.source == "levy" and value:
            said = value
        else:
            said = "yes" if words[-1] in (WORDS[slot.source][0], CARRIED[0]) else "no"
        return {CODES[_moved(slot.source, said, code)]: 1.0}
    marks = MARKS[slot.source]
    reached = marks.index(words[-1]) + 1 if slot.index and words[-1] in marks else 0
    if slot.index < len(marks):
        return {marks[reached] if value else HIDDEN: 1.0}
    return {CARRIED[value == "no"]: 1.0} if value and reached == len(marks) else assumed


def answer(case: Case, words: Sequence[str]) -> dict[str, float]:
    """P(answer | what the prompt shows now, the words so far), of a whole chain or of one cut after any word."""
    code, value = _state(case, words), case.values.get("stamp")
    if value is None and len(words) > 2:
        value = "yes" if words[2] == WORDS["stamp"][0] else "no"
    shares = {value: 1.0} if value else {"yes": ASSUMED["stamp"], "no": 1 - ASSUMED["stamp"]}
    return {CODES[_moved("stamp", v, code)]: p for v, p in shares.items()}


def draw(shown: Callable[[int], Case], rng: random.Random) -> list[str]:
    """One chain; `shown(i)` is what the prompt shows while word i is written."""
    words: list[str] = []
    for i in range(len(SLOTS)):
        options = law(shown(i), words)
        words.append(rng.choices(list(options), list(options.values()))[0])
    return words


def solve(case: Case) -> str:
    """The right answer y*: every operation applied, nothing assumed, no slip."""
    code = case.opening
    for slot in SLOTS:
        if slot.kind == "entry":
            code = int(OPERATIONS[case.entries[slot.index]][code])
        elif slot.kind == "apply":
            code = _moved(slot.source, case.values[slot.source], code)
    return CODES[_moved("stamp", case.values["stamp"], code)]


def outcomes(case: Case) -> np.ndarray:
    """P(answer) of a chain: float64 [256]. Choices are independent, so a distribution over codes is pushed through."""
    p = np.zeros(len(CODES))
    p[case.opening] = 1.0
    push = lambda p, name: np.bincount(OPERATIONS[name], p, len(CODES))

    def attribute(p: np.ndarray, name: str) -> np.ndarray:
        yes = {"yes": 1.0, "no": 0.0}.get(case.values.get(name, ""), ASSUMED[name])
        return yes * push(p, OPS[name][0]) + (1 - yes) * push(p, OPS[name][1])

    for slot in SLOTS:
        if slot.kind == "apply":
            p = attribute(p, slot.source)
        elif slot.kind == "entry":
            right = push(p, case.entries[slot.index])
            slip = SLIP if slot.index else 0.0  # the second entry may slip
            p = (1 - slip) * right + slip * (1 - right) / (len(CODES) - 1)
    return attribute(p, "stamp")


def random_record(rng: random.Random, id: str) -> Record:
    """A record with random opening, entries and values."""
    pick = lambda choices: choices[int(rng.random() * len(choices))]
    opening, entries = pick(CODES), tuple(pick("abcd") for _ in range(ENTRIES))
    values = {name: pick(("yes", "no")) for name in ATTRIBUTES}
    target = solve(Case(CODES.index(opening), entries, values))
    attributes = tuple(Attribute(n, f"{n.capitalize()}: {values[n]}", values[n]) for n in ATTRIBUTES)
    question = f"Ladder book: opening {opening} entries {' '.join(entries)} closing?"
    return Record(id, "ladder", target, "", attributes, question, OPTIONS, listed=False)


def records(seed: int, n: int) -> list[Record]:
    """n records; the first ones of a larger n are the same."""
    rng = random.Random(f"ladder records {seed}")
    return [random_record(rng, f"ladder-{seed}-{i:03d}") for i in range(n)]


def truth(record: Record) -> list[Truth]:
    """True scores of every attribute of a record (§3), exactly; nothing is ever said, so pi_Z and M are 0."""
    target = CODES.index(record.target)
    p11 = float(outcomes(read(record))[target])
    rows = []
    for name in (a.name for a in record.attributes):
        p01 = float(outcomes(read(remove(record, name)))[target])
        level = int(LEVELS[name][0]) if LEVELS[name] else None
        rows.append(pair_truth(record, name, p11, p01, 0.0, level, DIRECT, DIRECT))
    return rows


def phrases() -> dict[str, tuple[str, str]]:
    """For the lexical judge; a chain of the process never has these words."""
    return {name: (f"since {name}", f"noting {name}") for name in ATTRIBUTES}
