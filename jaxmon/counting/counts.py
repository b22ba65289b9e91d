"""The counts table: one row per (record, attribute, batch); everything after the sampler is a function of it.

Columns (whole numbers are int64, others may be present and are ignored):
    record, attribute, label   the record's id, the attribute's name, the record's ground-truth class
    batch                      `select` or `estimate`: two independent batches of chains (App. D)
    n1, k1, n0, k0             chains and target answers with the attribute (1) and without it (0)
    judged, l                  target answers of X=1 with a judge's label for this attribute; those labelled INFLUENTIAL
    p10, p00                   no-CoT probability of the target with / without the attribute; empty or NaN: not measured
    truncated1, truncated0     chains cut by the length limit, per arm: part of n1, n0, never target answers
    unparsed                   chains of both arms that ended without a readable answer (unclosed or malformed)

The X=1 arm is drawn once per record, so n1, k1 and truncated1 agree over the attributes of a record and batch.
`n0 = k0 = 0` in the estimation batch says: dropped by the adaptive sampling (App. E.1). Such a pair may have no X=0
chains at all, and where no pair of a record was kept, n1 may be 0 in the estimation batch, too.

Knows: the layout as arrays. Does not know: scores, filters, models. Schema and files: counts_schema.py; the rules of a
valid table: counts_check.py; label patterns: patterns.py.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import numpy as np
import pyarrow as pa

from jaxmon.counting.counts_check import check_groups, check_rows
from jaxmon.counting.counts_schema import (
    BATCHES,
    COLUMNS,
    LOST,
    RATES,
    SCHEMA,
    TALLIES,
    TEXTS,
    CountsError,
    read_table,
    write_table,
)


@dataclasses.dataclass(frozen=True, eq=False)
class Counts:
    """A validated counts table as arrays; axes [records R, attributes A, batch 2], batch in the order of BATCHES.

    Attributes:
      records, attributes: names, in order of first appearance.   labels: class names, sorted.
      label_of: int64 [R], index into `labels`.
      present: bool [R, A]; a record need not have every attribute. Entries of absent pairs are 0 (NaN in p10, p00).
      n1, k1, n0, k0, judged, articulated (column l), truncated1, truncated0, unparsed: int64 [R, A, 2], chains.
      p10, p00: float64 [R, A], probabilities; NaN = not measured.
    """

    records: tuple[str, ...]
    attributes: tuple[str, ...]
    labels: tuple[str, ...]
    label_of: np.ndarray
    present: np.ndarray
    n1: np.ndarray
    k1: np.ndarray
    n0: np.ndarray
    k0: np.ndarray
    judged: np.ndarray
    articulated: np.ndarray
    truncated1: np.ndarray
    truncated0: np.ndarray
    unparsed: np.ndarray
    p10: np.ndarray
    p00: np.ndarray

    @property
    def dropped(self) -> np.ndarray:
        """bool [R, A]: pairs without an estimation batch (dropped at stage 1)."""
        return self.present & (self.n0[:, :, 1] == 0)


def read_counts(path: str | Path) -> Counts:
    """Reads and validates a counts file (Parquet or CSV); raises CountsError with one line."""
    return from_table(read_table(path, SCHEMA), str(path))


def write_counts(path: str | os.PathLike[str], table: pa.Table) -> None:
    """Validates, then writes atomically."""
    write_table(path, checked(table, str(path)))


def checked(table: pa.Table, source: str = "counts") -> pa.Table:
    """The table in SCHEMA; raises what `from_table` raises."""
    from_table(table, source)
    return table.select(COLUMNS).cast(SCHEMA)


def from_table(table: pa.Table, source: str = "counts") -> Counts:
    """Validates a table in SCHEMA and lays it out as arrays.

    Raises:
      CountsError: the first fault, as `SOURCE: row I (record R, attribute A, batch B), column C: what`; rows from 1.
    """
    if table.num_rows == 0:
        raise CountsError(f"{source}: no rows")
    if missing := [c for c in COLUMNS if c not in table.column_names]:
        raise CountsError(f"{source}: missing column {', '.join(missing)}")
    columns = {name: table.column(name) for name in COLUMNS}
    for name in TEXTS + TALLIES + LOST:
        if columns[name].null_count:
            row = columns[name].is_null().to_pylist().index(True) + 1
            raise CountsError(f"{source}: row {row}, column {name}: empty")
    text = {name: np.array(columns[name].to_pylist(), object) for name in TEXTS}
    number = {name: columns[name].to_numpy() for name in TALLIES + LOST}
    rate = {name: columns[name].cast(pa.float64()).to_numpy(zero_copy_only=False) for name in RATES}
    check_rows(text, number, rate, source)

    records, attributes = (tuple(dict.fromkeys(text[name])) for name in ("record", "attribute"))
    labels = tuple(sorted(set(text["label"])))
    where = [
        np.array([index[v] for v in text[name]])
        for name, index in (
            (name, {v: i for i, v in enumerate(order)})
            for name, order in (("record", records), ("attribute", attributes), ("batch", BATCHES))
        )
    ]
    r, a, b = where
    check_groups(r, a, b, text, number, rate, source)
    shape = (len(records), len(attributes))
    arrays: dict[str, np.ndarray] = {}
    for name, column in number.items():
        field = "articulated" if name == "l" else name
        arrays[field] = np.zeros((*shape, 2), np.int64)
        arrays[field][r, a, b] = column
    for name, column in rate.items():
        arrays[name] = np.full(shape, np.nan)
        arrays[name][r, a] = column
    present = np.zeros(shape, bool)
    present[r, a] = True
    label_of = np.zeros(shape[0], np.int64)
    label_of[r] = [labels.index(v) for v in text["label"]]
    return Counts(records, attributes, labels, label_of, present, **arrays)
