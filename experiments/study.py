"""The stages of a monitorability run over a run directory: sample, judge, count, score. Each reads what is there.

Knows: arms, stages, files, progress. Does not know: how a chain is drawn (draws.py), what a score is (jaxmon/table.py).
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import pyarrow as pa
from tqdm import tqdm

from experiments import draws, rundir
from experiments.scoring import score as write_scores
from experiments.scoring import summary
from jaxmon import adaptive, counts, counts_schema, patterns, staged
from jaxmon.arms import X1, arms, shards, x0
from jaxmon.cells import Settings
from jaxmon.records import Record
from jaxmon.sampler import Sampling
from jaxmon.tally import Drawn, tally
from jaxmon.tasks import registry
from models.loading import load

TRUTH = ("attribute", "label", "score", "value")
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
    def plan(self) -> adaptive.Plan:
        c = self.config
        return adaptive.Plan(c["n"], c["tau"], c["stage1"], c["drop_below"])

    @functools.cached_property
    def rule(self) -> staged.Rule:
        return staged.make(self.config["rule"], self.plan)

    def answers(self, record: Record) -> Path:
        return self.root / "answers" / f"{rundir.name(record.id)}.parquet"

    def labels(self, record: Record) -> Path:
        return self.root / "labels" / f"{rundir.name(record.id)}.parquet"


def run(config: Mapping[str, Any], root: Path) -> None:
    """The whole job, in order; each stage reads what the one before it has written."""
    with rundir.open_run(root, config):
        study = prepare(config, root)
        sample(study)
        judge(study)
        for line in score(study, count(study)):
            print(line)
    print(f"report: {root / 'report.html'}")


def prepare(config: Mapping[str, Any], root: Path) -> Study:
    """Opens the study and logs the environment; raises what open_study raises."""
    study = open_study(config, root)
    rundir.log_environment(root, rundir.environment(study.drawer.model.fingerprint, config["precision"]))
    return study


def open_study(config: Mapping[str, Any], root: Path) -> Study:
    """Loads records and model; writes nothing.

    Raises:
      ValueError: one line on what is wrong with config, records, model or directory.
    """
    c = config
    jax.config.update("jax_default_matmul_precision", None if c["precision"] == "default" else c["precision"])
    task = registry.load(c["task"], c["source"], c["labels"], c["per_label"], c["data_seed"])
    studied = registry.studied(task, c["attributes"])
    task = dataclasses.replace(task, records=tuple(r for r in task.records if studied[r.id]))  # no attribute, no arms
    model = load(c["model"], c["dtype"])
    chosen = {k: model.sampling[k] if c[k] is None else c[k] for k in ("temperature", "top_k", "top_p", "min_p")}
    sampling = Sampling(
        float(chosen["temperature"]), int(chosen["top_k"]), float(chosen["top_p"]), float(chosen["min_p"])
    )
    drawer = draws.Drawer(model, c["task"], sampling, c["seed"], c["slots"], c["shard"], c["length"], c["bucket"])
    return Study(config, root, drawer, task, studied)


def sample(study: Study) -> None:
    """T = 0 answers of every arm; then chains as far as the rule goes on, arm by arm."""
    n, rule = study.plan.n, study.rule
    total = sum(2 * n * (1 + len(study.studied[r.id])) for r in study.task.records)
    with tqdm(total=total, unit="chain", desc="sampling", smoothing=0.05, mininterval=0.5) as bar:
        for record in study.task.records:
            names = study.studied[record.id]
            shown = arms(record, names)
            arm = functools.cache(functools.partial(_open, study, shown))  # each prompt is read once, if at all
            if not study.answers(record).exists():
                rows = [draws.no_cot(study.drawer, arm(name)) for name in shown]
                table = pa.table({f.name: pa.array([r[f.name] for r in rows], f.type) for f in draws.ANSWERS})
                draws.save(study.answers(record), table.cast(draws.ANSWERS))

            def hits(name: str, first: int, stop: int, record: Record = record, arm: Any = arm) -> int:
                chains = _chains(study, record, name, arm, range(first, stop), bar)
                return sum(c.code == record.target for c in chains)

            k1 = hits(X1, 0, rule.first)
            if staged.stops(k1, rule) or _beyond_m1(study, record):
                bar.total -= 2 * n * (1 + len(names)) - rule.first
                continue
            k1 += hits(X1, rule.first, n)
            kept = 0
            for name in names:
                drawn, k0 = 0, 0
                for look, m in enumerate(rule.looks):
                    k0 += hits(x0(name), drawn, m)
                    drawn = m
                    if not staged.goes_on(k1, k0, look, rule):
                        bar.total -= 2 * n - drawn
                        break
                else:
                    hits(x0(name), drawn, 2 * n)
                    kept += 1
            if rule.always or kept:
                hits(X1, n, 2 * n)
            else:
                bar.total -= n


def _beyond_m1(study: Study, record: Record) -> bool:
    """Whether the study asks for M1 alone and the record's p10 rules it out."""
    if not study.config["m1_only"]:
        return False
    answers = draws.load(study.answers(record), draws.ANSWERS)
    p10 = dict(zip(answers.column("arm").to_pylist(), answers.column("target").to_pylist(), strict=True))[X1]
    return bool(p10 >= study.config["p10_max"])


