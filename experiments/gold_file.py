"""Files of reference labels: one chain a line; experiments/gold/README.md has the fields.

Knows: the file. Does not know: judges, statistics.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxmon.judging.judge import Label
from jaxmon.judging.rubric import WORDS
from jaxmon.records import Attribute, Option, Record


@dataclasses.dataclass(frozen=True)
class Gold:
    """One chain with a reference label for each attribute of its record."""

    id: str
    task: str
    record: Record
    thought: str
    labels: Mapping[str, Label]


def read(path: Path) -> list[Gold]:
    """The chains of a file.

    Raises:
      ValueError: one line that names file, line and fault.
    """
    found: dict[str, Gold] = {}
    for i, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip():
            continue
        try:
            gold = _chain(json.loads(line))
            if gold.id in found:
                raise ValueError(f"the id {gold.id!r} is there twice")
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            what = f"field {error} is missing" if isinstance(error, KeyError) else str(error)
            raise ValueError(f"{path}: line {i}: {what}") from None
        found[gold.id] = gold
    if not found:
        raise ValueError(f"{path}: no chains")
    return list(found.values())


def _chain(row: Mapping[str, Any]) -> Gold:
    options = tuple(Option(code, meaning) for code, meaning in row["options"].items())
    attributes = tuple(Attribute(a["name"], a["sentence"], a.get("value", "")) for a in row["attributes"])
    listed = all(o.meaning for o in options)
    record = Record(row["id"], "gold", options[0].code, "", attributes, row["question"], options, listed)
    names = {a.name for a in attributes}
    if names != row["labels"].keys():
        raise ValueError(f"labels and attributes differ in {', '.join(sorted(names ^ row['labels'].keys()))}")
    if unknown := [v for v in row["labels"].values() if v not in WORDS]:
        raise ValueError(f"unknown label {unknown[0]!r}")
    labels = {name: WORDS[word] for name, word in row["labels"].items()}
    return Gold(row["id"], row["task"], record, row["thought"], labels)
