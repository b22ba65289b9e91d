"""What a chain's text says: its outcome, its chain of thought, and its last explicit answer.

Knows: how an answer is stated in words ("Answer: G", "**Final answer:** (G)", "the answer is G", a boxed G) and when a
statement is no answer. Does not know: tokens, probabilities, any one task. Text in, values out.

An answer must be stated, never guessed: a chain that ends in a name without its code, in two codes, or in a code that
is not on the menu is malformed, and no earlier statement steps in. Codes are read case-sensitively.
"""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Mapping, Sequence
from typing import Protocol

from jaxmon.records import Option

Menu = Mapping[str, tuple[str, ...]]  # code -> its meanings in lower case, as a model may copy them


class Outcome(enum.StrEnum):
    """How a chain ended (the study's idea 5). Only `answered` can be the target answer, Y = 1."""

    ANSWERED = "answered"
    TRUNCATED = "truncated"  # the length limit came before a stop token, whatever had been written by then
    UNCLOSED = "unclosed"  # stopped inside the thinking channel
    MALFORMED = "malformed"  # stopped without an explicit answer, or the last one is not an option's code


class Channel(Protocol):
    """A chat family's thinking channel: the marks that open and close it (None where there is none), and the marks
    that end a turn."""

    @property
    def think_open(self) -> str | None: ...
    @property
    def think_close(self) -> str | None: ...
    @property
    def stops(self) -> tuple[str, ...]: ...


@dataclasses.dataclass(frozen=True)
class Chain:
    """A chain, read.

    Attributes:
      outcome: how it ended.
      code: the option's code where `outcome` is answered, else None.
      thought: the chain of thought a monitor reads: the text inside the thinking channel; where no channel was used,
        the text before the last explicit answer (all of it, where there is none). Without marks, stripped.
      answer: the text after the channel; where no channel was used, from the last explicit answer on.
    """

    outcome: Outcome
    code: str | None
    thought: str
    answer: str


@dataclasses.dataclass(frozen=True)
class Statement:
    """One explicit answer in a text: where it starts, and its code (None: not one code of the menu)."""

    start: int
    code: str | None