def _open(study: Study, shown: Mapping[str, Record], name: str) -> draws.Arm:
    return draws.open_arm(study.drawer, shown[name], name)


def _chains(
    study: Study, record: Record, name: str, arm: Callable[[str], draws.Arm], ids: range, bar: tqdm
) -> list[Drawn]:
    """The chains of an arm with these ids, drawing the shards that are not on disk."""
    found: list[Drawn] = []
    for a, b in _cut(study, ids):
        path = rundir.shard(study.root, record.id, name, a, b)
        if path.exists():
            table = draws.load_shard(study.root, record.id, name, a, b)
        else:
            table = draws.draw(study.drawer, arm(name), a, b)
            draws.save(path, table)
        found += draws.drawn(table)
        bar.update(b - a)
    return found


def _cut(study: Study, ids: range) -> list[tuple[int, int]]:
    return shards(ids.start, ids.stop, study.config["shard"], *study.rule.borders())


def _stored(study: Study, record: Record, name: str, ids: range) -> list[pa.Table]:
    """The shards of these ids that are on disk."""
    there = [cut for cut in _cut(study, ids) if rundir.shard(study.root, record.id, name, *cut).exists()]
    return [draws.load_shard(study.root, record.id, name, *cut) for cut in there]


def judge(study: Study) -> None:
    """Labels the target answers of X = 1 in the estimation batch, all attributes of a chain in one call."""
    for record in tqdm(study.task.records, unit="record", desc="judging"):
        if study.labels(record).exists():
            continue
        rows = []
        for table in _stored(study, record, X1, range(study.plan.n, 2 * study.plan.n)):
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


def count(study: Study) -> Counter[str]:
    """counts.parquet and patterns.parquet, from the shards alone; returns how the chains ended, over all arms."""
    rows, found = [], []
    ended: Counter[str] = Counter()
    for record in study.task.records:
        every = range(2 * study.plan.n)
        drawn = {
            name: [chain for table in _stored(study, record, name, every) for chain in draws.drawn(table)]
            for name in arms(record, study.studied[record.id])
        }
        labels = draws.load(study.labels(record), LABELS)
        answers = draws.load(study.answers(record), draws.ANSWERS)
        letters = dict(zip(labels.column("chain").to_pylist(), labels.column("pattern").to_pylist(), strict=True))
        target = dict(zip(answers.column("arm").to_pylist(), answers.column("target").to_pylist(), strict=True))
        estimate = [c for c in drawn[X1] if adaptive.batch_of(c.chain, study.plan) == "estimate"]
        hits = {c.chain for c in estimate if c.code == record.target}
        _belong(study.labels(record), letters.keys() == hits)
        _belong(study.answers(record), target.keys() == drawn.keys())
        more, others = tally(record, drawn, letters, target, study.plan.n)
        rows += more
        found += others
        ended.update(str(c.outcome) for chains in drawn.values() for c in chains)
    counts.write_counts(study.root / "counts.parquet", counts_schema.from_rows(rows))
    patterns.write_patterns(study.root / "patterns.parquet", patterns.from_rows(found))
    return ended


def _belong(path: Path, whole: bool) -> None:
    if not whole:
        raise rundir.RunError(f"{path} does not belong to the chains that are there; delete it to make it again")


def score(study: Study, outcomes: Mapping[str, int]) -> list[str]:
    """scores.csv, bounds.csv, truth.csv where it is known, figure and report; returns the lines to print.

    Args:
      outcomes: how the run's chains ended, as `count` found.
    """
    c, task, root = study.config, study.task, study.root
    table = counts.read_counts(root / "counts.parquet")
    settings = Settings(
        tau=c["tau"],
        p10_below=c["p10_max"],
        replicates=c["replicates"],
        levels="records" if c["records_only"] else "both",
        min_records=c["min_records"],
        seed=c["seed"],
    )
    starts = json.loads((root / "environment.json").read_text())
    same = [{k: v for k, v in start.items() if k != "command"} for start in starts]
    assumptions = [f"Judge: {task.judge.name}.", f"Sampling: {dataclasses.asdict(study.drawer.sampling)}."]
    if any(start != same[0] for start in same):
        assumptions.append("The run was resumed under other versions, devices or code: see environment.json.")
    truth = None
    if task.truth is not None:
        rows = [r for r in task.truth(task.records) if r["value"] is not None]
        truth = {(r["attribute"], r["label"], r["score"]): float(r["value"]) for r in rows}
        lines = [",".join(str(r[k]) for k in TRUTH) for r in rows]
        rundir.write_text(root / "truth.csv", "\n".join([",".join(TRUTH), *lines]) + "\n")
    found = write_scores(
        table,
        patterns.read_patterns(root / "patterns.parquet", table),
        root,
        settings,
        truth=truth,
        title=f"{study.drawer.model.name} on {task.name}",
        config=c,
        environment=starts[0],
        outcomes=outcomes,
        assumptions=assumptions,
    )
    return summary(found, truth)
