"""What a run will cost, before anything is spent, and what it did cost: one table for both.

Stages: reading prompts, no-CoT answers, chains of each arm and batch, judging. Chains are the exact expectations of the
run's sampling rule (jaxmon/rules/operating.py) over a stated population of effects; records and prompt lengths are the
task's own. Tokens per chain and per second are given, or measured by drawing one block of the first record.

Forward FLOPs of a token at context length c: 2 x (weights that multiply) + 4 layers heads head_dim c (scores and
values); the embedding multiplies only as the output head. Memory: weights + keys and values of all slots and of a
record's prompts + logits.

Knows: configs, rules, models, run directories. Does not know: flags.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pyarrow.compute as pc

from experiments import draws, labelling, rundir, store
from experiments.opening import Study, unit_size
from jaxmon import arms as arms_of
from jaxmon import prompts
from jaxmon.arms import X1, arms, x0
from jaxmon.rules import operating
from models import memory as memory_of
from models.loading import Model

STAGES = ("read prompts", "no-CoT answers", "X=1 select", "X=0 select", "X=1 estimate", "X=0 estimate")


@dataclasses.dataclass(frozen=True)
class Population:
    """What is assumed of pairs not yet seen: records share `p11`; `effects` of their pairs have TE = `effect`."""

    p11: float = 0.5
    effect: float = 0.25
    effects: float = 3.0  # a record; the other pairs have TE = 0


@dataclasses.dataclass
class Line:
    """One stage: chains, tokens (read or written), forward FLOPs."""

    chains: float = 0.0
    tokens: float = 0.0
    flops: float = 0.0


def flops(model: Model, tokens: float, context: float) -> float:
    """Forward FLOPs of `tokens` tokens at a mean context length."""
    c = model.config
    weights = sum(math.prod(x.shape) for x in jax.tree.leaves(model.params))
    return tokens * (2 * (weights - c.idle_parameters) + 4 * c.query_width * context)


def memory(study: Study, drawer: draws.Drawer, prompt: int) -> dict[str, int]:
    """Bytes held on each device while chains are drawn, by what holds them."""
    model, slots = drawer.model, drawer.slots // drawer.data
    state = drawer.token_bytes
    arms_open = 1 + max(len(v) for v in study.studied.values())
    return {
        "weights": memory_of.weights(model.params),
        "chains in flight": slots * drawer.length * state,
        "prompts of one record": arms_open * prompt * state,
        "logits": slots * model.config.vocab_size * 4,
    }


def lengths(study: Study, drawer: draws.Drawer) -> dict[str, list[int]]:
    """Prompt tokens of every arm, by kind of arm."""
    model, found = drawer.model, defaultdict[str, list[int]](list)
    for record in study.task.records:
        for name, shown in arms(record, study.studied[record.id]).items():
            made = prompts.prompt(shown, drawer.task, model.chat, model.tokenizer)
            found["one" if name == X1 else "zero"].append(len(made.tokens))
            found["forced"].append(len(made.plain or ()) + len(made.forced) + sum(map(len, made.options)))
    return found


def expected(
    study: Study, drawer: draws.Drawer, population: Population, per_chain: float
) -> tuple[dict[str, Line], float]:
    """The table before the run, and the expected calls of the judge (one per target answer of X = 1, estimation)."""
    n, rule, p = study.plan.n, study.rule, population
    found = lengths(study, drawer)
    law = operating.operate(rule, p.p11, np.array([p.p11 - p.effect, p.p11]))  # the same for all records
    lines = {stage: Line() for stage in STAGES}
    calls = 0.0
    for record in study.task.records:
        pairs = len(study.studied[record.id])
        share = min(1.0, p.effects / pairs)
        kept = 1 - (share * law.discard[0] + (1 - share) * law.discard[1])
        chains0 = pairs * (share * law.chains0[0] + (1 - share) * law.chains0[1])
        some = 1.0 if rule.always else (1 - law.stopped) * (1 - (1 - kept) ** pairs)
        lines["X=1 select"].chains += rule.first * law.stopped + n * (1 - law.stopped)
        lines["X=1 estimate"].chains += n * some
        lines["X=0 estimate"].chains += n * pairs * kept
        lines["X=0 select"].chains += chains0 - n * pairs * kept
        calls += n * some * p.p11
    _tokens(drawer.model, lines, found, per_chain)
    return lines, calls


def spent(study: Study, drawer: draws.Drawer) -> tuple[dict[str, Line], float]:
    """The table of a run from its files: chains and tokens that are there, and the labels given."""
    n, root = study.plan.n, study.root
    lines = {stage: Line() for stage in STAGES}
    calls = 0.0
    for record in study.task.records:
        arms_of = {rundir.name(name): name for name in (X1, *map(x0, study.studied[record.id]))}
        for table_name, file in store.listing(rundir.chains(root, record.id)).items():
            name = arms_of.get(table_name.removesuffix(".parquet").rpartition(".")[0])
            if name is None:
                continue
            table = store.load(file, draws.CHAINS, columns=("chain", "tokens"), makers=study.makers)
            early, sizes = table.column("chain").to_numpy() < n, pc.list_value_length(table.column("tokens")).to_numpy()
            for batch, own in (("select", early), ("estimate", ~early)):
                line = lines[f"X={int(name == X1)} {batch}"]
                line.chains += int(own.sum())
                line.tokens += int(sizes[own].sum())
        if store.has(study.labels(record)):
            calls += labelling.load(study.labels(record), labelling.LABELS, study.judge).num_rows
    _tokens(drawer.model, lines, lengths(study, drawer), None)
    return lines, calls


def _tokens(model: Model, lines: Mapping[str, Line], found: Mapping[str, list[int]], per_chain: float | None) -> None:
    """Fills in tokens and FLOPs; per_chain None: the chains' tokens have been counted."""
    for stage, kinds in (("read prompts", ("one", "zero")), ("no-CoT answers", ("forced",))):
        sizes = np.array([n for kind in kinds for n in found[kind]], float)
        context = sizes / 2 if stage == "read prompts" else np.array([*found["one"], *found["zero"]]).mean() + sizes / 2
        lines[stage].tokens = sizes.sum()
        lines[stage].flops = float(sum(flops(model, s, c) for s, c in zip(sizes, context, strict=True)))
    for stage in STAGES[2:]:
        line = lines[stage]
        if per_chain is not None:
            line.tokens = line.chains * per_chain
        mean = line.tokens / line.chains if line.chains else 0.0
        prompt = float(np.mean(found["one" if "X=1" in stage else "zero"] or [0]))
        line.flops = flops(model, line.tokens, prompt + mean / 2)


