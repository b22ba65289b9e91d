"""The stages of a direct-effect study in a monitorability run's directory: early answers, windows, effects, report.

direct/R/ATTRIBUTE.parquet     per X = 0 chain: its cuts, and the target's early-answer probability at each (EARLY)
windows/R/ATTRIBUTE.parquet    per window: target answers of the same chains with and without it (WINDOWS)
direct_effect.csv, curves.csv, windows.csv, direct-*.png, direct-*.svg, sections/direct.html

The X = 0 chains are those of the estimation batch; only pairs whose selection batch passes the filters are studied.

Knows: stages and files. Does not know: what an early answer or a window is (jaxmon/sampling/early.py, decode.py), nor
the level rule (jaxmon/estimation/direct.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
from tqdm import tqdm

from experiments import draws, opening, rundir, store, study
from jaxmon import prompts
from jaxmon.arms import X1, arms, x0
from jaxmon.counting.counts import read_counts
from jaxmon.estimation import cells
from jaxmon.records import Record
from jaxmon.reports import direct_figures, direct_report, figures
from jaxmon.reports.direct_report import Effects
from jaxmon.sampling import early
from jaxmon.sampling.answers import options
from jaxmon.sampling.decode import Window, sample
from jaxmon.sampling.keys import arm_key
from jaxmon.sampling.parsing import menu, parse

EARLY = pa.schema(
    [
        ("chain", pa.int64()),
        ("prompt", pa.int32()),  # tokens of the X = 0 prompt
        ("start", pa.int32()),  # tokens of the chain before its thought
        ("stop", pa.int32()),  # and up to its end
        ("cuts", pa.list_(pa.int32())),  # tokens kept, per probe
        ("top", pa.list_(pa.int32())),  # the most probable option at each, X = 0
        ("settled", pa.int32()),  # i*, an index into cuts
        ("x0", pa.list_(pa.float32())),  # P(target | options) at each cut, X = 0
        ("frozen", pa.list_(pa.float32())),  # the sentence put back before the same states
        ("unfrozen", pa.list_(pa.float32())),  # the sentence put back, the same tokens read anew
    ]
)
WINDOWS = pa.schema(
    [("width", pa.int32()), ("start", pa.int32()), *((n, pa.int64()) for n in ("chains", "hits", "hits0"))]
)


Opener = Callable[[Record], Callable[[str], draws.Arm]]


class Pair(NamedTuple):
    """A qualifying (record, attribute) and its total effect on the estimation batch."""

    record: Record
    name: str
    te: float


def run(config: Mapping[str, Any], root: Path, terms: rundir.Terms = rundir.CAREFUL) -> None:
    """The monitorability run, finished or not, is finished first; then each stage reads what is there."""
    with rundir.open_run(root, config, terms), opening.reopened(config, root) as opened:
        drawer = opening.prepare(opened, terms)
        study.sample(opened, drawer)
        study.judge(opened)
        ended = study.count(opened)
        pairs = qualifying(opened)
        arm = functools.lru_cache(1)(functools.partial(_opener, opened, drawer))  # over a record's pairs
        for pair in tqdm(pairs, unit="pair", desc="early answers and windows"):
            path, own = functools.partial(_path, opened, pair=pair), (opened, drawer, arm, pair)
            _once(path("direct"), EARLY, drawer.made_by, functools.partial(early_answers, *own))
            if config["windows"]:
                _once(path("windows"), WINDOWS, drawer.made_by, functools.partial(windows, *own))
        found = effects(opened, pairs)
        for line in report(opened, found, drawer.model.config.windows):
            print(line)
        study.score(opened, ended)
    print(f"report: {root / 'report.html'}")


def _path(opened: opening.Study, folder: str, pair: Pair) -> Path:
    return opened.root / folder / rundir.name(pair.record.id) / f"{rundir.name(pair.name)}.parquet"


def _once(path: Path, schema: pa.Schema, made_by: Mapping[str, str], make: Any) -> None:
    if not store.has(path):
        columns = make()
        store.save(path, pa.table([pa.array(columns[f.name], f.type) for f in schema], schema), made_by)


def qualifying(opened: opening.Study) -> list[Pair]:
    """The pairs that pass the filters of M1 on the selection batch (TE > τ, p10 below its limit)."""
    table = read_counts(opened.root / "counts.parquet")
    fixed, drawn = cells.split(table, study.settings(opened))
    good = cells.passes(fixed, drawn) & fixed.p10_ok
    te = drawn.k1 / fixed.n1 - drawn.k0 / fixed.n0
    by_id = {r.id: r for r in opened.task.records}
    return [Pair(by_id[table.records[r]], table.attributes[a], float(te[r, a])) for r, a in np.argwhere(good)]


def _opener(opened: opening.Study, drawer: draws.Drawer, record: Record) -> Callable[[str], draws.Arm]:
    return draws.opener(drawer, arms(record, opened.studied[record.id]))


def _open(arm: Opener, pair: Pair) -> tuple[draws.Arm, draws.Arm]:
    """The pair's prompts without and with the sentence, read."""
    return arm(pair.record)(x0(pair.name)), arm(pair.record)(X1)


