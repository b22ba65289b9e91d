"""The file release_evidences.json: DDXPlus's 223 questions, and what a patient's answer to one reads like.

Knows: questions, kinds of answers, the words of values. Does not know: patients.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jaxmon.tasks import files

BINARY, MULTIPLE = "B", "M"  # data_type: yes where listed; several values make one answer; C has exactly one value
SIDES = {"R": "right", "L": "left"}
PLAIN = {  # values the release abbreviates, leaves in French, or translates wrongly
    "N": "no",
    "Y": "yes",
    "NA": "not applicable",
    "Caraibes": "the Caribbean",
    "ischio jambier": "hamstring",
    "palace": "palate",
}


@dataclasses.dataclass(frozen=True)
class Question:
    """One evidence: its code, its English text, its kind, and the English of its values ("" keys: none, a number)."""

    code: str
    text: str
    kind: str
    values: Mapping[str, str]
    numbers: tuple[int, ...] = ()

    def answer(self, values: Sequence[str]) -> str:
        """The answer in words, e.g. "yes", "4 (from 0 to 10)", "forehead, temple (left)".

        Raises:
          ValueError: values that this question does not have.
        """
        if self.kind == BINARY:
            if values:
                raise ValueError(f"{self.code} takes no value, got {values[0]!r}")
            return "yes"
        if not values:
            raise ValueError(f"{self.code} needs a value")
        if self.kind != MULTIPLE and len(values) > 1:
            raise ValueError(f"{self.code} takes one value, got {', '.join(values)}")
        if doubled := [v for i, v in enumerate(values) if v in values[:i]]:
            raise ValueError(f"{self.code} has the value {doubled[0]} twice")
        return ", ".join(self._word(v) for v in values)

    def _word(self, value: str) -> str:
        if value in self.values:
            return self.values[value]
        if value.isdecimal() and int(value) in self.numbers:
            return f"{int(value)} (from {min(self.numbers)} to {max(self.numbers)})"
        raise ValueError(f"{self.code} has no value {value!r}")


def read(path: str | Path, sha256: str | None) -> dict[str, Question]:
    """The questions by code.

    Args:
      path: release_evidences.json.
      sha256: the checksum it must have; None accepts any file.

    Raises:
      ValueError: another checksum, or a file of another form; names the evidence.
      OSError: the file cannot be opened.
    """
    data = files.load(path)
    files.check(data, sha256, path)
    try:
        entries = json.loads(files.decode(data, path))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}, line {error.lineno}: {error.msg}") from None
    if not isinstance(entries, dict) or not entries:
        raise ValueError(f"{path}: not a table of evidences")
    found = {}
    for code, entry in entries.items():
        try:
            found[code] = _question(code, entry)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path}: evidence {code!r}: {type(error).__name__}: {error}") from None
    return found


def _question(code: str, entry: Mapping[str, Any]) -> Question:
    kind, text = entry["data_type"], " ".join(entry["question_en"].split())
    if kind not in (BINARY, MULTIPLE, "C") or not text:
        raise ValueError(f"data_type {kind!r}, question {text!r}")
    values = {value: _plain(words["en"]) for value, words in entry["value_meaning"].items()}
    numbers = tuple(v for v in entry["possible-values"] if isinstance(v, int))
    return Question(code, text, kind, values, numbers)


def _plain(words: str) -> str:
    """A value in plain English: "iliac wing(R)" -> "iliac wing (right)", "N" -> "no"."""
    place, mark, side = " ".join(words.split()).partition("(R)" if "(R)" in words else "(L)")
    place = PLAIN.get(place.strip(), place.strip())
    return f"{place} ({SIDES[mark[1]]}){side}" if mark else place