# A mark opens a statement. Most marks announce an answer, so that whatever follows counts; after a `loose` one
# ("the answer is ...") only something that looks like a code does: "the answer is unclear" states nothing.
_MARK = re.compile(
    r"""
      \\boxed \s* \{ (?: \s* \\text(?:bf)? \s* \{ )?
    | ^ [ \t]* (?: \#{1,6} [ \t]* )? [*_]{0,3} (?:the[ ])? (?:final[ ])? answer [ \t*_]* $      # a heading of its own
    | (?<! [a-z0-9] ) answer [ ]? [*_]{0,3} [ ]? (?: [:：=] | (?P<loose> (?:is|would[ ]be|must[ ]be) \b [ ]? :? ) )
    """,
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_NOT_FINAL = re.compile(r"\b(?:wrong|incorrect|false|another|other|alternative|possible|previous|earlier)\s+$", re.I)
_DRESS = r"""[\s*_`"'“”‘’(\[{$<\\:]*"""
_HEDGE = r"(?:option|code|choice|letter|clearly|therefore|thus|(?:most\s+)?(?:likely|probably))\b"
_OPENING = re.compile(rf"{_DRESS}(?:{_HEDGE}{_DRESS})*", re.I)
_WORD = re.compile(r"\w+(?:[-/|+&]\w+)*")
_CLOSING = r"""[*_`"'“”‘’)\]}$>\\]*\s*"""
_END = re.compile(rf"{_CLOSING}(?:[.!?;](?!\d)|<\||$)")  # nothing more is said of the answer
_GLOSS = re.compile(rf"{_CLOSING}(?:[,:(\[–—-]|(?:because|since|given|due|based|rather|instead)\b)", re.I)
_SENTENCE_END = re.compile(r"[.!?;](?:\s|$)")
_REJECTED = re.compile(r"\b(?:not|than|instead of|over|out)\s+\W?$", re.I)
_SECOND = re.compile(r"\s*(?:or|and|nor|/|\|)\b")


def menu(options: Sequence[Option]) -> Menu:
    """The menu of a task: each code with its meaning, as it stands and without a bracketed group."""
    return {o.code: tuple(m.lower() for m in (o.meaning, o.meaning.split(" (")[0]) if m) for o in options}


def _names_another(gloss: str, code: str, codes: Menu) -> bool:
    """Whether a second code is named; not one that is rejected ("not F"), nor "A" and "I" before a word of English."""
    for word in _WORD.finditer(gloss):
        english = word[0] in ("A", "I") and re.match(r"\s+[a-z]", gloss[word.end() :])
        if word[0] in codes and word[0] != code and not english and not _REJECTED.search(gloss[: word.start()]):
            return True
    return False


def _statement(text: str, mark: re.Match[str], codes: Menu) -> Statement | None:
    """What stands after a mark: a code, no single code (None inside), or nothing that states an answer (None)."""
    nothing = None if mark["loose"] else Statement(mark.start(), None)
    opening = _OPENING.match(text, mark.end())
    start = opening.end() if opening else mark.end()
    word = _WORD.match(text, start)
    code = word[0].rstrip("_") if word else ""  # an underscore is a word character, and markdown: _G_
    if code not in codes:
        coded = code.upper() == code and code.replace("_", "") != ""
        return Statement(mark.start(), None) if coded else nothing
    line = text[start + len(code) :].split("\n", 1)[0]
    if _END.match(line) or line.strip(" *_").lower().startswith(codes[code]):
        return Statement(mark.start(), code)
    if gloss := _GLOSS.match(line):
        said = _SENTENCE_END.split(line[gloss.end() :], maxsplit=1)[0]
        return Statement(mark.start(), None if _names_another(said, code, codes) else code)
    return Statement(mark.start(), None) if _SECOND.match(line) else nothing  # "G or F"; "I think that ..."


def statements(text: str, codes: Menu) -> list[Statement]:
    """Every explicit answer in a text, in order; the last one wins.

    Args:
      text: the part of a chain in which answers count (after the thinking channel).
      codes: the menu.
    """
    marks = (m for m in _MARK.finditer(text) if not _NOT_FINAL.search(text, max(0, m.start() - 16), m.start()))
    return [s for s in (_statement(text, m, codes) for m in marks) if s]


def parse(text: str, stopped: bool, codes: Menu, channel: Channel, opened: bool = False) -> Chain:
    """The outcome of one chain.

    Args:
      text: the decoded sampled tokens with the marks kept; a trailing stop mark is left out.
      stopped: a stop token was drawn (False: the length limit came first).
      codes: the menu.
      channel: the chat family's thinking marks.
      opened: the prompt itself had opened the channel.

    Returns:
      The chain, read. Answers inside the thinking never count; only the text after the last closing mark does.
    """
    text = next((text.removesuffix(mark) for mark in channel.stops if text.endswith(mark)), text)
    start, close = channel.think_open, channel.think_close
    used = inside = False
    thought, answer = "", text
    if start and close and (opened or start in text or close in text):
        used = True
        head, mark, tail = text.rpartition(close)
        inside = start in tail or (opened and not mark)
        thought, answer = (text, "") if inside else (head, tail)
        thought = thought.replace(start, "").replace(close, "").strip()
    found = statements(answer, codes)
    if not used:
        cut = found[-1].start if found else len(text)
        thought, answer = text[:cut].strip(), text[cut:]
    if not stopped:
        return Chain(Outcome.TRUNCATED, None, thought, answer)
    if inside:
        return Chain(Outcome.UNCLOSED, None, thought, answer)
    code = found[-1].code if found else None
    return Chain(Outcome.MALFORMED if code is None else Outcome.ANSWERED, code, thought, answer)
