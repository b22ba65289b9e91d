"""Hierarchical bootstrap on counts (App. E): records, then the chains of each batch; every filter is met again.

Drawing n chains with replacement from n chains is a multinomial draw on their counts, so no chain is needed. With
label patterns the X=1 arm of the estimation batch is one multinomial per record, which keeps K1, J and L joint over the
record's attributes; from marginal counts alone the labels of different attributes are independent given K1
(bootstrap_tables.py), `assumptions` says so, and the report prints it.

Decisions. "Every filter" is: TE^ > tau on the redrawn selection batch, judged answers, and n_S > 5 per class. p10 is
exact and stays. A pair dropped at stage 1 has no estimation batch, so no replicate can bring it back; the stage-1 rule
itself is not met again (its error rate is small and known, exact.discard_probability). M at TE^ <= 0 as in the data.

Mechanism: conditional binomials, float32 sampling arithmetic, counts below 2^24. jax.random.binomial's law was compared
with the exact one by chi-square (24 million draws at n = 1000, and tests/test_bootstrap.py). It pays for its rejection
loop even where every mean is small, so rare patterns (most of them) use `small_binomial`, several times cheaper. A
replicate's key is fold_in(seed, replicate): how replicates are cut into blocks changes no draw.

Knows: tables, settings. Does not know: files, rows, reasons.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmon import cells, judge_error
from jaxmon.bootstrap_tables import FIXED, LEFT, PREVIOUS, TARGET, Steps, Tables, build
from jaxmon.cells import Draw, Fixed, Settings
from jaxmon.counts import Counts
from jaxmon.patterns import Patterns

JUDGE = 2  # folds a replicate's key into that of its judge's error rates
BLOCK = 2**19  # draws in flight at once: bounds memory at tens of megabytes


class Replicates(NamedTuple):
    """values: float32 [B, S, A+1, C+1], NaN where a replicate leaves the score undefined; assumptions: sentences."""

    values: np.ndarray
    assumptions: tuple[str, ...]


class Rules(NamedTuple):
    """What a compiled replicate depends on beside its tables (fields of Settings)."""

    levels: str
    zero_over_zero: float
    min_records: int


def bootstrap(
    counts: Counts,
    patterns: Patterns | None,
    settings: Settings,
    block: int = BLOCK,
    error: judge_error.JudgeError | None = None,
) -> Replicates:
    """B replicates of every cell's scores.

    Args:
      counts, patterns: the data; patterns None draws labels from marginal counts (see above).
      settings: replicates, levels, within_class, seed, and the filters.
      block: draws in flight at once; changes memory and speed, no draw (means may differ in float32's last bit).
      error: of the judge, to correct for; every replicate draws its rates anew.
    Returns: Replicates.
    """
    tables = on_device(build(counts, patterns, settings))
    rules = Rules(settings.levels, settings.zero_over_zero, settings.min_records)
    # Powers of two, so that studies of one shape share one compiled block whatever their B.
    most = max(1, block // tables.frequent.n[: 1 + 2 * tables.frequent.judged.shape[2]].size)
    rows = 1 << min(most.bit_length() - 1, (settings.replicates - 1).bit_length())
    # On CPUs, LLVM's first optimisation level halves the time to compile and costs no measurable speed.
    options = {"xla_backend_optimization_level": 1} if jax.default_backend() == "cpu" else None
    run = jax.jit(_block, static_argnums=(3, 4), compiler_options=options)
    seed = jax.random.key(settings.seed)
    betas = None if error is None else jnp.asarray(error.betas)
    blocks = [run(seed, np.uint32(b), tables, rules, rows, betas) for b in range(0, settings.replicates, rows)]
    values = np.concatenate([np.asarray(b) for b in blocks])[: settings.replicates]
    return Replicates(values, _assumptions(patterns, settings))


def _block(
    seed: jax.Array, first: jax.Array, tables: Tables, rules: Rules, rows: int, betas: jax.Array | None
) -> jax.Array:
    """Replicates first ... first + rows - 1."""
    keys = jax.vmap(partial(jax.random.fold_in, seed))(first + jnp.arange(rows, dtype=jnp.uint32))
    return jax.vmap(partial(replicate, tables=tables, rules=rules, betas=betas))(keys)


def replicate(key: jax.Array, tables: Tables, rules: Rules, betas: jax.Array | None = None) -> jax.Array:
    """One replicate: key -> scores [S, A+1, C+1], NaN where undefined."""
    for_records, for_chains = jax.random.split(key)
    chosen = jnp.arange(tables.start.shape[0], dtype=jnp.int32)
    if rules.levels != "chains":
        chosen = tables.pool[tables.start + jax.random.randint(for_records, chosen.shape, 0, tables.size)]
    take = partial(jnp.take, indices=chosen, axis=0)
    fixed, classes = jax.tree.map(take, tables.fixed), take(tables.classes)
    draw = jax.tree.map(take, tables.data) if rules.levels == "records" else chains(for_chains, tables, chosen)
    if betas is not None:
        draw = judge_error.corrected(draw, *judge_error.drawn(jax.random.fold_in(key, JUDGE), betas), jnp)
    scores = cells.evaluate(fixed, draw, rules.zero_over_zero, jnp)
    mean, size = cells.means(scores.value, scores.ok, scores.ok, classes, rules.min_records, jnp)
    return jnp.where(size > 0, mean, jnp.full_like(mean, jnp.nan))


def chains(key: jax.Array, tables: Tables, chosen: jax.Array) -> Draw:
    """Redraws the chains of the chosen records, int32 [R] -> Draw, [R, A] each."""
    n_slots = tables.frequent.judged.shape[2]
    nothing = jnp.zeros_like(tables.n1)
    of_slots = jnp.zeros((len(chosen), n_slots), jnp.float32)
    carry = (tables.n1[chosen], nothing, nothing, of_slots, of_slots)
    samplers = ((jax.random.binomial, tables.frequent), (small_binomial, tables.rare))
    arms = []
    for part, (sampler, steps) in enumerate(samplers):
        if len(steps.source):
            walk = partial(_step, sampler, jax.random.fold_in(key, part), chosen)
            carry, drawn = jax.lax.scan(walk, carry, (jnp.arange(len(steps.source), dtype=jnp.uint32), steps))
            arms.append(drawn)
    _, k1, _, judged, articulated = carry
    k1s, k0s, k0 = jnp.split(arms[0][: 1 + 2 * n_slots].T, (1, 1 + n_slots), axis=1)
    slot = tables.slot[chosen]
    k0s, k0, judged, articulated = (jnp.take_along_axis(x, slot, axis=1) for x in (k0s, k0, judged, articulated))
    k1s, k1 = (jnp.broadcast_to(x, slot.shape) for x in (k1s, k1[:, None]))
    return Draw(k1s, k0s, k1, k0, judged, articulated)


def _step(
    sampler: Any, key: jax.Array, chosen: jax.Array, carry: tuple[Any, ...], now: tuple[jax.Array, Steps]
) -> tuple[tuple[Any, ...], jax.Array]:
    """One binomial of every chosen record (see bootstrap_tables.py)."""
    left, target, previous, judged, articulated = carry
    j, step = now
    sources = {FIXED: step.n[chosen], LEFT: left, TARGET: target, PREVIOUS: previous}
    n = jax.lax.select_n(step.source, *(sources[i] for i in range(4)))
    drawn = sampler(jax.random.fold_in(key, j), n, step.q[chosen])
    left = jnp.where(step.source == LEFT, left - drawn, left)
    each = drawn[:, None]
    judged, articulated = judged + each * step.judged[chosen], articulated + each * step.articulated[chosen]
    return (left, target + step.adds_target * drawn, drawn, judged, articulated), drawn


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


def on_device(tables: Tables) -> Tables:
    """Casts the tables once: whole-number fields to int32, truth values stay, everything else to float32."""
    fixed = Fixed(
        *(_cast(x, name in ("m1", "m0", "need")) for name, x in zip(Fixed._fields, tables.fixed, strict=True))
    )
    cast = jax.tree.map(partial(_cast, whole=False), tables._replace(fixed=Fixed(*[np.zeros(0)] * len(Fixed._fields))))
    whole = {name: _cast(getattr(tables, name), True) for name in ("slot", "pool", "start", "size")}
    steps = {
        name: getattr(cast, name)._replace(source=_cast(getattr(tables, name).source, True))
        for name in ("frequent", "rare")
    }
    return cast._replace(fixed=fixed, **whole, **steps)


def _cast(x: np.ndarray, whole: bool) -> jax.Array:
    return jnp.asarray(x if x.dtype == bool else x.astype(np.int32 if whole else np.float32))


def _assumptions(patterns: Patterns | None, settings: Settings) -> tuple[str, ...]:
    if settings.levels == "records":
        return ("Only records were resampled: the intervals rest on the differences between records.",)
    if patterns is None:
        return (
            "No label patterns were given: the labels of different attributes of one record were taken to be "
            "independent given its number of target answers. Rows of single attributes do not depend on this.",
        )
    return ()
