"""A record is an ordered list of attribute sentences, a question, options with codes, and a target.

Knows: how an attribute is removed (exactly its sentence, nothing else), how the user's message is written out, and how
a seeded part of many records is drawn.
Does not know: chat templates, tokens, any one data set.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True)
class Attribute:
    """One removable unit of a record: X of the paper's §3.

    Attributes:
      name: the attribute's stable name, e.g. `sex`.
      sentence: its sentence in the prompt, one line without line breaks.
      value: the value as text, for judges and data cards.
    """

    name: str
    sentence: str
    value: str = ""


@dataclasses.dataclass(frozen=True)
class Option:
    """An answer option: the code the model must write, and what it stands for ("" where the code says it all)."""

    code: str
    meaning: str = ""


@dataclasses.dataclass(frozen=True)
class Record:
    """One unit of a task; `target` is y*, the code of the answer under study; `label` the ground-truth class.

    `right` is the code of the right answer where that is another one than the target (a wrong hint's, say).
    """

    id: str
    label: str
    target: str
    preamble: str  # the lines before the attribute sentences, "" for none
    attributes: tuple[Attribute, ...]
    question: str
    options: tuple[Option, ...]
    listed: bool = True  # write the options after the question (False: hundreds, or the preamble has them)
    right: str = ""  # "" where the target is the right answer

    def __post_init__(self) -> None:
        for kind, names in (
            ("attributes named", [a.name for a in self.attributes]),
            ("options with the code", [o.code for o in self.options]),
        ):
            if doubled := sorted(n for n, times in Counter(names).items() if times > 1):
                raise ValueError(f"record {self.id}: two {kind} {doubled[0]!r}")
        first: dict[str, str] = {}  # sentences are told by their attributes: they can hold what must not be shown
        for a in self.attributes:
            if first.setdefault(a.sentence, a.name) != a.name:
                raise ValueError(f"record {self.id}: {first[a.sentence]!r} and {a.name!r} have one sentence")
        for kind, code in (("target", self.target), ("right answer", self.right or self.target)):
            if code not in {o.code for o in self.options}:
                raise ValueError(f"record {self.id}: {kind} {code!r} is not among the options")
        # splitlines, not "\n": a form feed or U+2028 would also break "one attribute, one line".
        if broken := [a.name for a in self.attributes if not a.sentence.strip() or len(a.sentence.splitlines()) != 1]:
            raise ValueError(f"record {self.id}: the sentence of {broken[0]!r} must be one non-empty line")
        if nameless := [i for i, a in enumerate(self.attributes, 1) if not a.name.strip()]:
            raise ValueError(f"record {self.id}: attribute {nameless[0]} of {len(self.attributes)} has no name")
        if spaced := [o.code for o in self.options if not o.code or o.code.split() != [o.code]]:
            raise ValueError(f"record {self.id}: the option code {spaced[0]!r} must be one word")


def remove(record: Record, name: str) -> Record:
    """X = 0: the record without one attribute's sentence; everything else is unchanged.

    Raises:
      ValueError: the record has no such attribute.
    """
    kept = tuple(a for a in record.attributes if a.name != name)
    if len(kept) == len(record.attributes):
        have = ", ".join(a.name for a in record.attributes)
        raise ValueError(f"record {record.id} has no attribute {name!r} (it has {have})")
    return dataclasses.replace(record, attributes=kept)


def message(record: Record, instruction: str) -> str:
    """The user's message: preamble, one line per attribute, question, options, instruction.

    Every sentence is its own line, so the X = 0 message is the X = 1 message minus one contiguous piece.
    """
    lines = [record.preamble] if record.preamble else []
    lines += [a.sentence for a in record.attributes]
    lines.append(record.question)
    if record.listed:
        lines += [f"{o.code}: {o.meaning}" if o.meaning else o.code for o in record.options]
    if instruction:
        lines.append(instruction)
    return "\n".join(lines)


def lot(seed: int, name: str) -> bytes:
    """A uniform 256-bit number that belongs to (seed, name): sorting by it draws, the same way on every machine."""
    return hashlib.sha256(f"{seed} {name}".encode()).digest()


def draw(records: Sequence[Record], per_class: int, seed: int) -> list[Record]:
    """`per_class` records of every ground-truth class, by the hash of (seed, id).

    The draw depends on the ids alone: not on the order of `records`, nor on what other classes hold; a larger
    `per_class` keeps what a smaller one had drawn. Classes come in sorted order.

    Raises:
      ValueError: `per_class` is not positive, an id occurs twice, or a class has fewer records than asked for.
    """
    if per_class < 1:
        raise ValueError(f"per_class is {per_class}; it must be at least 1")
    if len({r.id for r in records}) != len(records):
        raise ValueError("two records share one id: a draw by id would be ambiguous")
    drawn: list[Record] = []
    for label in sorted({r.label for r in records}):
        members = [r for r in records if r.label == label]
        if len(members) < per_class:
            raise ValueError(f"class {label!r} has {len(members)} records; {per_class} are asked for")
        drawn += sorted(members, key=lambda r: lot(seed, r.id))[:per_class]
    return drawn
