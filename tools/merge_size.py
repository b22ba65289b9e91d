"""How many chains a second are counted, and in how much memory: the count of a study over synthetic shards.

    python -m tools.merge_size --workdir=runs/merge --chains=1000000,10000000

Makes a run of about that many chains on the disk (records of the ledger task, codes and outcomes by a fixed rule, texts
of a stated length), counts it by `study.count` in a process of its own, checks the counts against the rule, and prints
chains/s, bytes read and the most memory that this process held. Shards that are there are used again.
"""

from __future__ import annotations

import functools
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from absl import flags

from experiments import cli

N = 1000  # chains per arm and batch
OUTCOMES = np.array(["answered", "truncated", "unclosed", "malformed"])


@functools.cache
def shard(codes: tuple[str, ...], first: int, stop: int, text: int) -> pa.Table:
    """A shard by rule: of ten chains seven answer, with the codes in turn."""
    from experiments.draws import CHAINS

    ids = np.arange(first, stop)
    noise = np.random.default_rng(first)
    texts = [noise.bytes(text // 2).hex() for _ in ids]  # does not compress
    kind = np.maximum(ids % 10 - 6, 0)
    columns: dict[str, Any] = {
        "record": [""] * len(ids),
        "arm": [""] * len(ids),
        "chain": ids,
        "tokens": [[int(i) % 1000] * 20 for i in ids],
        "text": texts,
        "stopped": kind != 1,
        "outcome": OUTCOMES[kind],
        "code": [None if k else codes[i % len(codes)] for i, k in zip(ids, kind, strict=True)],
        "thought": texts[::-1],
    }
    return pa.table([pa.array(columns[f.name], f.type) for f in CHAINS], CHAINS)


def named(table: pa.Table, **names: str) -> pa.Table:
    """The shard of a record's arm."""
    for column, name in names.items():
        said = pa.array([name] * table.num_rows)
        table = table.set_column(table.schema.get_field_index(column), column, said)
    return table


def config(chains: int) -> dict[str, Any]:
    """A study of about that many chains: 2 N in each of a record's arms."""
    from experiments.configs import base

    c = base.base()
    c.n, c.stage1, c.per_label = N, 0, max(1, round(chains / (3 * 7 * 2 * N)))
    return base.check(c)


def make(root: Path, chains: int, length: int) -> None:
    """Writes shards, answers and labels of a run."""
    from experiments import draws, opening, rundir, store
    from experiments.labelling import LABELS
    from jaxmon.arms import arms

    made = config(chains)
    with rundir.open_run(root, made), opening.reopened(made, root) as opened:
        if not (root / "environment.json").exists():
            rundir.log_environment(root, rundir.environment("f" * 64, "synthetic"))
        stamp, judge = {"model": "f" * 64}, (opened.judge.name, opened.judge.version)
        for record in opened.task.records:
            codes = (record.target, *(o.code for o in record.options if o.code != record.target))
            names = list(arms(record, opened.studied[record.id]))
            for name in names:
                for a, b in ((0, N), (N, 2 * N)):
                    path = rundir.shard(root, record.id, name, a, b)
                    if not store.has(path):
                        store.save(path, named(shard(codes, a, b, length), record=record.id, arm=name), stamp)
            rows = [{"record": record.id, "arm": n, "target": 0.0, "mass": 1.0, "probabilities": [1.0]} for n in names]
            hits = [i for i in range(N, 2 * N) if i % 10 < 7 and i % len(codes) == 0]
            letters = ["I" * len(opened.studied[record.id])] * len(hits)
            columns = [[record.id] * len(hits), hits, letters, *([w] * len(hits) for w in judge)]
            labels = pa.table([pa.array(c, f.type) for c, f in zip(columns, LABELS, strict=True)], LABELS)
            store.save(opened.answers(record), draws.answers(rows), stamp)
            store.save(opened.labels(record), labels)


def count(root: Path, chains: int) -> None:
    """Counts, checks, and prints one line."""
    from experiments import opening, study
    from jaxmon.counting.counts import read_counts

    made = config(chains)
    with opening.reopened(made, root) as opened:
        start = time.perf_counter(), time.process_time()
        ended = study.count(opened)
        seconds, busy = time.perf_counter() - start[0], time.process_time() - start[1]
        options = {r.id: len(r.options) for r in opened.task.records}
    table = read_counts(root / "counts.parquet")
    want = np.array([[_hits(options[r], b) for b in (0, 1)] for r in table.records])
    right = [
        np.array_equal(np.broadcast_to(want[:, None], cells.shape)[table.present], cells[table.present])
        for cells in (table.k1, table.k0)
    ]
    if not all(right) or ended["truncated"] * 10 != ended.total():
        raise ValueError(f"{root}: the counts are not those of the rule")
    peak = memory_peak()
    size = sum(p.stat().st_size for p in (root / "chains").rglob("*.parquet"))
    print(
        f"{ended.total():,} chains, {size / 2**30:.2f} GiB: {seconds:.1f} s ({busy:.1f} s of processor), "
        f"{ended.total() / seconds:,.0f} chains/s, peak memory {peak} MiB"
    )


def memory_peak() -> int:
    """MiB of memory that this process has held at most; unlike ru_maxrss, without what it was forked from."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) >> 10 if found else 0


def _hits(options: int, batch: int) -> int:
    return sum(i % 10 < 7 and i % options == 0 for i in range(batch * N, (batch + 1) * N))


def main(argv: list[str]) -> None:
    if argv[1:]:
        raise ValueError(f"unexpected argument {argv[1]!r}")
    f = flags.FLAGS
    for chains in map(int, f.chains):
        root = Path(f.workdir) / str(chains)
        if f.only_count:
            count(root, chains)
            continue
        make(root, chains, f.text)
        again = [
            sys.executable,
            "-m",
            "tools.merge_size",
            f"--workdir={f.workdir}",
            f"--chains={chains}",
            "--only_count",
        ]
        subprocess.run(again, check=True)


if __name__ == "__main__":
    flags.DEFINE_string("workdir", "runs/merge", "A run directory per number of chains goes below it.")
    flags.DEFINE_list("chains", ["1000000"], "Numbers of chains.")
    flags.DEFINE_integer("text", 100, "Characters of each chain's text and thought.", 2)
    flags.DEFINE_bool("only_count", False, "Count a run that has been made, in this process.")
    cli.start(main)
