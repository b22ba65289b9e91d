"""Label patterns: the joint law of the X=1 arm over a record's attributes, as a count per pattern.

Columns: record, batch, pattern, count (int64, >= 1). Every chain of an X=1 arm has one pattern:
    one letter per attribute   a judged target answer: N not mentioned, M mentioned, I influential (Z = 1), ? the reply
                               was not readable; attributes in alphabetical order of their names, so that no order of
                               rows can shift the letters
    `unjudged`                 a target answer the judge did not see
    `other`                    an answer that is not the target
    `truncated`, `unparsed`    no answer: cut by the length limit; unclosed or malformed

Knows: the notation, the agreement with the counts table. Does not know: scores.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from jaxmon.counting.counts import Counts
from jaxmon.counting.counts_schema import BATCHES, CountsError, read_table, write_table

SCHEMA = pa.schema([("record", pa.string()), ("batch", pa.string()), ("pattern", pa.string()), ("count", pa.int64())])
LETTERS = {"NOT_MENTIONED": "N", "MENTIONED": "M", "INFLUENTIAL": "I", "PARSE_FAILURE": "?"}  # the judge's words
UNJUDGED, OTHER, TRUNCATED, UNPARSED = WORDS = ("unjudged", "other", "truncated", "unparsed")

Patterns = Mapping[tuple[str, str], Mapping[str, int]]  # (record, batch) -> pattern -> chains


def pattern_of(labels: Mapping[str, str]) -> str:
    """The pattern of one judged target answer: a letter per attribute, in alphabetical order of the names.

    Args:
      labels: attribute name -> NOT_MENTIONED, MENTIONED, INFLUENTIAL or PARSE_FAILURE (an enum's name or the string).
    Raises: ValueError for another label.
    """
    names = sorted(labels)
    words = [str(getattr(labels[n], "name", labels[n])) for n in names]
    if unknown := [w for w in words if w not in LETTERS]:
        raise ValueError(f"unknown judge label {unknown[0]!r}")
    return "".join(LETTERS[w] for w in words)


def from_rows(rows: Iterable[Mapping[str, object]]) -> pa.Table:
    """A patterns table from mappings with the keys record, batch, pattern, count."""
    rows = list(rows)
    return pa.table({f.name: pa.array([r[f.name] for r in rows], f.type) for f in SCHEMA}, SCHEMA)


def write_patterns(path: str | os.PathLike[str], table: pa.Table) -> None:
    """Writes atomically."""
    write_table(path, table.select(SCHEMA.names).cast(SCHEMA))


def read_patterns(path: str | Path, counts: Counts) -> Patterns:
    """Reads a patterns file and checks it against the counts it belongs to."""
    return from_table(read_table(path, SCHEMA), counts, str(path))


def from_table(table: pa.Table, counts: Counts, source: str = "patterns") -> Patterns:
    """Validates: patterns of each record and batch sum to n1 and reproduce k1, judged, l, truncated1.

    Raises: CountsError, one line that names row or record, batch, pattern, attribute.
    """
    found: dict[tuple[str, str], dict[str, int]] = {}
    columns = [table.column(name).to_pylist() for name in SCHEMA.names]
    known = set(counts.records)
    for i, (record, batch, pattern, count) in enumerate(zip(*columns, strict=True), 1):
        at = f"{source}: row {i} (record {record}, batch {batch}, pattern {pattern})"
        group = found.setdefault((record, batch), {})
        faults = (
            (record not in known, "column record: not in the counts table"),
            (batch not in BATCHES, "column batch: unknown batch, expected select or estimate"),
            (not pattern, "column pattern: empty"),
            (count is None or count < 1, f"column count: {count}: a count is at least 1"),
            (pattern in group, "column pattern: the row is there twice"),
        )
        for broken, message in faults:
            if broken:
                raise CountsError(f"{at}, {message}")
        group[pattern] = count
    for r, record in enumerate(counts.records):
        for b, batch in enumerate(BATCHES):
            _check_marginals(counts, r, b, found.get((record, batch), {}), f"{source}: record {record}, batch {batch}")
    return found


def attribute_order(counts: Counts, r: int) -> list[int]:
    """Indices of record r's attributes in the order of the letters of its patterns."""
    return sorted(np.flatnonzero(counts.present[r]).tolist(), key=lambda a: counts.attributes[a])


def letters(group: Mapping[str, int]) -> dict[str, int]:
    """The judged target answers among one record's patterns."""
    return {p: c for p, c in group.items() if p not in WORDS}


def _check_marginals(counts: Counts, r: int, b: int, group: Mapping[str, int], at: str) -> None:
    order = attribute_order(counts, r)
    judged = letters(group)
    for pattern in judged:
        if set(pattern) - set(LETTERS.values()):
            raise CountsError(f"{at}: pattern {pattern!r} is neither letters N M I ? nor one of {', '.join(WORDS)}")
        if len(pattern) != len(order):
            raise CountsError(f"{at}: pattern {pattern!r} has {len(pattern)} letters for {len(order)} attributes")
    target = sum(judged.values()) + group.get(UNJUDGED, 0)
    a0 = order[0]
    checks = [
        ("n1", sum(group.values()), counts.n1[r, a0, b]),
        ("k1", target, counts.k1[r, a0, b]),
        ("truncated1", group.get(TRUNCATED, 0), counts.truncated1[r, a0, b]),
    ]
    for position, a in enumerate(order):
        name = counts.attributes[a]
        tally = {c: sum(n for p, n in judged.items() if p[position] == c) for c in "NMI"}
        checks.append((f"judged of attribute {name}", sum(tally.values()), counts.judged[r, a, b]))
        checks.append((f"l of attribute {name}", tally["I"], counts.articulated[r, a, b]))
        if group.get(UNPARSED, 0) > counts.unparsed[r, a, b]:
            raise CountsError(f"{at}: more unparsed chains than `unparsed` of attribute {name} in the counts table")
    for what, here, there in checks:
        if here != there:
            raise CountsError(f"{at}: the patterns give {what} = {here}, the counts table {there}")
