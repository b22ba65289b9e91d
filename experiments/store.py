"""The tables of a run: written once, checked on every read, on a disk or in an object store.

A table's file carries the first 16 hex digits of its own SHA-256 in its name, so data and checksum appear in one step:

    chains/R/x1.0-1000.parquet                     the name that programs use
    chains/R/x1.0-1000.9f86d081884c7d65.parquet    its file

The first writer wins: who writes the same bytes again changes nothing, and other bytes under one name are refused in a
line that names both files. Each file says what made it (its stamp: store version, code, model), in the key-value
metadata of Parquet; pandas, polars and duckdb read the files as they are.

Knows: names, checksums, stamps. Does not know: what a table means, which run it belongs to; how a file is written
whole (places.py).
"""

from __future__ import annotations

import functools
import hashlib
import io
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from experiments import code
from experiments.places import RunError, names, write

VERSION = "1"  # of names, columns and stamps
DIGITS = 16
NAMED = re.compile(rf"(?P<stem>.+)\.(?P<digest>[0-9a-f]{{{DIGITS}}})\.parquet")
KEY = "jaxmon."  # before each key of a stamp
AGAIN = "delete it to make it again"

Makers = Mapping[str, Collection[str]]  # key of a stamp -> the values that a run accepts
Files = Mapping[str, Path]  # name without checksum -> file


def listing(folder: Path) -> dict[str, Path]:
    """The tables of a directory: name without checksum -> file.

    Raises:
      RunError: two files of different bytes for one name.
    """
    found: dict[str, Path] = {}
    for name, path in sorted(names(folder).items()):
        if match := NAMED.fullmatch(name):
            table = f"{match['stem']}.parquet"
            if table in found:
                raise _two(found[table], path)
            found[table] = path
    return found


def _two(first: Path, second: Path) -> RunError:
    said = "hold different bytes for one table; delete the one not to be trusted, or both to make it again"
    return RunError(f"{first} and {second.name} {said}")


def has(path: Path) -> bool:
    """Whether a table is there."""
    return path.name in listing(path.parent)


def missing(paths: Iterable[Path]) -> list[int]:
    """Which of the tables are not there, by their places in `paths`; each directory is listed once."""
    there = functools.cache(listing)
    return [i for i, path in enumerate(paths) if path.name not in there(path.parent)]


def find(path: Path, among: Files | None = None) -> Path:
    """A table's file, by its name without checksum or by its own; `among`: see `load`.

    Raises:
      RunError: it is not there.
    """
    if NAMED.fullmatch(path.name):
        return path
    file = (listing(path.parent) if among is None else among).get(path.name)
    if file is None:
        raise RunError(f"{path} is not there")
    return file


def save(path: Path, table: pa.Table, made_by: Mapping[str, str] | None = None) -> Path:
    """Writes a table; returns its file.

    Args:
      path: its name without checksum.
      made_by: the stamp beside store version and code, e.g. the model's fingerprint.

    Raises:
      RunError: the table is there, of other bytes.
      OSError: it cannot be written.
    """
    about = {"store": VERSION, "code": code.fingerprint(), **(made_by or {})}
    buffer = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({KEY + k: about[k] for k in sorted(about)}), buffer)
    data = buffer.getvalue()
    file = path.with_name(f"{path.name.removesuffix('.parquet')}.{digest(data)}.parquet")
    there = listing(path.parent).get(path.name)
    if there is None:
        write(file, data)
    elif there.name != file.name:
        raise _two(there, file)
    return file


def load(
    path: Path,
    schema: pa.Schema,
    rows: int | None = None,
    columns: Sequence[str] | None = None,
    makers: Makers | None = None,
    among: Files | None = None,
) -> pa.Table:
    """Reads a table back, after its whole file has been checked.

    Args:
      path: its name without checksum, or its file.
      schema: the columns that it has to have.
      rows: how many it has to have.
      columns: those to return; None for all.
      makers: what may have made it; None does not ask. The store's version is always asked for.
      among: the listing of its directory, where one has been made.

    Raises:
      RunError: it is not there, is damaged, is another version's or another maker's, or holds something else.
    """
    file = find(path, among)
    parquet = checked(file, makers)
    if parquet.schema_arrow != schema or rows not in (None, parquet.metadata.num_rows):
        raise RunError(f"{file} does not hold what its name says; {AGAIN}")
    return parquet.read(columns=None if columns is None else list(columns)).replace_schema_metadata(None)


def checked(file: Path, makers: Makers | None = None) -> pq.ParquetFile:
    """A table's file, read whole: its bytes are those of its name, its stamp one that is accepted.

    Raises:
      RunError: otherwise.
    """
    data, named = file.read_bytes(), NAMED.fullmatch(file.name)
    if named is None:
        raise RunError(f"{file} has no checksum in its name: not a table of this store's version {VERSION}")
    if digest(data) != named["digest"]:
        raise RunError(f"{file} is damaged (its {len(data)} bytes have the checksum {digest(data)}); {AGAIN}")
    try:
        parquet = pq.ParquetFile(pa.BufferReader(data))
    except (pa.ArrowInvalid, OSError) as error:
        raise RunError(f"{file} is damaged ({str(error).splitlines()[0]}); {AGAIN}") from None
    said = {"store": "none", **stamp(parquet)}
    for key, accepted in {"store": (VERSION,), **(makers or {})}.items():
        if key in said and said[key] not in accepted:
            kept = " or ".join(sorted(value[:12] for value in accepted))
            raise RunError(f"{file} was made by {key} {said[key][:12]}, this run's is {kept}; {AGAIN}")
    return parquet


def stamp(parquet: pq.ParquetFile) -> dict[str, str]:
    """What made a table."""
    about = parquet.metadata.metadata or {}
    return {k.decode().removeprefix(KEY): v.decode() for k, v in about.items() if k.decode().startswith(KEY)}


def digest(data: bytes) -> str:
    """The part of the SHA-256 that a file's name carries."""
    return hashlib.sha256(data).hexdigest()[:DIGITS]
