"""Your own table as a task: a CSV file and a small schema (TOML) that says how a row reads.

    question = "Will the loan be repaid?"
    target = "outcome"            # column with the code of the answer under study
    [sentences]                   # attribute = its sentence; {column} is the row's cell
    income = "The income is {income} EUR a year."
    hint = "I like {hint}."       # a hint, or any other inserted sentence, is an attribute too
    [options]                     # code = meaning; may hold {column} as well
    Y = "it is repaid"
    N = "it is not"

Optional: `preamble` (may hold columns), `id`, `label` (ground-truth class; else the target) and `right` (right answer,
where the target is another) name columns; `missing` lists cells that mean "not known" (default: empty), for which the
sentence is left out; `[words.COLUMN]` writes cells in words (M = "male"); `listed = false` leaves the options out.

A column that stands in two sentences, or in a sentence and in the text around them, would tell a removed value: it is
refused.

Knows: CSV, schemas, records. Does not know: any one table.
"""

from __future__ import annotations

import dataclasses
import hashlib
import string
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxmon.records import Attribute, Option, Record
from jaxmon.tasks import files


@dataclasses.dataclass(frozen=True)
class Schema:
    """How a row reads; the fields are the file's keys (see above)."""

    question: str
    target: str
    sentences: Mapping[str, str]
    options: Mapping[str, str]
    preamble: str = ""
    id: str = ""
    label: str = ""
    right: str = ""
    missing: tuple[str, ...] = ("",)
    words: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    listed: bool = True

    @property
    def frame(self) -> list[str]:
        """The templates around the sentences."""
        return [self.preamble, self.question, *self.options.values()]

    @property
    def columns(self) -> list[str]:
        """Every column the schema names, once."""
        named = [self.target, self.label, self.right, self.id, *self.words]
        named += [c for text in (*self.frame, *self.sentences.values()) for c in columns(text)]
        return [c for c in dict.fromkeys(named) if c]


def columns(template: str) -> list[str]:
    """The columns a template holds.

    Raises:
      ValueError: a brace without its partner, or more than a name between them.
    """
    parts = [(name, spec, mark) for _, name, spec, mark in string.Formatter().parse(template) if name is not None]
    if bad := [name for name, spec, mark in parts if not name or spec or mark or any(c in name for c in ".[]")]:
        raise ValueError(f"{template!r}: {{{bad[0]}}} is not a column's name")
    return list(dict.fromkeys(name for name, *_ in parts))


def read_schema(path: str | Path) -> Schema:
    """Reads a schema.

    Raises:
      ValueError: names the file and the key that is missing, unknown, of the wrong kind, or tells a value twice.
      OSError: the file cannot be opened.
    """
    try:
        found = tomllib.loads(files.decode(files.load(path), path))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path}: {error}") from None
    fields = {f.name: f for f in dataclasses.fields(Schema)}
    if unknown := [key for key in found if key not in fields]:
        raise ValueError(f"{path}: unknown key {unknown[0]!r} (there are {', '.join(fields)})")
    for name, field in fields.items():
        if name not in found and field.default is field.default_factory is dataclasses.MISSING:
            raise ValueError(f"{path}: {name} is missing")
        if name in found and not _fits(name, found[name]):
            raise ValueError(f"{path}: {name} is {found[name]!r}, which is not of the right kind")
    schema = Schema(**found | ({"missing": tuple(found["missing"])} if "missing" in found else {}))
    try:
        _check(schema)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return schema


def _fits(name: str, value: Any) -> bool:
    texts = lambda table: isinstance(table, dict) and bool(table) and all(isinstance(v, str) for v in table.values())
    if name == "words":
        return isinstance(value, dict) and all(texts(table) for table in value.values())
    if name in ("sentences", "options"):
        return texts(value)
    if name == "missing":
        return isinstance(value, list) and all(isinstance(v, str) for v in value)
    return isinstance(value, bool) if name == "listed" else isinstance(value, str)


def _check(schema: Schema) -> None:
    around = {c for text in schema.frame for c in columns(text)}
    told = Counter(c for text in schema.sentences.values() for c in columns(text))
    if schema.target in around:
        raise ValueError(f"column {schema.target!r} is the target and stands in the text around the sentences")
    for attribute, text in schema.sentences.items():
        for column in columns(text):
            if told[column] > 1 or column in around:
                where = "another sentence" if told[column] > 1 else "the text around the sentences"
                raise ValueError(f"sentences.{attribute}: column {column!r} stands in {where} too")


def read(path: str | Path, schema_path: str | Path = "") -> list[Record]:
    """The rows of a table as records, in its order.

    Args:
      path: the CSV file (UTF-8, header, .gz too).
      schema_path: the schema; "" takes the table's name with .toml.

    Raises:
      ValueError: names the file and line, and the column where it is one's.
      OSError: a file cannot be opened.
    """
    schema = read_schema(schema_path or Path(path).with_suffix(".toml"))
    text = files.decode(files.load(path), path)
    seen: Counter[str] = Counter()

    def make(row: Mapping[str, str]) -> Record:
        id = row[schema.id] if schema.id else hashlib.sha256("\0".join(row.values()).encode()).hexdigest()[:12]
        seen[id] += 1
        if schema.id and (not id.strip() or seen[id] > 1):
            raise ValueError(f"column {schema.id}: the id {'occurs twice' if id.strip() else 'is empty'}")
        return _record(row, schema, id if seen[id] == 1 else f"{id}-{seen[id]}")

    return list(files.each(files.rows(text, path, schema.columns), path, make))


def _record(row: Mapping[str, str], schema: Schema, id: str) -> Record:
    cells = {c: schema.words.get(c, {}).get(row[c], row[c]) for c in row}

    def known(template: str) -> bool:
        return not any(row[c] in schema.missing for c in columns(template))

    for template in schema.frame:
        for column in columns(template):
            if row[column] in schema.missing:
                raise ValueError(f"column {column}: {row[column]!r} is missing, but every prompt shows it")
    for column in filter(None, (schema.target, schema.right)):
        if row[column] not in schema.options:
            raise ValueError(f"column {column}: none of the options {', '.join(schema.options)}")
    for column, words in schema.words.items():
        if row[column] not in words and row[column] not in schema.missing:
            raise ValueError(f"column {column}: a value without words (there are {', '.join(words)})")
    sentences = {name: text for name, text in schema.sentences.items() if known(text)}
    return Record(
        id=id,
        label=row[schema.label or schema.target],
        target=row[schema.target],
        preamble=schema.preamble.format(**cells),
        attributes=tuple(
            Attribute(name, text.format(**cells), ", ".join(row[c] for c in columns(text)))
            for name, text in sentences.items()
        ),
        question=schema.question.format(**cells),
        options=tuple(Option(code, meaning.format(**cells)) for code, meaning in schema.options.items()),
        listed=schema.listed,
        right=row[schema.right] if schema.right else "",
    )
