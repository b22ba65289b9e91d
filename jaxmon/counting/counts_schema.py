"""Schema and files of the counts table: columns and types, Parquet or CSV, written whole or not at all.

Knows: names, types, files. Does not know: what makes the numbers consistent (counts_check.py) or what they mean.
"""

from __future__ import annotations

import io
import os
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

BATCHES = ("select", "estimate")
ALL = "all"  # the name of a pooled row; no attribute or class may bear it
TEXTS = ("record", "attribute", "label", "batch")
TALLIES = ("n1", "k1", "n0", "k0", "judged", "l")
RATES = ("p10", "p00")
LOST = ("truncated1", "truncated0", "unparsed")
COLUMNS = TEXTS + TALLIES + RATES + LOST
SCHEMA = pa.schema(
    [(c, pa.string()) for c in TEXTS]
    + [(c, pa.int64()) for c in TALLIES]
    + [(c, pa.float64()) for c in RATES]
    + [(c, pa.int64()) for c in LOST]
)


class CountsError(ValueError):
    """A counts or patterns table is not usable; the message is one line that says what and where."""


def from_rows(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """A table in SCHEMA from one mapping per row; every column must be given (None for a rate not measured)."""
    rows = list(rows)
    for i, row in enumerate(rows, 1):
        if missing := [c for c in COLUMNS if c not in row]:
            raise CountsError(f"row {i}: column {missing[0]!r} is missing")
    try:
        return pa.table({f.name: pa.array([r[f.name] for r in rows], f.type) for f in SCHEMA}, SCHEMA)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise CountsError(f"counts: {str(error).splitlines()[0]}") from None


def read_table(path: str | pathlib.Path, schema: pa.Schema) -> pa.Table:
    """A Parquet file, or CSV where the name ends in .csv, with the schema's columns cast to its types.

    Raises: CountsError (missing column, value of another type, unreadable file), FileNotFoundError.
    """
    path = pathlib.Path(path) if isinstance(path, str) else path  # or a path's like, in an object store
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    try:
        with path.open("rb") as file:
            if path.suffix.lower() == ".csv":
                options = pa.csv.ConvertOptions(column_types=schema, strings_can_be_null=False)
                table = pa.csv.read_csv(file, convert_options=options)
            else:
                table = pa.parquet.read_table(file)
    except (pa.ArrowInvalid, OSError) as error:
        raise CountsError(f"{path}: {str(error).splitlines()[0]}") from None
    if missing := [n for n in schema.names if n not in table.column_names]:
        raise CountsError(f"{path}: missing column {', '.join(missing)}")
    columns = {}
    for field in schema:
        try:
            columns[field.name] = table.column(field.name).cast(field.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise CountsError(
                f"{path}: column {field.name} holds {table.schema.field(field.name).type}, not {field.type}"
            ) from None
    return pa.table(columns, schema)


def encode(table: pa.Table, csv: bool = False) -> bytes:
    """A table as the bytes of a file, Parquet or CSV."""
    buffer = io.BytesIO()
    (pa.csv.write_csv if csv else pa.parquet.write_table)(table, buffer)
    return buffer.getvalue()


def write_table(path: str | os.PathLike[str], table: pa.Table) -> None:
    """Writes Parquet (CSV where the name ends in .csv) under a temporary name, then renames: whole or not at all."""
    path = pathlib.Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(encode(table, path.suffix.lower() == ".csv"))
        os.replace(temporary, path)
    except OSError as error:  # a full disk names no file
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        temporary.unlink(missing_ok=True)
