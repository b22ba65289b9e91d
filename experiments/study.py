"""The stages of a monitorability run over a run directory: sample, judge, count, score. Each reads what is there.

Knows: arms, stages, files, progress. Does not know: how a chain is drawn (draws.py), what a score is
(jaxmon/estimation/table.py).
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import jax
import pyarrow as pa
import pyarrow.compute as pc
from tqdm import tqdm

from experiments import draws, hosts, judges, labelling, places, rundir, store
from experiments.scoring import score as write_scores
from experiments.scoring import summary
from jaxmon.arms import X1, arms, shards, x0
from jaxmon.counting import counts, counts_schema, patterns
from jaxmon.counting.counts_schema import BATCHES
from jaxmon.counting.tally import COUNTED, Drawn, ends, tally
from jaxmon.estimation.cells import Settings
from jaxmon.estimation.judge_error import JudgeError
from jaxmon.judging.judge import Accountable, Judge, chosen
from jaxmon.judging.judge_checks import Check, checks
from jaxmon.records import Record
from jaxmon.rules import adaptive, staged
from jaxmon.sampling.sampler import Sampling
from jaxmon.tasks import registry, sources
from models import mesh
from models.loading import load

TRUTH = ("attribute", "label", "score", "value")
SECTIONS = (("direct", "Direct effects (level 2) and exposure windows (level 3.m)"),)  # of other programs, by file


@dataclasses.dataclass(frozen=True)
class Study:
    """A run that has been opened.

    Attributes:
      root: the run directory; chains and answers are below it.
      out: where labels, counts, scores and report are; `root` but for labels of another judge.
      judge: ready to label.
      studied: record id -> attributes.
    """

    config: Mapping[str, Any]
    root: Path
    out: Path
    task: registry.Task
    studied: Mapping[str, list[str]]
    judge: Judge

    @property
    def plan(self) -> adaptive.Plan:
        c = self.config
        return adaptive.Plan(c["n"], c["tau"], c["stage1"], c["drop_below"])

    @functools.cached_property
    def rule(self) -> staged.Rule:
        return staged.make(self.config["rule"], self.plan)

    @functools.cached_property
    def makers(self) -> store.Makers:
        """What may have made the run's tables; known once the environment is logged."""
        return rundir.makers(self.root)

    def answers(self, record: Record) -> Path:
        return self.root / "answers" / f"{rundir.name(record.id)}.parquet"

    def labels(self, record: Record) -> Path:
        return self.out / "labels" / f"{rundir.name(record.id)}.parquet"

    def controls(self, record: Record) -> Path:
        return self.out / "controls" / f"{rundir.name(record.id)}.parquet"


def run(config: Mapping[str, Any], root: Path, terms: rundir.Terms = rundir.CAREFUL) -> None:
    """The whole job, in order; each stage reads what the one before it has written. Hosts part when all is sampled."""
    with ExitStack() as held:

        def open_here() -> None:
            held.callback(rundir.open_run(root, config, terms).close)

        hosts.lead(open_here)
        own = config if hosts.leads() else {**config, "judge": "lexical"}  # one host judges
        study = held.enter_context(reopened(own, root))
        sample(study, prepare(study, terms))
        hosts.part()
        if not hosts.leads():
            return
        judge(study)
        for line in score(study, count(study)):
            print(line)
    print(f"report: {root / 'report.html'}")


@contextmanager
def reopened(config: Mapping[str, Any], root: Path, beside: bool = False) -> Iterator[Study]:
    """A study without its model: its records, and its judge, ready.

    Args:
      beside: labels and what follows from them go below judges/NAME, not into the run itself.

    Raises:
      ValueError: one line on what is wrong with records or judge.
    """
    c = config
    ask = registry.Request(c["source"], c["per_label"], c["data_seed"], tuple(c["menu"]), c["schema"])
    task = registry.load(c["task"], c["labels"], ask)
    studied = registry.studied(task, c["attributes"])
    task = dataclasses.replace(task, records=tuple(r for r in task.records if studied[r.id]))  # no attribute, no arms
    with judges.opened(c["judge"], task, c["judge_model"], root / "replies.jsonl") as judge:
        out = root / "judges" / rundir.name(judge.name) if beside else root
        yield Study(config, root, out, task, studied, judge)