def measure(study: Study, drawer: draws.Drawer) -> tuple[float, float]:
    """(tokens per chain, tokens per second) of one full block of X = 1 of the first record, after compilation."""
    record = study.task.records[0]
    arm = draws.open_arm(drawer, record, X1)
    block = [draws.Shard(arm, 0, min(drawer.slots, drawer.size))]
    draws.draw(drawer, block)
    start = time.perf_counter()
    (table,) = draws.draw(drawer, block)
    seconds = time.perf_counter() - start
    tokens = sum(map(len, table.column("tokens")))
    return tokens / table.num_rows, tokens / seconds


def text(lines: Mapping[str, Line], calls: float, rate: float, price: float, title: str) -> list[str]:
    """The table as lines; hours at `rate` tokens per second count written tokens alone, reading is far faster."""
    out = [title, f"{'stage':16} {'chains':>12} {'tokens':>16} {'forward FLOPs':>14} {'hours':>9}"]
    total = Line()
    hours = 0.0
    for stage in STAGES:
        line = lines[stage]
        here = line.tokens / rate / 3600 if line.chains else 0.0
        hours += here
        total = Line(total.chains + line.chains, total.tokens + line.tokens, total.flops + line.flops)
        out.append(f"{stage:16} {line.chains:12,.0f} {line.tokens:16,.0f} {line.flops:14.2e} {here:9.2f}")
    out.append(f"{'all':16} {total.chains:12,.0f} {total.tokens:16,.0f} {total.flops:14.2e} {hours:9.2f}")
    out.append(f"{'judge':16} {calls:12,.0f} calls, {calls * price:,.2f} at {price:g} a call")
    return out


def units(config: Mapping[str, Any], rate: float, seconds: float = 60.0) -> str:
    """How long a unit of this config takes a worker that draws `rate` chains a second, and how to have shorter ones.

    Units are for runs on many workers: a worker that dies loses one task, and one task is the least that a barrier of
    a record waits for. A task is a unit, or several that fill the slots together.
    """
    size = unit_size(config)
    task = max(size, config["slots"]) / rate
    shorter = arms_of.unit_size(config["shard"], config["slots"], seconds, rate)
    wish = f"--config.unit_seconds={seconds:g} --config.chains_per_second={rate:.3g}"
    return f"units: {size:,} chains, {task:,.0f} s of one worker; with {wish}: {shorter:,} chains"


def wall_hours(root: Path) -> float:
    """Hours from the first to the last file of a run's chains, pauses included; for a reader alone."""
    times = [p.stat().st_mtime for p in (root / "chains").rglob("*.parquet")]
    return (max(times) - min(times)) / 3600 if times else 0.0
