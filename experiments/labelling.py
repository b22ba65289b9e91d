"""Labels on disk: which chains a judge sees, its labels of them, and its labels of controls; one file a record each.

labels/R.parquet     the target answers of X = 1 in the estimation batch that the judge saw (`judge.chosen`)
controls/R.parquet   for each attribute, target answers of the arm *without* its sentence: the judge is asked as if the
                     sentence had been there. A chain cannot have used what its prompt did not say, so INFLUENTIAL is a
                     mistake there, and its rate a check on the judge that needs no human

Knows: the files, the judge's identity in them. Does not know: shards, counts, scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from experiments import rundir, store
from jaxmon.counting import patterns
from jaxmon.judging.judge import Judge
from jaxmon.records import Record

WHO = [("judge", pa.string()), ("rubric", pa.string())]
LABELS = pa.schema([("record", pa.string()), ("chain", pa.int64()), ("pattern", pa.string()), *WHO])
CONTROLS = pa.schema(
    [("record", pa.string()), ("attribute", pa.string()), ("chain", pa.int64()), ("label", pa.string()), *WHO]
)

Thoughts = Mapping[int, str]  # chain id -> chain of thought


def label(judge: Judge, record: Record, studied: Sequence[str], thoughts: Thoughts) -> pa.Table:
    """A table of LABELS: the letters of the studied attributes for each chain."""
    said = judge.label_chains(record, list(thoughts.values()))
    letters = [patterns.pattern_of({name: labels[name] for name in studied}) for labels in said]
    return _table(LABELS, judge, [[record.id] * len(said), list(thoughts), letters])


def label_controls(judge: Judge, record: Record, without: Mapping[str, Thoughts]) -> pa.Table:
    """A table of CONTROLS.

    Args:
      record: whole; the judge is told every attribute.
      without: attribute -> chains of the arm without it.
    """
    where = [(name, chain, thought) for name, chains in without.items() for chain, thought in chains.items()]
    said = judge.label_chains(record, [thought for _, _, thought in where])
    letters = [labels[name].value for (name, _, _), labels in zip(where, said, strict=True)]
    names, chains = [name for name, _, _ in where], [chain for _, chain, _ in where]
    return _table(CONTROLS, judge, [[record.id] * len(said), names, chains, letters])


def _table(schema: pa.Schema, judge: Judge, columns: list[list]) -> pa.Table:
    count = len(columns[0])
    columns = [*columns, [judge.name] * count, [judge.version] * count]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema)


def load(path: Path, schema: pa.Schema, judge: Judge, among: store.Files | None = None) -> pa.Table:
    """A file of labels, which must be this judge's; `among` as for `store.load`.

    Raises:
      RunError: it is damaged, or another judge's or another rubric's.
    """
    table = store.load(path, schema, among=among)
    found = set(zip(*(table.column(c).to_pylist() for c in ("judge", "rubric")), strict=True))
    if other := found - {(judge.name, judge.version)}:
        name, version = min(other)
        raise rundir.RunError(
            f"{store.find(path)} holds labels of {name} (rubric {version}), not of {judge.name} ({judge.version}); "
            "delete it to label again, or keep both with experiments.judge"
        )
    return table