def prepare(study: Study, terms: rundir.Terms = rundir.CAREFUL) -> draws.Drawer:
    """Loads the model under study and logs the environment; raises what `drawer` raises, or RunError."""
    made = _drawer_of_every_host(study)
    entry = rundir.environment(made.model.fingerprint, study.config["precision"])
    entry |= {"model": made.model.name, "sampling": dataclasses.asdict(made.sampling)}

    def log() -> None:
        rundir.log_environment(study.root, entry, terms)
        note = json.dumps(sources.note(study.config["task"]), indent=1)
        rundir.write_text(study.root / "data.json", note + "\n")

    hosts.lead(log)
    return made


def _drawer_of_every_host(study: Study) -> draws.Drawer:
    made: list[draws.Drawer] = []

    def load_here() -> str:
        made.append(drawer(study))
        return made[0].model.fingerprint

    if len(set(hosts.every(load_here))) > 1:
        raise hosts.HostError(f"{study.config['model']}: the hosts have different files under this name")
    return made[0]


def drawer(study: Study) -> draws.Drawer:
    """Loads the model under study; writes nothing.

    Raises:
      ValueError: one line on what is wrong with config or model.
    """
    c = study.config
    jax.config.update("jax_default_matmul_precision", None if c["precision"] == "default" else c["precision"])
    model = load(c["model"], c["dtype"], mesh.make(c["mesh"]), c["int8"])
    chosen = {k: model.sampling[k] if c[k] is None else c[k] for k in ("temperature", "top_k", "top_p", "min_p")}
    sampling = Sampling(
        float(chosen["temperature"]), int(chosen["top_k"]), float(chosen["top_p"]), float(chosen["min_p"])
    )
    made = draws.Drawer(model, c["task"], sampling, c["seed"], c["slots"], c["shard"], c["length"], c["bucket"])
    fits, said = made.fits()
    if not fits:
        raise ValueError(f"config: {said}")
    return made


def sample(study: Study, drawer: draws.Drawer) -> None:
    """T = 0 answers of every arm; then chains as far as the rule goes on, the arms of a record together."""
    n, rule = study.plan.n, study.rule
    total = sum(2 * n * (1 + len(study.studied[r.id])) for r in study.task.records)
    quiet = not hosts.leads()
    with tqdm(total=total, unit="chain", desc="sampling", smoothing=0.05, mininterval=0.5, disable=quiet) as bar:
        for record in study.task.records:
            alive = list(study.studied[record.id])
            shown = arms(record, alive)
            arm = functools.cache(functools.partial(_open, drawer, shown))  # each prompt is read once, if at all
            path = study.answers(record)
            if not hosts.lead(functools.partial(store.has, path)):
                table = draws.answers([draws.no_cot(drawer, arm(name)) for name in shown])
                hosts.lead(functools.partial(_save, path, table, drawer.made_by))

            def hits(
                names: Iterable[str], first: int, stop: int, record: Record = record, arm: Any = arm
            ) -> dict[str, int]:
                """Target answers among the chains first … stop - 1 of each arm."""
                read = _chains(study, drawer, record, arm, dict.fromkeys(names, range(first, stop)), bar)
                return hosts.lead(lambda: {k: sum(c.code == record.target for c in v) for k, v in read().items()})

            k1 = hits([X1], 0, rule.first)[X1]
            if staged.stops(k1, rule) or hosts.lead(functools.partial(_beyond_m1, study, record)):
                bar.total -= 2 * n * len(shown) - rule.first
                continue
            k1 += hits([X1], rule.first, n)[X1]
            drawn, k0 = 0, dict.fromkeys(map(x0, alive), 0)
            rest: dict[str, range] = {}
            for look, m in enumerate(rule.looks):
                k0 = {name: k0[name] + more for name, more in hits(list(k0), drawn, m).items()}
                said = {name: staged.decide(k1, k, look, rule) for name, k in k0.items()}
                settled = [name for name, word in said.items() if word == "settle"]
                bar.total -= list(said.values()).count("drop") * (2 * n - m) + len(settled) * (n - m)
                drawn, k0 = m, {name: k for name, k in k0.items() if said[name] == "go on"}
                rest |= dict.fromkeys(settled, range(n, 2 * n))
            rest |= dict.fromkeys(k0, range(drawn, 2 * n))
            if rule.always or rest:
                rest[X1] = range(n, 2 * n)
            else:
                bar.total -= n
            _chains(study, drawer, record, arm, rest, bar)


