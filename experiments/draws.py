"""From an arm to its chains on disk: reads the prompt once, draws the shards that are missing, reads them back.

Knows: a model, a run directory, arms. Does not know: which arms or how many chains (study.py).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from experiments import hosts, rundir
from experiments.cli import line, out_of_memory
from experiments.store import AGAIN, Files, Makers, find, load, missing, save
from jaxmon import arms as arms_of
from jaxmon import prompts
from jaxmon.arms import X1
from jaxmon.counting.tally import Drawn
from jaxmon.records import Record
from jaxmon.sampling.answers import option_log_probabilities, options
from jaxmon.sampling.decode import (
    Chains,
    Extend,
    Prefix,
    Shift,
    branch,
    pad,
    read,
    rows,
    sample,
    sample_arms,
    stack,
)
from jaxmon.sampling.keys import arm_key
from jaxmon.sampling.parsing import Outcome, menu, parse
from jaxmon.sampling.sampler import Sampling
from models import memory
from models.edits import shift
from models.loading import Model
from models.mesh import DATA, MODEL, fetch

FEWEST = 16  # below this number of rows a step costs about what one row costs: reading the weights
# Arms whose no-CoT answers are asked together; each takes room for another copy of its prompt's states. No data axis of
# 2, 4 or 8 devices divides 7: each device then asks all of them (models/mesh.py), and p10 is that of one device.
TOGETHER = 7
CHAINS = pa.schema(
    [
        ("record", pa.string()),
        ("arm", pa.string()),
        ("chain", pa.int64()),
        ("tokens", pa.list_(pa.int32())),
        ("text", pa.string()),
        ("stopped", pa.bool_()),
        ("outcome", pa.string()),
        ("code", pa.string()),
        ("thought", pa.string()),
    ]
)
ANSWERS = pa.schema(
    [
        ("record", pa.string()),
        ("arm", pa.string()),
        ("target", pa.float64()),  # P(target | options), the share of the options' mass
        ("mass", pa.float64()),  # P(any option), of the whole next-token law
        ("probabilities", pa.list_(pa.float32())),  # per option, in the record's order
    ]
)


@dataclasses.dataclass(frozen=True)
class Drawer:
    """A model with the settings of a run; `extend` is one function object, so that each program compiles once."""

    model: Model
    task: str
    sampling: Sampling
    seed: int
    slots: int  # chains in flight, of one arm or of several together
    size: int  # most chains per shard
    length: int  # most tokens per chain
    bucket: int  # prompts are padded to a multiple of this many tokens

    @functools.cached_property
    def extend(self) -> Extend:
        return functools.partial(self.model.extend, self.model.graphdef)

    @functools.cached_property
    def shift(self) -> Shift:
        return functools.partial(shift, ropes=self.model.config.ropes)

    @functools.cached_property
    def stop(self) -> jax.Array:
        return jnp.asarray(sorted(self.model.stop_ids), jnp.int32)

    @property
    def made_by(self) -> dict[str, str]:
        """The stamp of every table that comes from the model (store.py)."""
        return {"model": self.model.fingerprint}

    @property
    def data(self) -> int:
        """Devices among which chains are dealt out."""
        return 1 if self.model.mesh is None else self.model.mesh.shape[DATA]

    def dealt(self, slots: int) -> int:
        """The largest multiple of the mesh's data axis up to `slots`, at least one per device."""
        return max(1, slots // self.data) * self.data

    @property
    def tail(self) -> tuple[int, ...]:
        """Fewer and fewer slots for the last chains of an arm (`decode.sample`)."""
        dealt = dict.fromkeys(self.dealt(width) for width in halves(self.slots))
        return tuple(width for width in dealt if width < self.slots)

    @functools.cached_property
    def token_bytes(self) -> int:
        """Bytes of keys and values of a token of a chain, on each device that holds the chain."""
        m = self.model
        made = memory.states(m.extend, m.graphdef, m.params)
        return memory.token(made, 1 if m.mesh is None else m.mesh.shape[MODEL])

    def fits(self) -> tuple[bool, str]:
        """Whether weights and chains in flight alone exceed a device, and how many chains should fit, as a sentence."""
        limit, held = memory.limit(jax.local_devices()[0]), memory.weights(self.model.params)
        each = memory.chain(self.token_bytes, self.length, self.model.config.vocab_size)
        need, most = held + self.slots // self.data * each, memory.fit(limit, held, each) * self.data
        said = (
            f"slots = {self.slots} chains of {self.length} tokens take {memory.gib(need)} a device with the weights' "
            f"{memory.gib(held)}, and it has {memory.gib(limit)}; slots = {most:,} should fit"
        )
        return need <= limit, said


@dataclasses.dataclass(frozen=True)
class Arm:
    """An arm whose prompt has been read."""

    record: Record
    name: str
    prompt: prompts.Prompt
    prefix: Prefix


def halves(slots: int) -> tuple[int, ...]:
    """Half the slots, a quarter, … down to FEWEST."""
    return tuple(slots >> k for k in range(1, slots.bit_length()) if slots >> k >= FEWEST)


def open_arm(drawer: Drawer, record: Record, name: str, beside: Arm | None = None) -> Arm:
    """Reads the prompt of one arm; `record` is what the arm's prompt shows.

    Args: beside: another arm of the record; the beginning that the two prompts share is not read again.

    Raises:
      ValueError: prompt, chain and answer do not fit into the model's positions.
    """
    model = drawer.model
    prompt = prompts.prompt(record, drawer.task, model.chat, model.tokenizer)
    longest = max(drawer.length, len(prompt.forced) + max(map(len, prompt.options)))
    if len(prompt.tokens) + longest > model.config.max_positions:
        raise ValueError(
            f"record {record.id}, arm {name}: a prompt of {len(prompt.tokens)} tokens and {longest} more do not fit "
            f"into the {model.config.max_positions} positions of {model.name}"
        )
    base = None if beside is None else (beside.prompt.tokens, beside.prefix)
    return Arm(record, name, prompt, _read(drawer, prompt.tokens, base))


def opener(drawer: Drawer, shown: Mapping[str, Record]) -> Callable[[str], Arm]:
    """What reads the arms of a record (`jaxmon.arms.arms`), each once if at all, the X = 0 prompts after what they
    share with X = 1. An arm is always read in this one way, so that its chains are the same whoever draws them."""

    @functools.cache
    def opened(name: str) -> Arm:
        return open_arm(drawer, shown[name], name, None if name == X1 else opened(X1))

    return opened


def _read(drawer: Drawer, tokens: Sequence[int], base: tuple[Sequence[int], Prefix] | None) -> Prefix:
    """Reads a prompt, after the tokens it shares with `base` where that saves a quarter at least."""
    given, bucket = (drawer.extend, drawer.model.params), drawer.bucket
    if base is not None:
        unlike = (i for i, (a, b) in enumerate(zip(tokens, base[0], strict=False)) if a != b)
        common = next(unlike, min(len(tokens) - 1, len(base[0])))
        rest, slots = tokens[common:], -(-len(tokens) // bucket) * bucket
        quarter = -(-slots // (4 * bucket)) * bucket  # three widths: few programs
        width = -(-len(rest) // quarter) * quarter
        if width < slots:
            return branch(*given, base[1], np.int32(common), *pad(rest, width), slots)
    return read(*given, *pad(tokens, bucket))


def no_cot(drawer: Drawer, arms: Sequence[Arm]) -> list[dict[str, Any]]:
    """T = 0: the forced answer's probabilities over the options, a row of ANSWERS per arm of one record.

    Always TOGETHER at once, filled up with the first: the last bits of p10 do not depend on a run's slots.
    """
    befores = [a.prefix for a in arms]
    plain = [a.prompt.plain for a in arms if a.prompt.plain is not None]
    if plain:  # of one record: all of them or none
        base = (plain[0], _read(drawer, plain[0], None))
        befores = [base[1], *(_read(drawer, tokens, base) for tokens in plain[1:])]
    found = []
    for i in range(0, len(arms), TOGETHER):
        found += _answers(drawer, arms[i : i + TOGETHER], befores[i : i + TOGETHER])
    return found


def _answers(drawer: Drawer, arms: Sequence[Arm], befores: Sequence[Prefix]) -> list[dict[str, Any]]:
    model, prompt = drawer.model, arms[0].prompt
    if any((a.prompt.forced, a.prompt.options) != (prompt.forced, prompt.options) for a in arms):
        raise ValueError(f"record {arms[0].record.id}: its arms' answers are not the same tokens")
    padded = rows([*befores, *[befores[0]] * (TOGETHER - len(arms))])
    tokens, length = pad(prompt.forced, len(prompt.forced))
    forced = read(drawer.extend, model.params, np.repeat(tokens, TOGETHER, 0), length, padded)
    log_p = fetch(
        option_log_probabilities(drawer.extend, model.params, forced, options(prompt.options), model.vocabulary)
    )
    found = []
    for arm, row in zip(arms, log_p[: len(arms)], strict=True):
        if np.isnan(row).any():
            raise ValueError(f"record {arm.record.id}, arm {arm.name}: the model's no-CoT logits are NaN")
        p = np.asarray(jax.nn.softmax(row))
        codes = [o.code for o in arm.record.options]
        found.append(
            {
                "record": arm.record.id,
                "arm": arm.name,
                "target": float(p[codes.index(arm.record.target)]),
                "mass": float(np.exp(row).sum()),
                "probabilities": p,
            }
        )
    return found


class Shard(NamedTuple):
    """A range of an arm's chains, drawn and stored whole."""

    arm: Arm
    first: int
    stop: int


def together(drawer: Drawer, count: int) -> int:
    """How many shards of `count` chains are drawn at once."""
    return arms_of.together(drawer.slots, count)


def draw(drawer: Drawer, shards: Sequence[Shard]) -> list[pa.Table]:
    """T = 1: the chains of shards of one size, at most `together` of them, read: a table of CHAINS each.

    Raises:
      ValueError: the model's logits were NaN within a chain.
      MemoryError: a device's memory was not enough; says how many chains should fit.
    """
    try:
        return _draw(drawer, shards)
    except Exception as error:
        if not out_of_memory(error):
            raise
        raise MemoryError(f"{line(error)}; {drawer.fits()[1]}") from None


def _draw(drawer: Drawer, shards: Sequence[Shard]) -> list[pa.Table]:
    model, count = drawer.model, shards[0].stop - shards[0].first
    many = together(drawer, count)
    padded = [*shards, *[shards[0]] * (many - len(shards))]  # one compilation for fewer shards, too
    ids = np.stack([s.first + np.arange(drawer.size, dtype=np.int32) for s in padded])
    counts = np.array([count] * len(shards) + [0] * (many - len(shards)), np.int32)
    keys = [arm_key(drawer.seed, s.arm.record.id, s.arm.name) for s in padded]
    prefixes = [s.arm.prefix for s in padded]
    settings = {"sampling": drawer.sampling, "length": drawer.length, "vocabulary": model.vocabulary}
    given = (drawer.extend, model.params)
    if many == 1:
        own = (prefixes[0], keys[0], ids[0], counts[0], drawer.stop)
        chains = sample(*given, *own, slots=drawer.slots, tail=drawer.tail, **settings)
        chains = jax.tree.map(lambda a: a[None], chains)
    else:
        names = (stack(prefixes), jnp.stack(keys), ids, counts)
        chains = sample_arms(*given, *names, drawer.stop, slots=drawer.dealt(drawer.slots // many), **settings)
    chains = fetch(chains)
    return [_table(model, shard, jax.tree.map(lambda a, i=i: a[i], chains)) for i, shard in enumerate(shards)]


def _table(model: Model, shard: Shard, chains: Chains) -> pa.Table:
    arm, count = shard.arm, shard.stop - shard.first
    if not chains.finite[:count].all():
        where = shard.first + int(np.argmin(chains.finite[:count]))
        raise ValueError(f"record {arm.record.id}, arm {arm.name}, chain {where}: the model's logits are NaN")
    tokens = [row[:end].tolist() for row, end in zip(chains.tokens[:count], chains.lengths[:count], strict=True)]
    texts = model.tokenizer.decode_batch(tokens, skip_special_tokens=False)
    codes = menu(arm.record.options)
    parsed = [
        parse(text, bool(ended), codes, model.chat) for text, ended in zip(texts, chains.stopped[:count], strict=True)
    ]
    columns = {
        "record": [arm.record.id] * count,
        "arm": [arm.name] * count,
        "chain": range(shard.first, shard.stop),
        "tokens": tokens,
        "text": texts,
        "stopped": chains.stopped[:count],
        "outcome": [str(c.outcome) for c in parsed],
        "code": [c.code for c in parsed],
        "thought": [c.thought for c in parsed],
    }
    return pa.table({field.name: pa.array(columns[field.name], field.type) for field in CHAINS}, CHAINS)


def _save_all(paths: Sequence[Path], tables: Sequence[pa.Table], made_by: Mapping[str, str]) -> None:
    for path, table in zip(paths, tables, strict=True):
        save(path, table, made_by)


def answers(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows of `no_cot` as a table of ANSWERS."""
    return pa.table([pa.array([r[f.name] for r in rows], f.type) for f in ANSWERS], ANSWERS)


class Wanted(NamedTuple):
    """A shard by name, and how its arm is opened if it has to be drawn."""

    record: str
    arm: str
    first: int
    stop: int
    open: Callable[[], Arm]


def fill(drawer: Drawer, root: Path, wanted: Sequence[Wanted]) -> int:
    """Draws the shards that are not on disk, several at once; returns how many chains it had to draw."""
    path = lambda w: rundir.shard(root, w.record, w.arm, w.first, w.stop)
    absent = [wanted[i] for i in hosts.lead(lambda: missing(map(path, wanted)))]
    for size in sorted({w.stop - w.first for w in absent}):
        alike, many = [w for w in absent if w.stop - w.first == size], together(drawer, size)
        for group in (alike[i : i + many] for i in range(0, len(alike), many)):
            tables = draw(drawer, [Shard(w.open(), w.first, w.stop) for w in group])
            hosts.lead(functools.partial(_save_all, [path(w) for w in group], tables, drawer.made_by))
    return sum(w.stop - w.first for w in absent)


def load_shard(
    root: Path,
    record: str,
    arm: str,
    first: int,
    stop: int,
    columns: Sequence[str] = tuple(CHAINS.names),
    makers: Makers | None = None,
    among: Files | None = None,
) -> pa.Table:
    """Reads the chains first … stop - 1 of an arm back.

    Args:
      columns: those to return.
      makers, among: see `store.load`.

    Raises:
      RunError: the file is damaged, another maker's, or holds other chains than its name says.
    """
    file = find(rundir.shard(root, record, arm, first, stop), among)
    needed = dict.fromkeys(("record", "arm", "chain", *columns))
    table = load(file, CHAINS, stop - first, tuple(needed), makers)
    ids = table.column("chain").to_numpy()
    named = [pc.all(pc.equal(table.column(k), v)).as_py() for k, v in (("record", record), ("arm", arm))]
    if not all(named) or not np.array_equal(ids, np.arange(first, stop)):
        raise rundir.RunError(f"{file} does not hold what its name says; {AGAIN}")
    return table.select(list(columns))


def drawn(table: pa.Table) -> list[Drawn]:
    """A shard's chains as far as counting goes."""
    columns = (table.column(name).to_pylist() for name in ("chain", "outcome", "code"))
    return [Drawn(chain, Outcome(outcome), code) for chain, outcome, code in zip(*columns, strict=True)]
