"""The stages of an answer-rates run: T = 0 laws, chains of the whole prompt, tables and figures.

The directory is that of a monitorability run of the same config: chains drawn for one are not drawn again for the
other.

Knows: files, progress. Does not know: flags, what a rate is (jaxmon/estimation/rates.py).
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import io
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from experiments import draws, opening, places, rundir, store
from jaxmon.arms import X1, shards
from jaxmon.counting.tally import COUNTED, Drawn
from jaxmon.estimation.rates import ACCURACY, BELOW, TARGET, Answers, Rate, rates
from jaxmon.records import Record
from jaxmon.reports import figures, rate_figures

RATES = ("model", "dataset", *(f.name for f in dataclasses.fields(Rate)))
ANSWERS = ("model", "dataset", "record", "label", "right", "target", "p10", "predicted", "drawn", "answered", "hits")


def run(config: Mapping[str, Any], root: Path, cot: bool = True, terms: rundir.Terms = rundir.CAREFUL) -> None:
    """Draws what is missing and writes rates.csv, answers.csv and the figures; without `cot` the T = 0 half alone."""
    with rundir.open_run(root, config, terms), opening.reopened(config, root) as made:
        drawer = opening.prepare(made, terms)
        key = (drawer.model.name, config["task"])
        answers, many = [], draws.together(drawer, min(config["n"], opening.unit_size(config)))
        records = made.task.records
        for block in tqdm([records[i : i + many] for i in range(0, len(records), many)], desc="answers"):
            opener = lambda record: functools.cache(lambda: draws.open_arm(drawer, record, X1))  # read once
            arms = [opener(record) for record in block]
            laws = [_law(made, drawer, record, arm) for record, arm in zip(block, arms, strict=True)]
            found = _chains(made, drawer, block, arms) if cot else [[] for _ in block]
            for record, law, chains in zip(block, laws, found, strict=True):
                codes = Counter(c.code for c in chains if c.code is not None)
                answers.append(
                    Answers(record.id, record.right or record.target, record.target, law, codes, len(chains))
                )
        write(root, {key: rates(answers, config["p10_max"])}, {key: [a.p10 for a in answers]})
        rows = [(*key, *_answer(r, a)) for r, a in zip(made.task.records, answers, strict=True)]
        lines = [dict(zip(ANSWERS, row, strict=True)) for row in rows]
        rundir.write_csv(root / "answers.csv", ANSWERS, lines)


def _law(made: opening.Study, drawer: draws.Drawer, record: Record, arm: Callable[[], draws.Arm]) -> dict[str, float]:
    """P(code | options) without a chain: from either program's file, else computed and kept."""
    path = made.root / "no_cot" / f"{rundir.name(record.id)}.parquet"
    stored = next((p for p in (made.answers(record), path) if store.has(p)), None)
    if stored is None:
        table = draws.answers(draws.no_cot(drawer, [arm()]))
        store.save(path, table, drawer.made_by)
    else:
        table = store.load(stored, draws.ANSWERS, makers=made.makers)
    row: dict[str, Any] = next((r for r in table.to_pylist() if r["arm"] == X1), {"probabilities": []})
    if len(row["probabilities"]) != len(record.options):
        raise rundir.RunError(f"{store.find(stored or path)} does not belong to record {record.id}; {store.AGAIN}")
    return dict(zip([o.code for o in record.options], row["probabilities"], strict=True))


def _chains(
    made: opening.Study, drawer: draws.Drawer, records: Sequence[Record], arms: Sequence[Callable[[], draws.Arm]]
) -> list[list[Drawn]]:
    """The chains 0 … n - 1 of whole prompts, in the shards of a monitorability run; several records at once."""
    c = made.config
    cuts = shards(0, c["n"], opening.unit_size(c), made.plan.stage1, made.plan.n)
    wanted = [draws.Wanted(r.id, X1, a, b, arm) for r, arm in zip(records, arms, strict=True) for a, b in cuts]
    draws.fill(drawer, made.root, wanted)
    read = lambda r: [
        chain
        for a, b in cuts
        for chain in draws.drawn(draws.load_shard(made.root, r.id, X1, a, b, COUNTED.names, made.makers))
    ]
    return [read(record) for record in records]


def _answer(record: Record, a: Answers) -> tuple[Any, ...]:
    answered, hits = sum(a.chains.values()), a.chains.get(a.target, 0)
    return record.id, record.label, a.right, a.target, float(a.p10), a.predicted, a.drawn, answered, hits


def write(folder: Path, found: rate_figures.Runs, p10: Mapping[tuple[str, str], Sequence[float]]) -> None:
    """rates.csv, the three kinds of figures, and a summary on the standard output."""
    places.make(folder)
    of = lambda key, rate: dict(zip(("model", "dataset"), key, strict=True)) | dataclasses.asdict(rate)
    lines = [of(key, rate) for key, some in found.items() for rate in some]
    rundir.write_csv(folder / "rates.csv", RATES, lines)
    rundir.write_files(folder, figures.files(rate_figures.target_figure(found), "target_rates"))
    rundir.write_files(folder, figures.files(rate_figures.p10_figure(p10, found), "p10"))
    for (model, dataset), some in found.items():
        figure = rate_figures.classes_figure(some, f"{dataset}, {model}")
        rundir.write_files(folder, figures.files(figure, f"classes_{dataset}_{model}"))
        for r in some:
            if r.measure in (TARGET, ACCURACY, BELOW) and r.value is not None:
                interval = f"{r.value:.3f} [{r.low:.3f}, {r.high:.3f}]"
                print(f"{dataset:12} {r.arm:7} {r.measure:10} {interval}  {r.records} records, {r.predictions} answers")


def combine(folders: Iterable[Path], out: Path) -> None:
    """One set of tables and figures from the directories of finished runs, a group per model and data set.

    Raises:
      ValueError: a directory holds no rates, or two hold those of one model and data set.
    """
    found: dict[tuple[str, str], list[Rate]] = {}
    p10: dict[tuple[str, str], list[float]] = {}
    for folder in folders:
        for name in ("rates.csv", "answers.csv"):
            if not (folder / name).is_file():
                raise ValueError(f"{folder} holds no {name}: not a finished run of answer_rates")
        mine = [_rate(row) for row in csv.DictReader(io.StringIO((folder / "rates.csv").read_text()))]
        for key in {key for key, _ in mine}:
            if key in found:
                raise ValueError(f"{folder}: the rates of {' on '.join(key)} are there twice")
        for key, rate in mine:
            found.setdefault(key, []).append(rate)
        for row in csv.DictReader(io.StringIO((folder / "answers.csv").read_text())):
            p10.setdefault((row["model"], row["dataset"]), []).append(float(row["p10"]))
    write(out, found, p10)


def _rate(row: Mapping[str, str]) -> tuple[tuple[str, str], Rate]:
    number = lambda name: float(row[name]) if row[name] else None
    numbers = {name: number(name) for name in ("value", "low", "high", "most")}
    counts = {name: int(row[name]) for name in ("records", "predictions")}
    texts = {name: row[name] for name in ("arm", "measure", "label", "note")}
    return (row["model"], row["dataset"]), Rate(**texts, **numbers, **counts)  # type: ignore[arg-type]