def _save(path: Path, table: pa.Table, made_by: Mapping[str, str]) -> None:
    """As `store.save`, for `hosts.lead`, whose value is told to the other hosts."""
    store.save(path, table, made_by)


def _beyond_m1(study: Study, record: Record) -> bool:
    """Whether the study asks for M1 alone and the record's p10 rules it out."""
    if not study.config["m1_only"]:
        return False
    answers = store.load(study.answers(record), draws.ANSWERS, makers=study.makers)
    p10 = dict(zip(answers.column("arm").to_pylist(), answers.column("target").to_pylist(), strict=True))[X1]
    return bool(p10 >= study.config["p10_max"])


def _open(drawer: draws.Drawer, shown: Mapping[str, Record], name: str) -> draws.Arm:
    return draws.open_arm(drawer, shown[name], name)


def _chains(
    study: Study,
    drawer: draws.Drawer,
    record: Record,
    arm: Callable[[str], draws.Arm],
    wanted: Mapping[str, range],
    bar: tqdm,
) -> Callable[[], dict[str, list[Drawn]]]:
    """Draws the shards with these ids that are not on disk, several at once; returns what reads the arms' chains."""
    cuts = [(name, *cut) for name, ids in wanted.items() for cut in _cut(study, ids)]
    opener = lambda name: functools.partial(arm, name)
    draws.fill(drawer, study.root, [draws.Wanted(record.id, *cut, opener(cut[0])) for cut in cuts], bar.update)

    def read() -> dict[str, list[Drawn]]:
        found: dict[str, list[Drawn]] = {name: [] for name in wanted}
        for name, a, b in cuts:
            found[name] += draws.drawn(draws.load_shard(study.root, record.id, name, a, b, COUNTED.names, study.makers))
        return found

    return read


def _cut(study: Study, ids: range) -> list[tuple[int, int]]:
    return shards(ids.start, ids.stop, study.config["shard"], *study.rule.borders())


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
    most, few = study.config["judge_most"], study.config["judge_controls"]
    estimate = range(study.plan.n, 2 * study.plan.n)
    for record in tqdm(study.task.records, unit="record", desc="judging"):
        if not store.has(study.labels(record)):
            seen = _answers(study, record, X1, estimate, most)
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
    for record in study.task.records:
        among = store.listing(rundir.chains(study.root, record.id))
        read = lambda name, record=record, among=among: stored(
            study, record, name, range(2 * study.plan.n), COUNTED.names, among
        )
        drawn = {
            name: pa.concat_tables([COUNTED.empty_table(), *read(name)])
            for name in arms(record, study.studied[record.id])
        }
        labels = labelling.load(study.labels(record), labelling.LABELS, study.judge)
        answers = store.load(study.answers(record), draws.ANSWERS, makers=study.makers)
        letters = dict(zip(labels.column("chain").to_pylist(), labels.column("pattern").to_pylist(), strict=True))
        target = dict(zip(answers.column("arm").to_pylist(), answers.column("target").to_pylist(), strict=True))
        one = ends(drawn[X1], record.target, study.plan.n)
        hits = one.chain[one.hit & (one.batch == BATCHES.index("estimate"))].tolist()
        seen = chosen(hits, study.config["judge_most"], study.config["seed"], record.id, X1)
        _belong(study.labels(record), letters.keys() == set(seen))
        _belong(study.answers(record), target.keys() == drawn.keys())
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
    for record in study.task.records:
        found = labelling.load(study.labels(record), labelling.LABELS, study.judge)
        for pattern in found.column("pattern").to_pylist():
            for name, letter in zip(sorted(study.studied[record.id]), pattern, strict=True):
                labels[name][letter] += 1
        found = labelling.load(study.controls(record), labelling.CONTROLS, study.judge)
        controls += zip(found.column("attribute").to_pylist(), found.column("label").to_pylist(), strict=True)
    account = study.judge.account() if isinstance(study.judge, Accountable) else {}
    return checks(labels, controls, study.task.placebos, study.judge.name, study.judge.version, account)
