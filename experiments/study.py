"""The stages of a monitorability run over a run directory: sample, judge, count. Each reads what is there and adds.

Knows: arms, stages, files, progress. Does not know: how a chain is drawn (draws.py), what a score is (score.py).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import pyarrow as pa
from tqdm import tqdm

from experiments import draws, rundir
from jaxmon import adaptive, counts, counts_schema, patterns
from jaxmon.arms import X1, arms, shards, x0
from jaxmon.records import Record
from jaxmon.sampler import Sampling
from jaxmon.tally import Drawn, tally
from jaxmon.tasks import registry
from models.loading import load

LABELS = pa.schema([("record", pa.string()), ("chain", pa.int64()), ("pattern", pa.string())])


@dataclasses.dataclass(frozen=True)
class Study:
    """A run that has been opened: its config, its directory, its model and its records."""

    config: Mapping[str, Any]
    root: Path
    drawer: draws.Drawer
    task: registry.Task
    studied: Mapping[str, list[str]]  # record id -> attributes

    @property
    def batch(self) -> int:
        return self.config["n"]

    def answers(self, record: Record) -> Path:
        return self.root / "answers" / f"{rundir.name(record.id)}.parquet"

    def labels(self, record: Record) -> Path:
        return self.root / "labels" / f"{rundir.name(record.id)}.parquet"


def prepare(config: Mapping[str, Any], root: Path) -> Study:
    """Loads records and model and logs the environment.

    Raises:
      ValueError: one line on what is wrong with config, records, model or directory.
    """
    c = config
    jax.config.update("jax_default_matmul_precision", None if c["precision"] == "default" else c["precision"])
    task = registry.load(c["task"], c["source"], c["labels"], c["per_label"], c["data_seed"])
    studied = registry.studied(task, c["attributes"])
    model = load(c["model"], c["dtype"])
    rundir.log_environment(root, rundir.environment(model.fingerprint, c["precision"]))
    chosen = {k: model.sampling[k] if c[k] is None else c[k] for k in ("temperature", "top_k", "top_p", "min_p")}
    drawer = draws.Drawer(
        model, c["task"], Sampling(**chosen), c["seed"], c["slots"], c["shard"], c["length"], c["bucket"]
    )
    return Study(config, root, drawer, task, studied)


def sample(study: Study) -> None:
    """T = 0 answers of every arm; then X = 1 in full, X = 0 to stage 1, and to the end where the rule keeps it."""
    n, stage1 = study.batch, study.config["stage1"]
    total = sum(2 * n * (1 + len(study.studied[r.id])) for r in study.task.records)
    with tqdm(total=total, unit="chain", desc="sampling", smoothing=0.05) as bar:
        for record in study.task.records:
            shown = arms(record, study.studied[record.id])
            opened: dict[str, draws.Arm] = {}

            def arm(name: str, shown: dict[str, Record] = shown, opened: dict[str, draws.Arm] = opened) -> draws.Arm:
                if name not in opened:
                    opened[name] = draws.open_arm(study.drawer, shown[name], name)
                return opened[name]

            if not study.answers(record).exists():
                rows = [draws.no_cot(study.drawer, arm(name)) for name in shown]
                table = pa.table({f.name: pa.array([r[f.name] for r in rows], f.type) for f in draws.ANSWERS})
                draws.save(study.answers(record), table.cast(draws.ANSWERS))
            one = _chains(study, record, X1, arm, 0, 2 * n, bar)
            for name in study.studied[record.id]:
                zero = _chains(study, record, x0(name), arm, 0, stage1, bar)
                if _kept(study, record, one, zero):
                    _chains(study, record, x0(name), arm, stage1, 2 * n, bar)
                else:
                    bar.total -= 2 * n - stage1
                    bar.refresh()


def _kept(study: Study, record: Record, one: list[Drawn], zero: list[Drawn]) -> bool:
    """The adaptive rule (App. E.1) on selection chains alone; the estimation batch has no say."""
    select = [c for c in one if c.chain < study.batch]
    k1, k0 = (sum(c.code == record.target for c in chains) for chains in (select, zero))
    return bool(adaptive.keep(k1, len(select), k0, len(zero), study.config["stage1_threshold"]))


def _chains(
    study: Study, record: Record, name: str, arm: Callable[[str], draws.Arm], first: int, stop: int, bar: tqdm | None
) -> list[Drawn]:
    """The chains first … stop - 1 of an arm, drawing the shards that are not on disk."""
    found: list[Drawn] = []
    for a, b in shards(first, stop, study.config["shard"], study.config["stage1"], study.batch):
        path = rundir.shard(study.root, record.id, name, a, b)
        if path.exists():
            table = draws.load(path, draws.CHAINS, b - a)
        else:
            table = draws.draw(study.drawer, arm(name), a, b)
            draws.save(path, table)
        found += draws.drawn(table)
        if bar is not None:
            bar.update(b - a)
    return found


def _shards(study: Study, record: Record, name: str, first: int, stop: int) -> list[Path]:
    """The shards of a range that are on disk."""
    cut = shards(first, stop, study.config["shard"], study.config["stage1"], study.batch)
    paths = [rundir.shard(study.root, record.id, name, a, b) for a, b in cut]
    return [path for path in paths if path.exists()]


def judge(study: Study) -> None:
    """Labels the target answers of X = 1 in the estimation batch, all attributes of a chain in one call."""
    for record in tqdm(study.task.records, unit="record", desc="judging"):
        if study.labels(record).exists():
            continue
        rows = []
        for path in _shards(study, record, X1, study.batch, 2 * study.batch):
            table = draws.load(path, draws.CHAINS)
            for chain, code, thought in zip(
                *(table.column(k).to_pylist() for k in ("chain", "code", "thought")), strict=True
            ):
                if code == record.target:
                    said = study.task.judge.label_chain(record, thought)
                    letters = patterns.pattern_of({k: said[k] for k in study.studied[record.id]})
                    rows.append((record.id, chain, letters))
        columns = list(zip(*rows, strict=True)) or [(), (), ()]
        table = pa.table([pa.array(v, f.type) for v, f in zip(columns, LABELS, strict=True)], LABELS)
        draws.save(study.labels(record), table)


def count(study: Study) -> None:
    """counts.parquet and patterns.parquet, from the shards alone."""
    rows, found = [], []
    for record in study.task.records:
        drawn = {
            name: [
                c
                for path in _shards(study, record, name, 0, 2 * study.batch)
                for c in draws.drawn(draws.load(path, draws.CHAINS))
            ]
            for name in arms(record, study.studied[record.id])
        }
        labels = draws.load(study.labels(record), LABELS)
        answers = draws.load(study.answers(record), draws.ANSWERS)
        letters = dict(zip(labels.column("chain").to_pylist(), labels.column("pattern").to_pylist(), strict=True))
        target = dict(zip(answers.column("arm").to_pylist(), answers.column("target").to_pylist(), strict=True))
        more, others = tally(record, drawn, letters, target, study.batch)
        rows += more
        found += others
    counts.write_counts(study.root / "counts.parquet", counts_schema.from_rows(rows))
    patterns.write_patterns(study.root / "patterns.parquet", patterns.from_rows(found))
