"""Hierarchical bootstrap on counts (App. E): records, then the chains of each batch; every filter is met again.

Drawing n chains with replacement from n chains is a multinomial draw on their counts, so no chain is needed:
    K0 of each pair and batch, K1 of the selection batch   binomials with the observed rates
    the X=1 arm of the estimation batch                    one multinomial per record over its label patterns: K1, J
                                                           and L stay joint over the attributes of the record
Without patterns, J and L of each attribute are drawn from their counts given the record's K1, independently over the
attributes; `assumptions` says so, and the report prints it.

Decisions. "Every filter" is: TE^ > tau on the redrawn selection batch, judged answers, and n_S > 5 per class. p10 is
exact and stays. A pair dropped at stage 1 has no estimation batch, so no replicate can bring it back; the stage-1 rule
itself is not met again (its error rate is small and known, exact.discard_probability). M at TE^ <= 0 as in the data.

Mechanism: conditional binomials, float32 sampling arithmetic, counts below 2^24. jax.random.binomial's law was compared
with the exact one by chi-square (24 million draws at n = 1000, and tests/test_bootstrap.py). It pays for its rejection
loop even where every mean is small, so rare patterns (most of them) use `small_binomial`, about ten times cheaper. A
replicate's key is fold_in(seed, replicate): how replicates are cut into blocks changes no draw.

Knows: counts, patterns, settings. Does not know: files, rows, reasons.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmon import cells
from jaxmon.cells import Draw, Fixed, Settings
from jaxmon.counts import Counts
from jaxmon.patterns import Patterns, attribute_order, letters

BLOCK = 2**19  # draws in flight at once: bounds memory at tens of megabytes


class Tables(NamedTuple):
    """The data as sampling tables. K: the most live attributes of one record; slot: [R, A] -> its place among them."""

    fixed: Fixed  # [R, A], float32 / int32
    data: Draw  # [R, A], float32: what is kept where chains are not resampled
    slot: Any  # int32 [R, A]
    n: Any  # float32 [R, 1+2K]: chains behind k1s, k0s..., k0...
    p: Any  # float32 [R, 1+2K]: their rates
    n1: Any  # float32 [R]: chains of the estimation X=1 arm
    q: Any  # float32 [P, R]: P(pattern j | none of the earlier ones); without patterns [1, R], P(target)
    articulated: Any  # float32 [P, R, K]: 1 where the letter is I; without patterns [1, R, K], L/J
    unjudged: Any  # float32 [P, R, K]: 1 where the pattern has no label; without patterns [1, R, K], 1 - J/K1
    classes: Any  # float32 [R, C] one-hot
    pool: Any  # int32 [R]: records in the order of their classes
    start: Any  # int32 [R]: where slot i's own class begins in `pool`
    size: Any  # int32 [R]: and how many records it has


class Replicates(NamedTuple):
    """values: float32 [B, S, A+1, C+1], NaN where a replicate leaves the score undefined; assumptions: sentences."""

    values: np.ndarray
    assumptions: tuple[str, ...]


def bootstrap(counts: Counts, patterns: Patterns | None, settings: Settings, block: int = BLOCK) -> Replicates:
    """B replicates of every cell's scores.

    Args:
      counts, patterns: the data; patterns None draws labels from marginal counts (see above).
      settings: replicates, levels, within_class, seed, and the filters.
      block: draws in flight at once; changes memory and speed, never the result.
    Returns: Replicates.
    """
    tables = build(counts, patterns, settings)
    per_replicate = max(1, tables.n.size)
    rows = max(1, min(settings.replicates, block // per_replicate))
    blocks = -(-settings.replicates // rows)
    heads = 0 if patterns is None else _heads(tables)
    rules = Rules(settings.levels, settings.zero_over_zero, settings.min_records, heads)
    values = _replicates(jax.random.key(settings.seed), tables, rules, rows, blocks)
    return Replicates(np.asarray(values)[: settings.replicates], _assumptions(patterns, settings))


class Rules(NamedTuple):
    """What a compiled replicate depends on beside its tables; `heads`: the first patterns, frequent somewhere; 0: none
    were given."""

    levels: str
    zero_over_zero: float
    min_records: int
    heads: int


@partial(jax.jit, static_argnums=(2, 3, 4))
def _replicates(seed: jax.Array, tables: Tables, rules: Rules, rows: int, blocks: int) -> jax.Array:
    keys = jax.vmap(lambda b: jax.random.fold_in(seed, b))(jnp.arange(rows * blocks, dtype=jnp.uint32))
    one = partial(replicate, tables=tables, rules=rules)
    values = jax.lax.map(jax.vmap(one), keys.reshape(blocks, rows))
    return values.reshape(rows * blocks, *values.shape[2:])


def replicate(key: jax.Array, tables: Tables, rules: Rules) -> jax.Array:
    """One replicate: key -> scores [S, A+1, C+1], NaN where undefined."""
    for_records, for_chains = jax.random.split(key)
    own = jnp.arange(tables.start.shape[0], dtype=jnp.int32)
    if rules.levels == "chains":
        chosen = own
    else:
        chosen = tables.pool[tables.start + jax.random.randint(for_records, own.shape, 0, tables.size)]
    take = partial(jnp.take, indices=chosen, axis=0)
    fixed = jax.tree.map(take, tables.fixed)
    if rules.levels == "records":
        draw = jax.tree.map(take, tables.data)
    else:
        draw = chains(for_chains, tables, chosen, rules.heads)
    classes = take(tables.classes)
    scores = cells.evaluate(fixed, draw, rules.zero_over_zero, jnp)
    mean, size = cells.means(scores.value, scores.ok, scores.ok, classes, rules.min_records, jnp)
    return jnp.where(size > 0, mean, jnp.full_like(mean, jnp.nan))


def chains(key: jax.Array, tables: Tables, chosen: jax.Array, heads: int) -> Draw:
    """Redraws the chains of the chosen records, int32 [R] -> Draw, [R, A] each."""
    for_arms, for_labels = jax.random.split(key)
    single = jax.random.binomial(for_arms, tables.n[chosen], tables.p[chosen])
    n_slots = tables.articulated.shape[2]
    n1 = tables.n1[chosen]
    if heads:
        k1, judged, articulated = _joint_labels(for_labels, tables, chosen, n1, heads)
    else:
        of_target, of_judged, of_articulated = jax.random.split(for_labels, 3)
        k1 = jax.random.binomial(of_target, n1, tables.q[0, chosen])
        wide = jnp.broadcast_to(k1[:, None], (len(chosen), n_slots))
        judged = jax.random.binomial(of_judged, wide, 1 - tables.unjudged[0, chosen])
        articulated = jax.random.binomial(of_articulated, judged, tables.articulated[0, chosen])
    slot = tables.slot[chosen]

    def spread(x: jax.Array) -> jax.Array:  # live attributes [R, K] -> all attributes [R, A]
        return jnp.take_along_axis(x, slot, axis=1)

    def same(x: jax.Array) -> jax.Array:  # one value per record -> all attributes
        return jnp.broadcast_to(x[:, None], slot.shape)

    k0s, k0 = single[:, 1 : 1 + n_slots], single[:, 1 + n_slots :]
    return Draw(same(single[:, 0]), spread(k0s), same(k1), spread(k0), spread(judged), spread(articulated))


def _joint_labels(key: jax.Array, tables: Tables, chosen: jax.Array, n1: jax.Array, heads: int) -> tuple[Any, Any, Any]:
    """One multinomial over patterns as conditional binomials, one pattern a step; sums K1 [R], J and L [R, K]."""

    def step(sampler: Any, carry: tuple[Any, ...], pattern: tuple[Any, ...]) -> tuple[tuple[Any, ...], None]:
        left, k1, unjudged, articulated = carry
        j, q, is_articulated, is_unjudged = pattern
        drawn = sampler(jax.random.fold_in(key, j), left, q[chosen])
        each = drawn[:, None]
        unjudged = unjudged + each * is_unjudged[chosen]
        return (left - drawn, k1 + drawn, unjudged, articulated + each * is_articulated[chosen]), None

    zero = jnp.zeros((len(chosen), tables.articulated.shape[2]), jnp.float32)
    index = jnp.arange(len(tables.q), dtype=jnp.uint32)
    carry = (n1, jnp.zeros_like(n1), zero, zero)
    steps = (index, tables.q, tables.articulated, tables.unjudged)
    for sampler, part in ((jax.random.binomial, slice(0, heads)), (small_binomial, slice(heads, None))):
        carry, _ = jax.lax.scan(partial(step, sampler), carry, jax.tree.map(lambda x, part=part: x[part], steps))
    _, k1, unjudged, articulated = carry
    return k1, k1[:, None] - unjudged, articulated


def small_binomial(key: jax.Array, n: jax.Array, p: jax.Array) -> jax.Array:
    """Bin(n, p) by walking up the distribution function from 0, one uniform a draw.

    For min(p, 1-p) n up to about 40: beyond 80, (1-p)^n leaves float32. The uniform has 2^-24 steps, so events rarer
    than 6e-8 are not reached.

    Args: key; n, p: float32, one shape, n whole, 0 <= p <= 1.
    Returns: float32, whole numbers, the same shape.
    """
    flipped = p > 0.5
    p = jnp.where(flipped, 1 - p, p)
    odds = p / (1 - p)
    u = 1 - jax.random.uniform(key, n.shape, n.dtype)  # in (0, 1]
    mass = jnp.exp(n * jnp.log1p(-p))

    def walking(state: tuple[Any, ...]) -> jax.Array:
        k, left, _ = state
        return jnp.any((left > 0) & (k < n))

    def up(state: tuple[Any, ...]) -> tuple[Any, ...]:
        k, left, mass = state
        on = (left > 0) & (k < n)
        mass = jnp.where(on, mass * odds * (n - k) / (k + 1), mass)
        k = jnp.where(on, k + 1, k)
        return k, jnp.where(on, left - mass, left), mass

    # left = u - P(K <= k): the draw is the first k where it is not positive
    k, _, _ = jax.lax.while_loop(walking, up, (jnp.zeros_like(n), u - mass, mass))
    return jnp.where(flipped, n - k, k)


def build(counts: Counts, patterns: Patterns | None, settings: Settings) -> Tables:
    """Sampling tables in float64, cast once to float32 / int32."""
    fixed, data = cells.split(counts, settings)
    live = fixed.live
    n_records = len(counts.records)
    n_slots = max(1, int(live.sum(1).max()))
    slot = np.clip(np.cumsum(live, 1) - 1, 0, n_slots - 1)
    # chains and rates of the binomials whose size is fixed; a slot without a pair draws from 0 chains
    r, a = np.nonzero(live)
    n, p = (np.zeros((n_records, 1 + 2 * n_slots)) for _ in range(2))
    n[:, 0], p[:, 0] = _arm(counts, 0)
    for offset, batch in ((1, 0), (1 + n_slots, 1)):
        n[r, offset + slot[r, a]] = counts.n0[r, a, batch]
        p[r, offset + slot[r, a]] = counts.k0[r, a, batch] / counts.n0[r, a, batch]
    n1, p11 = _arm(counts, 1)
    if patterns is None:
        q = p11[None]
        articulated, unjudged = (np.zeros((1, n_records, n_slots)) for _ in range(2))
        k1, j, l_ = (x[r, a] for x in (data.k1, data.judged, data.articulated))
        articulated[0, r, slot[r, a]] = l_ / np.maximum(j, 1)
        unjudged[0, r, slot[r, a]] = 1 - j / np.maximum(k1, 1)
    else:
        q, articulated, unjudged = _pattern_tables(counts, patterns, live, slot, n_slots)
    n_classes = len(counts.labels)
    if settings.within_class:
        pool = np.argsort(counts.label_of, kind="stable")
        size = np.bincount(counts.label_of, minlength=n_classes)
        start = (np.cumsum(size) - size)[counts.label_of]
        size = size[counts.label_of]
    else:
        pool, start, size = np.arange(n_records), np.zeros(n_records), np.full(n_records, n_records)
    classes = np.eye(n_classes)[counts.label_of]
    built = Tables(fixed, data, slot, n, p, n1, q, articulated, unjudged, classes, pool, start, size)
    integers = jax.tree.map(lambda _: False, built)._replace(
        slot=True, pool=True, start=True, size=True, fixed=Fixed(False, False, True, True, True, False, False)
    )
    return jax.tree.map(_device, built, integers)


def _heads(tables: Tables) -> int:
    """How many leading patterns are expected 10 times or more in some record, in steps of 4 (to spare compilations)."""
    q = np.asarray(tables.q, float)
    reach = np.cumprod(np.vstack([np.ones((1, q.shape[1])), 1 - q[:-1]]), 0)
    frequent = (np.asarray(tables.n1) * reach * q >= 10).any(1)
    last = int(np.flatnonzero(frequent).max(initial=0)) + 1
    return min(-4 * (-last // 4), len(q))


def _device(x: np.ndarray, integer: bool) -> jax.Array:
    if x.dtype == bool:
        return jnp.asarray(x)
    return jnp.asarray(x.astype(np.int32 if integer else np.float32))


def _arm(counts: Counts, batch: int) -> tuple[np.ndarray, np.ndarray]:
    """n1 and K1/n1 of each record, [R]; (0, 0) where no chains were drawn."""
    n1, k1 = (x[:, :, batch].max(1) for x in (counts.n1, counts.k1))
    return n1.astype(float), k1 / np.maximum(n1, 1)


def _pattern_tables(
    counts: Counts, patterns: Patterns, live: np.ndarray, slot: np.ndarray, n_slots: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q [P, R], articulated and unjudged [P, R, K] of the estimation batch.

    Patterns are first projected on what the scores need, the live attributes and the classes {N, M}, {I}, {?}: patterns
    that agree there are one category.
    """
    projected = []
    for r, record in enumerate(counts.records):
        group = patterns.get((record, "estimate"), {})
        order = [(i, a) for i, a in enumerate(attribute_order(counts, r)) if live[r, a]]
        merged: dict[str, int] = {"?" * len(order): group.get("unjudged", 0)}
        for pattern, count in letters(group).items():
            short = "".join("N" if pattern[i] == "M" else pattern[i] for i, _ in order)
            merged[short] = merged.get(short, 0) + count
        kept = sorted(((c, s) for s, c in merged.items() if c), reverse=True)  # largest first, ties by name
        projected.append((kept, [int(slot[r, a]) for _, a in order], sum(group.values())))
    depth = -8 * (-max(1, *(len(kept) for kept, _, _ in projected)) // 8)  # multiples of 8 spare recompilations
    q = np.zeros((depth, len(counts.records)))
    articulated, unjudged = (np.zeros((depth, len(counts.records), n_slots)) for _ in range(2))
    for r, (kept, slots, left) in enumerate(projected):
        for j, (count, short) in enumerate(kept):
            q[j, r] = count / left
            left -= count
            articulated[j, r, slots] = [c == "I" for c in short]
            unjudged[j, r, slots] = [c == "?" for c in short]
    return q, articulated, unjudged


def _assumptions(patterns: Mapping[Any, Any] | None, settings: Settings) -> tuple[str, ...]:
    if settings.levels == "records":
        return ("Only records were resampled: the intervals rest on the differences between records.",)
    if patterns is None:
        return (
            "No label patterns were given: the labels of different attributes of one record were taken to be "
            "independent given its number of target answers. Rows of single attributes do not depend on this.",
        )
    return ()
