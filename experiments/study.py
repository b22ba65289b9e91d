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
from jaxmon import adaptive, counts, counts_schema, patterns
from jaxmon.arms import X1, arms, shards, x0
from jaxmon.cells import Settings
from jaxmon.records import Record
from jaxmon.sampler import Sampling
from jaxmon.tally import Drawn, tally
from jaxmon.tasks import registry
from models.loading import load

TRUTH = ("attribute", "label", "score", "value")
SECTIONS = (("direct", "Direct effects (level 2) and exposure windows (level 3.m)"),)  # of other programs, by file
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
    """Loads records and model and logs the environment.

    Raises:
      ValueError: one line on what is wrong with config, records, model or directory.
    """
    c = config
    jax.config.update("jax_default_matmul_precision", None if c["precision"] == "default" else c["precision"])
    ask = registry.Request(c["source"], c["per_label"], c["data_seed"], tuple(c["menu"]), c["schema"])
    task = registry.load(c["task"], c["labels"], ask)
    studied = registry.studied(task, c["attributes"])
    task = dataclasses.replace(task, records=tuple(r for r in task.records if studied[r.id]))  # no attribute, no arms
    model = load(c["model"], c["dtype"])
    rundir.log_environment(root, rundir.environment(model.fingerprint, c["precision"]))
    chosen = {k: model.sampling[k] if c[k] is None else c[k] for k in ("temperature", "top_k", "top_p", "min_p")}
    sampling = Sampling(
        float(chosen["temperature"]), int(chosen["top_k"]), float(chosen["top_p"]), float(chosen["min_p"])
    )
    drawer = draws.Drawer(model, c["task"], sampling, c["seed"], c["slots"], c["shard"], c["length"], c["bucket"])
    return Study(config, root, drawer, task, studied)


def sample(study: Study) -> None:
    """T = 0 answers of every arm; then X = 1 in full, X = 0 to stage 1, and to the end where the rule keeps it."""
    plan = study.plan
    total = sum(2 * plan.n * (1 + len(study.studied[r.id])) for r in study.task.records)
    with tqdm(total=total, unit="chain", desc="sampling", smoothing=0.05, mininterval=0.5) as bar:
        for record in study.task.records:
            shown = arms(record, study.studied[record.id])
            arm = functools.cache(functools.partial(_open, study, shown))  # each prompt is read once, if at all
            if not study.answers(record).exists():
                rows = [draws.no_cot(study.drawer, arm(name)) for name in shown]
                table = pa.table({f.name: pa.array([r[f.name] for r in rows], f.type) for f in draws.ANSWERS})
                draws.save(study.answers(record), table.cast(draws.ANSWERS))
            zeros = {x0(name): name for name in study.studied[record.id]}
            first = {X1: adaptive.first_ids(1, plan)} | dict.fromkeys(zeros, adaptive.first_ids(0, plan))
            one, *rest = _chains(study, record, arm, first, bar)
            select = [c for c in one if adaptive.batch_of(c.chain, plan) == "select"]  # the other batch has no say
            k1 = sum(c.code == record.target for c in select)
            k0 = [sum(c.code == record.target for c in zero) for zero in rest]
            kept = {name: bool(adaptive.keep(k1, k, plan)) for name, k in zip(zeros, k0, strict=True)}
            bar.total -= sum(2 * plan.n - sum(adaptive.batch_sizes(keep, plan)) for keep in kept.values())
            _chains(study, record, arm, {name: adaptive.second_ids(keep, plan) for name, keep in kept.items()}, bar)


def _open(study: Study, shown: Mapping[str, Record], name: str) -> draws.Arm:
    return draws.open_arm(study.drawer, shown[name], name)


def _chains(
    study: Study, record: Record, arm: Callable[[str], draws.Arm], wanted: Mapping[str, range], bar: tqdm
) -> list[list[Drawn]]:
    """The chains of the arms with these ids, arm by arm; draws the shards that are not on disk, several at once."""
    cuts = [(name, *cut) for name, ids in wanted.items() for cut in _cut(study, ids)]
    opener = lambda name: functools.partial(arm, name)
    draws.fill(study.drawer, study.root, [draws.Wanted(record.id, *cut, opener(cut[0])) for cut in cuts], bar.update)
    found: dict[str, list[Drawn]] = {name: [] for name in wanted}
    for name, a, b in cuts:
        found[name] += draws.drawn(draws.load_shard(study.root, record.id, name, a, b))
    return list(found.values())


def _cut(study: Study, ids: range) -> list[tuple[int, int]]:
    return shards(ids.start, ids.stop, study.config["shard"], study.plan.stage1, study.plan.n)


def stored(study: Study, record: Record, name: str, ids: range) -> list[pa.Table]:
    """The shards of these ids that are on disk."""
    there = [cut for cut in _cut(study, ids) if rundir.shard(study.root, record.id, name, *cut).exists()]
    return [draws.load_shard(study.root, record.id, name, *cut) for cut in there]


def judge(study: Study) -> None:
    """Labels the target answers of X = 1 in the estimation batch, all attributes of a chain in one call."""
    for record in tqdm(study.task.records, unit="record", desc="judging"):
        if study.labels(record).exists():
            continue
        rows = []
        for table in stored(study, record, X1, range(study.plan.n, 2 * study.plan.n)):
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
            name: [chain for table in stored(study, record, name, every) for chain in draws.drawn(table)]
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


def settings(study: Study) -> Settings:
    """The estimator's choices, from the run's config."""
    c = study.config
    return Settings(
        tau=c["tau"],
        p10_below=c["p10_max"],
        replicates=c["replicates"],
        levels="records" if c["records_only"] else "both",
        min_records=c["min_records"],
        seed=c["seed"],
    )


def score(study: Study, outcomes: Mapping[str, int]) -> list[str]:
    """scores.csv, bounds.csv, truth.csv where it is known, figure and report; returns the lines to print.

    Args:
      outcomes: how the run's chains ended, as `count` found.
    """
    c, task, root = study.config, study.task, study.root
    table = counts.read_counts(root / "counts.parquet")
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
        settings(study),
        truth=truth,
        title=f"{study.drawer.model.name} on {task.name}",
        config=c,
        environment=starts[0],
        outcomes=outcomes,
        assumptions=assumptions,
        placebos=[name for name in task.placebos if name in table.attributes],
        sections=[(t, f.read_text()) for f, t in ((root / f"sections/{n}.html", t) for n, t in SECTIONS) if f.exists()],
    )
    return summary(found, truth)
