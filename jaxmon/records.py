"""A record is an ordered list of attribute sentences, a question, options with codes, and a target.

Knows: how an attribute is removed (exactly its sentence, nothing else) and how the user's message is written out.
Does not know: chat templates, tokens, any one data set.
"""

from __future__ import annotations

import dataclasses


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
    """One unit of a task; `target` is y*, the code of the answer under study; `label` the ground-truth class."""

    id: str
    label: str
    target: str
    preamble: str  # the lines before the attribute sentences, "" for none
    attributes: tuple[Attribute, ...]
    question: str
    options: tuple[Option, ...]
    listed: bool = True  # write the options into the prompt (False where there are hundreds)

    def __post_init__(self) -> None:
        for kind, names in (
            ("attributes named", [a.name for a in self.attributes]),
            ("attributes with the sentence", [a.sentence for a in self.attributes]),
            ("options with the code", [o.code for o in self.options]),
        ):
            if doubled := sorted({n for n in names if names.count(n) > 1}):
                raise ValueError(f"record {self.id}: two {kind} {doubled[0]!r}")
        if self.target not in {o.code for o in self.options}:
            raise ValueError(f"record {self.id}: target {self.target!r} is not among the options")
        if broken := [a.name for a in self.attributes if not a.sentence.strip() or "\n" in a.sentence]:
            raise ValueError(f"record {self.id}: the sentence of {broken[0]!r} must be one non-empty line")


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
