"""The stages of a monitorability run over a run directory: sample, judge, count, score. Each reads what is there.

Knows: stages, files, progress. Does not know: how a chain is drawn (draws.py) or by whom (runners/), what a score is
(jaxmon/estimation/table.py).
"""

from __future__ import annotations

import functools
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from tqdm import tqdm

from experiments import draws, hosts, labelling, places, rundir, store
from experiments.opening import Study, prepare, reopened
from experiments.runners import schedule
from experiments.runners.beside import beside
from experiments.runners.local import Local
from experiments.runners.stopping import leave, on_sigterm
from experiments.runners.worker import Worker
from experiments.scoring import score as write_scores
from experiments.scoring import summary
from jaxmon.arms import X1, arms, x0
from jaxmon.counting import counts, counts_schema, patterns
from jaxmon.counting.counts_schema import BATCHES
from jaxmon.counting.tally import COUNTED, ends, tally
from jaxmon.estimation.cells import Settings
from jaxmon.estimation.judge_error import JudgeError
from jaxmon.judging.judge import Accountable, chosen
from jaxmon.judging.judge_checks import Check, checks
from jaxmon.records import Record
from jaxmon.rules.tasks import Done, work

TRUTH = ("attribute", "label", "score", "value")
SECTIONS = (("direct", "Direct effects (level 2) and exposure windows (level 3.m)"),)  # of other programs, by file


Started = Callable[[Study, rundir.Terms], AbstractContextManager[schedule.Runner]]


def run(
    config: Mapping[str, Any], root: Path, terms: rundir.Terms = rundir.CAREFUL, started: Started | None = None
) -> None:
    """The whole job, in order; each stage reads what the one before it has written. Hosts part when all is sampled.

    Args:
      started: gives the runner that samples, for as long as it is open; None samples in this process.
    """
    with ExitStack() as held:

        def open_here() -> None:
            held.callback(rundir.open_run(root, config, terms).close)

        hosts.lead(open_here)
        own = config if hosts.leads() else {**config, "judge": "lexical"}  # one host judges
        study = held.enter_context(reopened(own, root))
        with on_sigterm() as stopping, (started or _here)(study, terms) as runner:
            whole = complete(study, runner, stopping)
        hosts.part()
        if not whole:
            leave()
        if not hosts.leads():
            return
        judge(study)
        for line in score(study, count(study)):
            print(line)
    print(f"report: {root / 'report.html'}")


@contextmanager
def _here(study: Study, terms: rundir.Terms) -> Iterator[schedule.Runner]:
    yield Local(Worker(study, prepare(study, terms)).do)


def sample(study: Study, drawer: draws.Drawer) -> None:
    """T = 0 answers of every arm; then chains as far as the rule goes on: all in this process."""
    complete(study, Local(Worker(study, drawer).do))


def complete(study: Study, runner: schedule.Runner, stopping: Callable[[], bool] = bool) -> bool:
    """All that is to be drawn, by whatever runner; a record that is drawn is judged while the next ones are.

    Returns: False where `stopping` ended it before all was drawn.
    """
    cuts, records = study.cuts, {r.id: r for r in study.task.records}
    total = sum(2 * study.plan.n * (1 + len(study.studied[name])) for name in records)
    quiet = not hosts.leads()
    with tqdm(total=total, unit="chain", desc="sampling", smoothing=0.05, mininterval=0.5, disable=quiet) as bar:

        def spared(chains: int) -> None:
            bar.total -= chains

        def heard(done: Done) -> None:
            bar.set_postfix_str(str(runner), refresh=False)
            bar.update(done.chains)

        works = ((name, work(cuts, name, study.studied[name], spared)) for name in records)
        stop = lambda: bool(hosts.lead(stopping))
        if quiet or study.config["judge"] == "model":  # a judge that wants the device waits until it is free
            return schedule.schedule(works, runner, heard, stopping=stop)
        alarm = lambda line: bar.write(f"judge: {line}; sampling goes on", file=sys.stderr)
        with beside(lambda name: judge_record(study, records[name]), alarm) as finished:
            return schedule.schedule(works, runner, heard, finished, stop)