def _chains(opened: opening.Study, pair: Pair, count: int) -> list[dict[str, Any]]:
    """The first chains of the X = 0 arm's estimation batch."""
    n = opened.plan.n
    tables = study.stored(opened, pair.record, x0(pair.name), range(n, 2 * n), ("chain", "tokens", "code", "thought"))
    return [row for table in tables for row in table.to_pylist()][:count]


def early_answers(opened: opening.Study, drawer: draws.Drawer, arm: Opener, pair: Pair) -> dict[str, list[Any]]:
    """Early answers of a pair's X = 0 chains under both prompts, as columns of EARLY; without a thought they drop out.

    Raises:
      ValueError: the forced answer does not fit behind the longest chain, or logits are NaN.
    """
    c, model = opened.config, drawer.model
    before, after = _open(arm, pair)
    decode = lambda ids: model.tokenizer.decode(list(ids), skip_special_tokens=False)
    rows = _chains(opened, pair, c["direct_chains"])
    spans = [early.span(row["tokens"], decode, row["thought"]) for row in rows]
    kept = [(row, s) for row, s in zip(rows, spans, strict=True) if s is not None]
    out: dict[str, list[Any]] = {f.name: [] for f in EARLY}
    forced = jnp.asarray(prompts.encode(model.tokenizer, prompts.early_text(model.chat)), jnp.int32)
    longest = len(after.prompt.tokens) + drawer.length + forced.size + max(map(len, after.prompt.options))
    if longest > model.config.max_positions:
        raise ValueError(
            f"record {pair.record.id}: a prompt, a chain and a forced answer of together {longest} tokens do not fit "
            f"into the {model.config.max_positions} positions of {model.name}"
        )
    answers = options(after.prompt.options)
    target = [o.code for o in pair.record.options].index(pair.record.target)
    size = min(drawer.slots, c["direct_chains"])
    given = (drawer.extend, model.params)
    for group in (kept[i : i + size] for i in range(0, len(kept), size)):
        padded = [*group, *[group[0]] * (size - len(group))]  # one compilation
        tokens = np.zeros((size, drawer.length), np.int32)
        for i, (row, _) in enumerate(padded):
            tokens[i, : len(row["tokens"])] = row["tokens"]
        lengths = jnp.asarray([len(row["tokens"]) for row, _ in padded], jnp.int32)
        cuts = jnp.asarray([early.positions(*s, c["probes"]) for _, s in padded], jnp.int32)
        states = early.read_chains(*given, before.prefix, jnp.asarray(tokens), lengths)
        frozen = early.freeze(states, before.prefix, after.prefix, drawer.shift)
        again = early.read_chains(*given, after.prefix, jnp.asarray(tokens), lengths)
        seen = {"x0": (before, states), "frozen": (after, frozen), "unfrozen": (after, again)}
        laws = {
            k: np.asarray(
                jax.nn.softmax(
                    early.early_answers(*given, shown.prefix, s, cuts, forced, answers, model.vocabulary, drawer.slots),
                    axis=-1,
                )
            )[: len(group)]
            for k, (shown, s) in seen.items()
        }
        if not all(np.isfinite(law).all() for law in laws.values()):
            raise ValueError(f"record {pair.record.id}, attribute {pair.name}: the model's early answers are NaN")
        top = laws["x0"].argmax(-1)
        out["chain"] += [row["chain"] for row, _ in group]
        out["prompt"] += [len(before.prompt.tokens)] * len(group)
        out["start"] += [s[0] for _, s in group]
        out["stop"] += [s[1] for _, s in group]
        out["cuts"] += np.asarray(cuts)[: len(group)].tolist()
        out["top"] += top.tolist()
        out["settled"] += early.settled(top).tolist()
        for k, law in laws.items():
            out[k] += list(law[:, :, target])
    return out


