"""What may be passed on of a run: counts and scores, without a text, a path, a host or a record's name.

    python -m tools.export RUN OUT --title="Qwen3-8B, thyroid"

Everything in OUT is made from numbers, not copied: the counts and patterns, with records numbered in their order;
scores, bounds, figure and report computed again from these; of config and environment the fields named below; of
further tables the columns that hold numbers and names of attributes and classes alone; licence and citation of the
data by the task's name. What is not on these lists is not exported, whatever it is. Names of attributes and classes
are: they are what the scores speak of. Small counts can tell of single persons; whether they may be passed on is yours
to decide.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from absl import flags
from ml_collections import config_dict

from experiments import cli

CONFIG = (
    "task", "per_label", "data_seed", "dtype", "int8", "precision", "temperature", "top_k", "top_p", "min_p", "n",
    "rule", "m1_only", "stage1", "drop_below", "length", "seed", "direct_chains", "probes", "window_starts",
    "window_chains", "judge", "judge_most", "judge_controls", "tau", "p10_max", "min_records", "replicates",
    "records_only", "interval",
)  # fmt: skip
ENVIRONMENT = (
    "python", "versions", "devices", "processes", "matmul precision", "attention", "commit", "model fingerprint",
    "code fingerprint", "store version", "sampling",
)  # fmt: skip
TABLES = ("direct_effect.csv", "curves.csv", "windows.csv", "rates.csv", "truth.csv")


def export(root: Path, out: Path, title: str) -> list[str]:
    """Writes the export of a finished run; returns the names of its files.

    Raises:
      ValueError: `root` is no finished run, or `out` is not empty.
    """
    from experiments import places, rundir, scoring, study
    from experiments.configs import base
    from jaxmon.counting import counts, counts_schema, patterns
    from jaxmon.tasks import sources

    there = places.names(root)
    if lacking := [name for name in ("config.json", "environment.json", "counts.parquet") if name not in there]:
        raise ValueError(f"{root} is no finished run: it lacks {', '.join(lacking)}")
    if places.names(out):
        raise ValueError(f"{out} is not empty")
    stored = json.loads((root / "config.json").read_text())
    config = base.check(
        config_dict.ConfigDict(base.base().to_dict() | stored)
    )  # a word among the fields is a known one
    note = sources.note(config["task"])
    start = json.loads((root / "environment.json").read_text())[0]
    table = counts_schema.read_table(root / "counts.parquet", counts_schema.SCHEMA)
    number = {name: f"record-{i:05}" for i, name in enumerate(dict.fromkeys(table.column("record").to_pylist()), 1)}
    table = _numbered(table, number)
    pattern = _numbered(counts_schema.read_table(root / "patterns.parquet", patterns.SCHEMA), number)
    for name, made in (("counts", table), ("patterns", pattern)):
        places.write(out / f"{name}.parquet", counts_schema.encode(made))
    fields = {name: config[name] for name in CONFIG if name in config}
    known = {name: start[name] for name in ENVIRONMENT if name in start}
    own = counts.from_table(table)
    words = {*own.attributes, *own.labels}
    placebos = set(_column(there.get("placebo.csv"), "attribute")) & set(own.attributes)
    scoring.score(
        own, patterns.from_table(pattern, own), out, study.settings_of(config), title=title, config=fields,
        environment=known, placebos=sorted(placebos),
    )  # fmt: skip
    for name in TABLES:
        if name in there and (rows := _plain((root / name).read_text(), words)):
            rundir.write_csv(out / name, list(rows[0]), rows)
    for name, said in (("config", fields), ("environment", known), ("data", note)):
        rundir.write_text(out / f"{name}.json", json.dumps(said, indent=1) + "\n")
    return sorted(places.names(out))


def _numbered(table: pa.Table, number: Mapping[str, str]) -> pa.Table:
    """The table with its records' numbers in place of their names, and with its own columns alone."""
    names = [number[name] for name in table.column("record").to_pylist()]
    at = table.schema.get_field_index("record")
    return table.set_column(at, "record", pa.array(names)).replace_schema_metadata(None)


def _column(file: Path | None, name: str) -> list[str]:
    return [] if file is None else [row[name] for row in csv.DictReader(io.StringIO(file.read_text()))]


def _plain(text: str, words: set[str]) -> list[dict[str, Any]]:
    """The rows of a CSV file with those columns whose every cell is a number, empty, or one of `words`."""
    rows = list(csv.DictReader(io.StringIO(text)))
    kept = [c for c in (rows[0] if rows else ()) if all(_allowed(row[c], words) for row in rows)]
    return [{c: row[c] for c in kept} for row in rows]


def _allowed(cell: str, words: set[str]) -> bool:
    from jaxmon.counting.counts_schema import ALL
    from jaxmon.estimation.scores import SCORES

    try:
        return cell in words or cell in ("", ALL, *SCORES) or float(cell) is not None
    except ValueError:
        return False


def main(argv: Sequence[str]) -> None:
    if len(argv) != 3:
        raise ValueError("a run and an empty directory are needed: python -m tools.export RUN OUT")
    from experiments import places

    out = places.place(argv[2])
    print(f"wrote {', '.join(export(places.place(argv[1]), out, flags.FLAGS.title))} to {out}")


if __name__ == "__main__":
    flags.DEFINE_string("title", "Chain-of-thought monitorability", "Title of figure and report.")
    cli.start(main)
