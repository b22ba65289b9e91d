"""The hierarchical bootstrap on counts (App. E): records, then the chains of each batch; every filter is met again.

Drawing n chains with replacement from n chains is a multinomial draw on their counts, so no chain is needed. With
label patterns the X=1 arm of the estimation batch is one multinomial per record, which keeps K1, J and L joint over the
record's attributes; from marginal counts alone the labels of different attributes are independent given K1
(bootstrap_tables.py), `assumptions` says so, and the report prints it. A record drawn twice in a replicate has its
chains drawn twice, independently.

Decisions. "Every filter" is: TE^ > tau on the redrawn selection batch, judged answers, and n_S > 5 per class. p10 is
exact and stays. A pair dropped at stage 1 has no estimation batch, so no replicate can bring it back; the stage-1 rule
itself is not met again (its error rate is small and known, exact.discard_probability). M at TE^ <= 0 as in the data.

Mechanism: record by record, all copies of a record in all replicates of a block at once. Frequent binomials come from
tables (alias.py; laws exact to 2^-31), rare patterns by inversion (`small_binomial`); counts below 2^24. The random
words of a copy are named by seed, replicate and place in the replicate: how replicates are cut into blocks changes no
draw.
Blocks are independent programs, each waited for in a thread of its own: dispatched from one thread, they run one after
the other on a CPU while a second core spins. Time and memory: tools/bench_bootstrap.py.

Knows: tables, settings. Does not know: files, rows, reasons.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmon.counting.counts import Counts
from jaxmon.counting.patterns import Patterns
from jaxmon.estimation import alias, cells, judge_error, threefry
from jaxmon.estimation.bootstrap_tables import LEFT, Layout, Steps, Tables, build
from jaxmon.estimation.cells import Draw, Settings
from jaxmon.estimation.scores import SCORES

JUDGE = 2  # folds the records' key into that of the judge's error rates
BLOCK = 2500  # replicates of a block: tens of megabytes, and a record's copies fit the cache


class Replicates(NamedTuple):
    """values: float32 [B, S, A+1, C+1], NaN where a replicate leaves the score undefined; assumptions: sentences."""

    values: np.ndarray
    assumptions: tuple[str, ...]


class Rules(NamedTuple):
    """What a compiled block depends on beside its tables (fields of Settings, the tables' layout, replicates)."""

    levels: str
    zero_over_zero: float
    min_records: int
    layout: Layout
    rows: int


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
      block: replicates in flight at once; changes memory and speed, no draw (means may differ in float32's last bit).
      error: of the judge, to correct for; every replicate draws its rates anew.
    Returns: Replicates.
    """
    made, layout = build(counts, patterns, settings)
    tables = on_device(made)
    # Small studies in powers of two, so that they share compiled blocks whatever their B.
    rows = min(block, 1 << (settings.replicates - 1).bit_length())
    rules = Rules(settings.levels, settings.zero_over_zero, settings.min_records, layout, rows)
    for_records, for_chains = jax.random.split(jax.random.key(settings.seed))
    seed = jax.random.key_data(for_chains)
    for_error = jax.random.fold_in(for_records, JUDGE)
    betas = None if error is None else jnp.asarray(error.betas)

    def one(first: int) -> np.ndarray:
        chosen = np.asarray(choose(for_records, np.uint32(first), tables, settings.levels, rows))
        return np.asarray(replicates(seed, np.uint32(first), copies(chosen), tables, rules, for_error, betas))

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        blocks = list(threads.map(one, range(0, settings.replicates, rows)))
    values = np.concatenate(blocks)[: settings.replicates]
    return Replicates(values, _assumptions(patterns, settings))


@partial(jax.jit, static_argnums=(3, 4))
def choose(key: jax.Array, first: jax.Array, tables: Tables, levels: str, rows: int) -> jax.Array:
    """The records of the replicates first ... first + rows - 1: int32 [rows, R]."""
    if levels == "chains":
        return jnp.broadcast_to(jnp.arange(len(tables.pool), dtype=jnp.int32), (rows, len(tables.pool)))

    def one(replicate: jax.Array) -> jax.Array:
        at = jax.random.randint(jax.random.fold_in(key, replicate), tables.size.shape, 0, tables.size)
        return tables.pool[tables.start + at]

    return jax.vmap(one)(first + jnp.arange(rows, dtype=jnp.uint32))


def copies(chosen: np.ndarray) -> np.ndarray:
    """Where each record was chosen: int32 [R, copies], replicate * R + place, padded with rows * R.

    Replicates differ in how often they hold a record, but all of a block hold it about as often as they are many.
    """
    n_records = chosen.shape[1]
    flat = chosen.ravel()
    order = np.argsort(flat.astype(np.uint16) if n_records < 2**16 else flat, kind="stable")
    often = np.bincount(flat, minlength=n_records)
    room = 256 * -(-int(often.max()) // 256)  # steps of 256 spare recompilations
    found = np.full((n_records, room), flat.size, np.int32)
    found[np.arange(room) < often[:, None]] = order
    return found


@partial(jax.jit, static_argnums=4)
def replicates(
    seed: jax.Array,
    first: jax.Array,
    places: jax.Array,
    tables: Tables,
    rules: Rules,
    for_error: jax.Array,
    betas: jax.Array | None = None,
) -> jax.Array:
    """Scores of a block of replicates, float32 [rows, S, A+1, C+1], from the places of every record's copies."""
    lay, n_records = rules.layout, len(places)
    rates = None
    if betas is not None:  # the judge's error rates, a pair per replicate
        keys = jax.vmap(partial(jax.random.fold_in, for_error))(first + jnp.arange(rules.rows, dtype=jnp.uint32))
        rates = jax.vmap(partial(judge_error.drawn, betas=betas))(keys)
    sums = jnp.zeros((lay.attributes * lay.classes, rules.rows, 2 * len(SCORES)), jnp.float32)

    def of_record(r: jax.Array, sums: jax.Array) -> jax.Array:
        at = places[r]
        owner = at // n_records
        copy = first * jnp.uint32(n_records) + at.astype(jnp.uint32)  # a copy is named by replicate and place
        one, zero = chains(seed, copy, tables, lay, r) if rules.levels != "records" else (None, None)

        def of_pair(i: jax.Array, sums: jax.Array) -> jax.Array:
            fixed, data = jax.tree.map(lambda x: x[i][None], (tables.fixed, tables.data))
            if one is not None and zero is not None:
                data = pair(one, zero, lay, i - tables.first[r])
            data = jax.tree.map(lambda x: jnp.broadcast_to(x, at.shape), data)
            if rates is not None:
                se, f = (x.at[owner].get(mode="clip") for x in rates)
                data = judge_error.corrected(data, se, f, jnp)
            scores = cells.evaluate(fixed, data, rules.zero_over_zero, jnp)
            value = jnp.where(scores.ok, scores.value, jnp.float32(0))
            both = jnp.concatenate([value, scores.ok.astype(jnp.float32)]).T
            return sums.at[tables.cell[i], owner].add(both, mode="drop")

        return jax.lax.fori_loop(tables.first[r], tables.first[r + 1], of_pair, sums)

    sums = jax.lax.fori_loop(0, n_records, of_record, sums)
    total, size = jnp.split(sums.transpose(1, 2, 0).reshape(rules.rows, -1, lay.attributes, lay.classes), 2, axis=1)

    def pool(total: jax.Array, size: jax.Array) -> jax.Array:
        mean, size = cells.pooled_means(total, size, size, rules.min_records, jnp)
        return jnp.where(size > 0, mean, jnp.full_like(mean, jnp.nan))

    return jax.vmap(pool)(total, size)


class Chains(NamedTuple):
    """The X=1 arm of a record's copies, n of them: k1s, k1 float32 [n]; counters uint32 [W, n], packed."""

    k1s: jax.Array
    k1: jax.Array
    counters: jax.Array


def chains(seed: jax.Array, copy: jax.Array, tables: Tables, layout: Layout, r: jax.Array) -> tuple[Chains, jax.Array]:
    """Redraws record r for its copies, uint32 [n]: X=1 chains; K0 select and estimate of its pairs [pairs, 2, n]."""
    everyone = jnp.broadcast_to(tables.n1[r], copy.shape)
    k1s = alias.draw(tables.one, r, words(seed, copy, "one", jnp.int32(0), 1)[0][0])

    def walk(name: str, steps: Steps, sampler: Any, carry: Any) -> Any:
        def settle(i: jax.Array, carry: Any) -> Any:
            """Books the draw of step i. One step late, because XLA computes a value anew for each of its consumers."""
            left, drawn, counters = carry
            left = jnp.where(steps.source[i] == LEFT, left - drawn, left)
            return left, drawn, counters + drawn.astype(jnp.uint32)[None] * steps.adds[i][:, None]

        def one(i: jax.Array, carry: Any) -> Any:
            left, previous, counters = settle(i - 1, carry)
            n = jax.lax.select_n(steps.source[i], left, everyone - left, previous)
            return left, sampler(partial(words, seed, copy, name, i - steps.first[r]), n, i), counters

        if not len(steps.q):
            return carry
        first, stop = steps.first[r], steps.first[r + 1]
        left, _, counters = carry
        return settle(stop - 1, jax.lax.fori_loop(first, stop, one, (left, jnp.zeros_like(left), counters)))

    def tabled(word: Any, n: jax.Array, i: jax.Array) -> jax.Array:
        a, b = word(1 + len(tables.windows.digits))
        return alias.draw_window(tables.windows, i, n, [*a, *b])

    def inverted(word: Any, n: jax.Array, i: jax.Array) -> jax.Array:
        return small_binomial(threefry.unit(word(1)[0][0]), n, jnp.broadcast_to(tables.rare.q[i], n.shape))

    blank = jnp.zeros((tables.frequent.adds.shape[1], len(copy)), jnp.uint32)
    carry = walk("frequent", tables.frequent, tabled, (everyone, everyone, blank))
    left, _, counters = walk("rare", tables.rare, inverted, carry)

    def arms(i: jax.Array, found: jax.Array) -> jax.Array:
        place = i - tables.first[r]
        a, b = words(seed, copy, "zero", place, 2)
        k0s, k0 = alias.draw(tables.zero, i, a[0]), alias.draw(tables.zero, i + len(tables.cell), b[0])
        return found.at[place].set(jnp.stack([k0s, k0]))

    zero = jnp.zeros((layout.pairs, 2, len(copy)), jnp.float32)
    zero = jax.lax.fori_loop(tables.first[r], tables.first[r + 1], arms, zero)
    return Chains(k1s, everyone - left, counters), zero


def pair(one: Chains, zero: jax.Array, layout: Layout, place: jax.Array) -> Draw:
    """The counts of pair number `place` of a record."""
    each = 32 // layout.bits

    def counter(c: jax.Array) -> jax.Array:
        shifted = one.counters[c // each] >> ((c % each) * layout.bits).astype(jnp.uint32)
        return (shifted & jnp.uint32((1 << layout.bits) - 1)).astype(jnp.float32)

    judged = counter(layout.pairs + place) if layout.judged else one.k1
    return Draw(one.k1s, zero[place, 0], one.k1, zero[place, 1], judged, counter(place))


KINDS = ("one", "zero", "frequent", "rare")


def words(seed: jax.Array, copy: jax.Array, kind: str, number: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    """The random words of draw `number` of a kind, for every copy, uint32 [n]; no two draws share one.

    Returns: two arrays [P, n], 2P >= count words a copy.
    """
    pairs = -(-count // 2)
    low = (number * pairs + jnp.arange(pairs, dtype=jnp.int32)).astype(jnp.uint32) * jnp.uint32(len(KINDS))
    return threefry.words(seed, copy[None], low[:, None] + jnp.uint32(KINDS.index(kind)))


def small_binomial(u: jax.Array, n: jax.Array, p: jax.Array) -> jax.Array:
    """Bin(n, p) by walking up the distribution function from 0, one uniform a draw.

    For min(p, 1-p) n up to about 40: beyond 80, (1-p)^n leaves float32. The uniform has 2^-24 steps, so events rarer
    than 6e-8 are not reached.

    Args: u: uniform in (0, 1]; n, p: float32, one shape, n whole, 0 <= p <= 1.
    Returns: float32, whole numbers, the same shape.
    """
    flipped = p > 0.5
    p = jnp.where(flipped, 1 - p, p)
    odds = p / (1 - p)
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
    """Casts the tables once: indices and the filter to int32, packed words and truth values stay, the rest float32."""
    whole = {"first", "cell", "pool", "start", "size", "m1", "m0", "need", "source"}

    def cast(path: Any, x: np.ndarray) -> jax.Array:
        same = x.dtype in (bool, np.uint32)
        return jnp.asarray(x if same else x.astype(np.int32 if path[-1].name in whole else np.float32))

    return jax.tree_util.tree_map_with_path(cast, tables)


def _assumptions(patterns: Patterns | None, settings: Settings) -> tuple[str, ...]:
    if settings.levels == "records":
        return ("Only records were resampled: the intervals rest on the differences between records.",)
    if patterns is None:
        return (
            "No label patterns were given: the labels of different attributes of one record were taken to be "
            "independent given its number of target answers. Rows of single attributes do not depend on this.",
        )
    return ()