def windows(opened: opening.Study, drawer: draws.Drawer, arm: Opener, pair: Pair) -> dict[str, list[Any]]:
    """Target answers of X = 0 chains with the sentence shown during a window, as columns of WINDOWS.

    Every window draws the same chains by the same names: up to its first step they are those of X = 0.
    """
    c, model = opened.config, drawer.model
    before, after = _open(arm, pair)
    rows = _chains(opened, pair, c["window_chains"])
    longest = max((len(row["tokens"]) for row in rows), default=1)
    starts = np.linspace(0, longest, c["window_starts"], endpoint=False).astype(int)  # aligned over records
    grid = [(width, int(s), row["chain"]) for width in c["windows"] for s in starts for row in rows]
    size = len(c["windows"]) * c["window_starts"] * c["window_chains"]
    columns = np.zeros((3, size), np.int32)
    columns[:, : len(grid)] = np.array(grid, np.int32).reshape(-1, 3).T
    width, start, ids = (jnp.asarray(column) for column in columns)
    drawn = jax.device_get(
        sample(
            drawer.extend,
            model.params,
            before.prefix,
            arm_key(drawer.seed, pair.record.id, x0(pair.name)),
            ids,
            jnp.int32(len(grid)),
            drawer.stop,
            Window(after.prefix, start, start + width, drawer.shift),
            sampling=drawer.sampling,
            slots=drawer.slots,
            length=drawer.length,
            vocabulary=model.vocabulary,
        )
    )
    if not drawn.finite[: len(grid)].all():
        raise ValueError(f"record {pair.record.id}, attribute {pair.name}: the model's logits in a window are NaN")
    tokens = [row[:end].tolist() for row, end in zip(drawn.tokens, drawn.lengths, strict=True)][: len(grid)]
    texts = model.tokenizer.decode_batch(tokens, skip_special_tokens=False)
    codes = menu(pair.record.options)
    hit = [
        parse(text, bool(ended), codes, model.chat).code == pair.record.target
        for text, ended in zip(texts, drawn.stopped[: len(grid)], strict=True)
    ]
    hits = np.reshape(hit, (len(c["windows"]), len(starts), len(rows))).sum(-1)
    hits0 = sum(row["code"] == pair.record.target for row in rows)
    every = [(width, s) for width in c["windows"] for s in starts.tolist()]
    return {
        "width": [width for width, _ in every],
        "start": [s for _, s in every],
        "chains": [len(rows)] * len(every),
        "hits": hits.ravel().tolist(),
        "hits0": [hits0] * len(every),
    }


def effects(opened: opening.Study, pairs: Sequence[Pair]) -> list[Effects]:
    """Per attribute what its pairs' files say, as arrays over records; chains are averaged within each record."""
    read = lambda folder, schema, p: store.load(_path(opened, folder, p), schema, makers=opened.makers).to_pydict()
    found = []
    for name in dict.fromkeys(n for names in opened.studied.values() for n in names):
        own = [p for p in pairs if p.name == name]
        tables = [read("direct", EARLY, p) for p in own]
        pairs_read = [(p, t) for p, t in zip(own, tables, strict=True) if t["chain"]]
        shown = opened.config["windows"] and pairs_read
        grids = [read("windows", WINDOWS, p) for p, _ in pairs_read] if shown else []
        found.append(direct_report.gather(name, [p.te for p, _ in pairs_read], [t for _, t in pairs_read], grids))
    return found


def report(opened: opening.Study, found: Sequence[Effects], sight: Sequence[int | None]) -> list[str]:
    """Writes tables, figures and the report's section; returns the lines to print."""
    root, c = opened.root, opened.config
    rows = [direct_report.summary(e, c["replicates"], c["seed"]) for e in found]
    rundir.write_csv(root / "direct_effect.csv", list(rows[0]), rows)
    rundir.write_csv(root / "curves.csv", direct_report.CURVE, direct_report.curves(found))
    rundir.write_csv(root / "windows.csv", direct_report.WINDOW, direct_report.window_rows(found))
    drawings = direct_figures.all_figures(found)
    for stem, figure in drawings.items():
        rundir.write_files(root, figures.files(figure, stem))
    drawn = {stem: figures.svg(figure) for stem, figure in drawings.items()}
    section = direct_report.section(rows, drawn, found, sight)
    rundir.write_text(root / "sections" / "direct.html", section)
    return direct_report.lines(rows)
