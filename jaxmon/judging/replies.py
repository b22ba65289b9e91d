"""From a judge's reply to labels: a label is given only where the reply states it unambiguously, else a parse failure.

What counts: the JSON objects of the reply, after its reasoning where it has a closed block of it. An attribute has a
label where every statement of it names the same one of the three labels, without regard to case, and with spaces or
hyphens for the underscores. So prose around an object, a code fence, an object said twice, and keys that nobody asked
for do no harm; a missing attribute, two different labels, or a value that is no label costs that attribute its label.
The whole reply is unreadable where it was cut short, refused, never left its reasoning, or holds a brace that opens no
JSON object: then nothing in it can be told from a draft.

Knows: text in, labels out. Does not know: servers, rubrics, models.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from jaxmon.judging.judge import Label
from jaxmon.judging.rubric import WORDS

WHOLE = ("stop", "")  # finish reasons of a reply that ended by itself; "" where the server gives none
_CLOSE = re.compile(r"</(?:think|thinking|reasoning)>", re.IGNORECASE)
_OPEN = re.compile(r"<(?:think|thinking|reasoning)>", re.IGNORECASE)
_BETWEEN = re.compile(r"[\s_-]+")

Pairs = list[tuple[str, object]]


def read(text: str, names: Sequence[str], finish: str = "stop") -> dict[str, Label]:
    """Exactly one label for each attribute, PARSE_FAILURE where the reply does not state one unambiguously.

    Args:
      text: the reply.
      names: the attributes asked about.
      finish: the server's finish reason; anything but one of WHOLE makes the reply unreadable.
    """
    said: dict[str, set[Label]] = {name: set() for name in names}
    spelled = _spellings(names)
    for key, value in _statements(text) if finish in WHOLE else []:
        if (name := spelled.get(key) or spelled.get(key.casefold())) is not None:
            said[name].add(_label(value))
    return {name: labels.pop() if len(labels) == 1 else Label.PARSE_FAILURE for name, labels in said.items()}


def _spellings(names: Sequence[str]) -> dict[str, str]:
    """What a key may look like: the name itself, and in any case where no two names then look alike."""
    folded = [name.casefold() for name in names]
    return {f: n for f, n in zip(folded, names, strict=True) if folded.count(f) == 1} | {n: n for n in names}


def _label(value: object) -> Label:
    """The label a value names; PARSE_FAILURE for anything else."""
    word = _BETWEEN.sub("_", value.strip()).upper() if isinstance(value, str) else ""
    return WORDS.get(word, Label.PARSE_FAILURE)


def _statements(text: str) -> Pairs:
    """Keys and values of all JSON objects at the top level of a reply, doubled keys included; [] if unreadable."""
    text = _CLOSE.split(text)[-1]
    if _OPEN.search(text):
        return []
    decoder = json.JSONDecoder(object_pairs_hook=_Object)
    found: Pairs = []
    at = text.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return []
        found += value.pairs
        at = text.find("{", end)
    return found


class _Object:
    """A JSON object with its keys as they were written, doubled ones included."""

    def __init__(self, pairs: Pairs):
        self.pairs = pairs