def _cut(study: Study, ids: range) -> list[tuple[int, int]]:
    return [(unit.first, unit.stop) for unit in study.cuts.units("", ids)]


def stored(
    study: Study, record: Record, name: str, ids: range, columns: Sequence[str], among: store.Files | None = None
) -> Iterator[pa.Table]:
    """Columns of the shards of these ids that are on disk, one shard at a time.

    Args:
      among: the listing of the record's chains, where one has been made.
    """
    there = store.listing(rundir.chains(study.root, record.id)) if among is None else among
    for cut in _cut(study, ids):
        if rundir.shard(study.root, record.id, name, *cut).name in there:
            yield draws.load_shard(study.root, record.id, name, *cut, columns, study.makers, there)


def judge(study: Study) -> None:
    """Labels target answers of X = 1 in the estimation batch, and of X = 0 as controls: all attributes in one call."""
    records = study.task.records
    absent = store.missing(path for r in records for path in (study.labels(r), study.controls(r)))
    for i in tqdm(sorted({i // 2 for i in absent}), unit="record", desc="judging"):
        judge_record(study, records[i])


def judge_record(study: Study, record: Record) -> None:
    """The labels and controls of one record, whose chains are all on disk; what is there is not labelled again."""
    most, few = study.config["judge_most"], study.config["judge_controls"]
    if not store.has(study.labels(record)):
        seen = _answers(study, record, X1, range(study.plan.n, 2 * study.plan.n), most)
        store.save(study.labels(record), labelling.label(study.judge, record, study.studied[record.id], seen))
    if not store.has(study.controls(record)):
        without = {
            name: _answers(study, record, x0(name), range(2 * study.plan.n), few) if few else {}
            for name in study.studied[record.id]
        }
        store.save(study.controls(record), labelling.label_controls(study.judge, record, without))


def _answers(study: Study, record: Record, arm: str, ids: range, most: int) -> dict[int, str]:
    """Chain id -> thought of the target answers among the stored chains that a judge sees; most = 0 for all."""
    thoughts: dict[int, str] = {}
    for table in stored(study, record, arm, ids, ("chain", "code", "thought")):
        columns = (column.to_pylist() for column in table.columns)
        thoughts |= {chain: thought for chain, code, thought in zip(*columns, strict=True) if code == record.target}
    return {chain: thoughts[chain] for chain in chosen(thoughts, most, study.config["seed"], record.id, arm)}


def count(study: Study) -> Counter[str]:
    """counts.parquet and patterns.parquet, from the shards alone; returns how the chains ended, over all arms.

    Shards are read one by one, and of a shard what counting needs: what is held at a time is one record's ids and ends.
    """
    rows, found = [], []
    ended: Counter[str] = Counter()
    there = functools.cache(store.listing)  # a folder of labels or answers is listed once, not once per record
    for record in study.task.records:
        among = store.listing(rundir.chains(study.root, record.id))
        read = lambda name, record=record, among=among: stored(
            study, record, name, range(2 * study.plan.n), COUNTED.names, among
        )
        drawn = {
            name: pa.concat_tables([COUNTED.empty_table(), *read(name)])
            for name in arms(record, study.studied[record.id])
        }
        path, asked = study.labels(record), study.answers(record)
        labels = labelling.load(path, labelling.LABELS, study.judge, there(path.parent))
        answers = store.load(asked, draws.ANSWERS, makers=study.makers, among=there(asked.parent))
        letters = dict(zip(labels.column("chain").to_pylist(), labels.column("pattern").to_pylist(), strict=True))
        target = dict(zip(answers.column("arm").to_pylist(), answers.column("target").to_pylist(), strict=True))
        one = ends(drawn[X1], record.target, study.plan.n)
        hits = one.chain[one.hit & (one.batch == BATCHES.index("estimate"))].tolist()
        seen = chosen(hits, study.config["judge_most"], study.config["seed"], record.id, X1)
        _belong(path, letters.keys() == set(seen))
        _belong(asked, target.keys() == drawn.keys())
        more, others = tally(record, drawn, letters, target, study.plan.n)
        rows += more
        found += others
        for table in drawn.values():
            ended.update({e["values"]: e["counts"] for e in pc.value_counts(table.column("outcome")).to_pylist()})
    table = counts.checked(counts_schema.from_rows(rows), str(study.out / "counts.parquet"))
    for name, made in (("counts", table), ("patterns", patterns.from_rows(found))):
        places.write(study.out / f"{name}.parquet", counts_schema.encode(made))
    return ended


def _belong(path: Path, whole: bool) -> None:
    if not whole:
        raise rundir.RunError(f"{store.find(path)} does not belong to the chains that are there; {store.AGAIN}")


def settings(study: Study) -> Settings:
    """The estimator's choices, from the run's config."""
    return settings_of(study.config)


def settings_of(c: Mapping[str, Any]) -> Settings:
    """The same from a config alone."""
    return Settings(
        tau=c["tau"],
        p10_below=c["p10_max"],
        replicates=c["replicates"],
        levels="records" if c["records_only"] else "both",
        min_records=c["min_records"],
        interval=c["interval"],
        seed=c["seed"],
    )


def score(study: Study, outcomes: Mapping[str, int], error: JudgeError | None = None) -> list[str]:
    """scores.csv, bounds.csv, truth.csv where it is known, figure and report; returns the lines to print.

    Args:
      outcomes: how the run's chains ended, as `count` found.
      error: of the judge, as measured elsewhere; adds scores that are corrected for it.
    """
    c, task, out = study.config, study.task, study.out
    table = counts.read_counts(out / "counts.parquet")
    starts = json.loads((study.root / "environment.json").read_text())
    same = [{k: v for k, v in start.items() if k not in ("command", "code fingerprint")} for start in starts]
    codes = list(dict.fromkeys(str(start["code fingerprint"])[:12] for start in starts))
    assumptions = [f"Judge: {study.judge.name}.", f"Sampling: {starts[0].get('sampling', 'not recorded')}."]
    if any(start != same[0] for start in same):
        assumptions.append("The run was resumed under other versions, devices or code: see environment.json.")
    if len(codes) > 1:
        assumptions.append(f"Resumed under other code by --other_code=accept: fingerprints {', '.join(codes)}.")
    truth = None
    if task.truth is not None:
        rows = [r for r in task.truth(task.records) if r["value"] is not None]
        truth = {(r["attribute"], r["label"], r["score"]): float(r["value"]) for r in rows}
        rundir.write_csv(out / "truth.csv", TRUTH, rows)
    found = write_scores(
        table,
        patterns.read_patterns(out / "patterns.parquet", table),
        out,
        settings(study),
        truth=truth,
        title=f"{starts[0].get('model', Path(c['model']).name)} on {task.name}",
        config=c,
        environment=starts[0],
        outcomes=outcomes,
        assumptions=assumptions,
        placebos=[name for name in task.placebos if name in table.attributes],
        sections=[(title, file.read_text()) for title, file in _sections(study) if file.exists()],
        judge=judge_checks(study),
        error=error,
    )
    return summary(found, truth)


def _sections(study: Study) -> list[tuple[str, Path]]:
    return [(title, study.root / "sections" / f"{name}.html") for name, title in SECTIONS]


def judge_checks(study: Study) -> Check:
    """What the judge's own labels say of it: controls, placebos, parse failures; and what they have cost."""
    labels: dict[str, Counter[str]] = defaultdict(Counter)
    controls: list[tuple[str, str]] = []
    there = functools.cache(store.listing)
    load = lambda path, schema: labelling.load(path, schema, study.judge, there(path.parent))
    for record in study.task.records:
        found = load(study.labels(record), labelling.LABELS)
        for pattern in found.column("pattern").to_pylist():
            for name, letter in zip(sorted(study.studied[record.id]), pattern, strict=True):
                labels[name][letter] += 1
        found = load(study.controls(record), labelling.CONTROLS)
        controls += zip(found.column("attribute").to_pylist(), found.column("label").to_pylist(), strict=True)
    account = study.judge.account() if isinstance(study.judge, Accountable) else {}
    return checks(labels, controls, study.task.placebos, study.judge.name, study.judge.version, account)
