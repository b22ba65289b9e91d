"""Raw files of the tasks: where they lie, whether they are the ones expected, and their rows with line numbers.

Knows: places, checksums, encodings, CSV. Does not know: any one task, what a row means. Every message names the file,
and the line where there is one; no file ever steps in for another.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

Row = TypeVar("Row")
Made = TypeVar("Made")

csv.field_size_limit(2**24)


def locate(named: str | Path | None, variable: str, inside: Sequence[str], hint: str) -> Path | None:
    """The local raw file: `named`, else $`variable`, else the first of `inside` that $JAXMON_DATA holds, else None.

    Args:
      named: a path, "" or None for none.
      variable: the task's environment variable.
      inside: paths below $JAXMON_DATA, in the order of preference.
      hint: what is expected there, for the message.

    Raises:
      FileNotFoundError: a place is named but holds no such file; nothing else steps in.
    """
    root = os.environ.get("JAXMON_DATA")
    place = named or os.environ.get(variable)
    places = [Path(place)] if place else [Path(root) / name for name in inside] if root else []
    if not places:
        return None
    there = [p for p in places if p.exists()]
    if not there:
        raise FileNotFoundError(f"{places[0]}: no such file (expected {hint})")
    return there[0]


def load(path: str | Path) -> bytes:
    """A file's bytes, unpacked where its name ends in .gz.

    Raises:
      ValueError: a damaged .gz file.
      OSError: it cannot be opened.
    """
    if Path(path).suffix != ".gz":
        return Path(path).read_bytes()
    try:
        return gzip.decompress(Path(path).read_bytes())
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: damaged: {error}") from None


def check(data: bytes, sha256: str | None, source: str | Path) -> None:
    """Refuses other bytes than the ones expected; None accepts any.

    Raises:
      ValueError: the checksum differs.
    """
    if sha256 is not None and (found := hashlib.sha256(data).hexdigest()) != sha256:
        raise ValueError(f"{source}: not the file expected: sha256 {found}, expected {sha256} ({len(data):,} bytes)")


def decode(data: bytes, source: str | Path, encoding: str = "utf-8") -> str:
    """The text of a file.

    Raises:
      ValueError: names the line of the first byte that is not in the encoding.
    """
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ValueError(f"{source}, line {line}: byte {data[error.start]:#04x} is not {encoding.upper()}") from None


def rows(
    text: str, source: str | Path, columns: Sequence[str], header: bool = True
) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a CSV text, each with the line it starts at.

    Args:
      text: the file's text; a byte order mark is ignored.
      source: its name, for messages.
      columns: the columns to read. With a header these must be among its names; without one they are all there are.
      header: the first row holds names.

    Raises:
      ValueError: no rows; a missing or doubled column; a row with another number of fields; broken quotes.
    """
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    names, line, found = None if header else list(columns), 1, False
    picked = list(range(len(columns)))
    while True:
        try:
            fields = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            raise ValueError(f"{source}, line {line}: {error}") from None
        if names is None:
            names = _names(fields, f"{source}, line {line}", columns)
            picked = [names.index(n) for n in columns]
        elif len(fields) != len(names):
            raise ValueError(f"{source}, line {line}: {len(fields)} fields, expected {len(names)}")
        else:
            found = True
            yield line, dict(zip(columns, [fields[i] for i in picked], strict=True))
        line = reader.line_num + 1
    if not found:
        raise ValueError(f"{source}: no records in it")


def _names(fields: list[str], where: str, columns: Sequence[str]) -> list[str]:
    if doubled := sorted({n for n in fields if fields.count(n) > 1}):
        raise ValueError(f"{where}: two columns {doubled[0]!r}")
    if missing := [n for n in columns if n not in fields]:
        raise ValueError(f"{where}: missing column {missing[0]!r} (there are {', '.join(fields)})")
    return fields


def each(numbered: Iterator[tuple[int, Row]], source: str | Path, make: Callable[[Row], Made]) -> Iterator[Made]:
    """`make` of every row; a ValueError it raises gains the file and the line."""
    for line, row in numbered:
        try:
            made = make(row)
        except ValueError as error:
            raise ValueError(f"{source}, line {line}: {error}") from None
        yield made


def number(text: str, name: str, least: float, most: float) -> str:
    """A decimal number within bounds, in its shortest form ("65.50" -> "65.5").

    Raises:
      ValueError: it is not one.
    """
    whole, point, rest = text.partition(".")
    if not (whole.isdecimal() and whole.isascii()) or (point and not (rest.isdecimal() and rest.isascii())):
        raise ValueError(f"{name} is {text!r}, expected a number")
    if not least <= float(text) <= most:
        raise ValueError(f"{name} is {text}, expected {least:g} to {most:g}")
    return f"{float(text):.10g}"


def among(text: str, name: str, allowed: Sequence[str]) -> str:
    """`text`, one of `allowed`.

    Raises:
      ValueError: it is none of them.
    """
    if text not in allowed:
        raise ValueError(f"{name} is {text!r}, expected {', '.join(allowed)}")
    return text
