"""From a prompt to n chains: read it once, then one compiled loop whose slots are refilled as chains end.

Knows: prefixes (a context and what comes next), chains, slots, another prompt shown for a while. Does not know: text,
arms, answers, any model family; a model is the pair of `extend` (a pure function) and its parameters.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jax.typing import ArrayLike

from jaxmon.sampling.keys import draw_key
from jaxmon.sampling.sampler import Sampling, draw, law
from models.context import Context, Segment, empty, write
from models.edits import cut, show

Array = jax.Array
Extend = Callable[..., tuple[Array, Segment]]  # (params, tokens, positions, context, valid, at) -> (logits, segment)
Shift = Callable[[Segment, Array], Segment]  # (segment, distance int32 [1|B]) -> the same states so much further on


@struct.dataclass
class Prefix:
    """What a model has read: its states, the logits of the next token, and the next token's position.

    Attributes:
      context: segments of batch 1.
      logits: float32 [1, V].
      length: int32 [], tokens read = the next token's position (padding does not count).
    """

    context: Context
    logits: Array
    length: Array


@struct.dataclass
class Chains:
    """n sampled chains, in the order of their ids.

    Attributes:
      tokens: int32 [n, length], zero past each chain's end.
      lengths: int32 [n], tokens drawn, the stop token included.
      stopped: bool [n], False where the length limit cut the chain.
      finite: bool [n], False where a logit of the chain's steps was NaN.
    """

    tokens: Array
    lengths: Array
    stopped: Array
    finite: Array


def pad(ids: Sequence[int], bucket: int) -> tuple[np.ndarray, np.int32]:
    """Pads token ids on the right to a multiple of `bucket`: int32 [1, T] and the true length."""
    if not ids:
        raise ValueError("nothing to read: the token list is empty")
    padded = np.zeros((1, -(-len(ids) // bucket) * bucket), np.int32)
    padded[0, : len(ids)] = ids
    return padded, np.int32(len(ids))


@functools.partial(jax.jit, static_argnames=("extend",))
def read(extend: Extend, params: Any, tokens: Array, length: Array, after: Prefix | None = None) -> Prefix:
    """Reads right-padded tokens int32 [1|B, T], `length` of them real, after a prefix (or as the beginning).

    Args: after: of one row or of B (`rows`).
    """
    start = jnp.int32(0) if after is None else after.length
    context = () if after is None else after.context
    offsets = jnp.arange(tokens.shape[1], dtype=jnp.int32)[None]
    last = jnp.full((tokens.shape[0], 1), length - 1, jnp.int32)
    valid = jnp.broadcast_to(offsets < length, tokens.shape)
    logits, segment = extend(params, tokens, jnp.reshape(start, (-1, 1)) + offsets, context, valid, last)
    return Prefix((*context, segment), logits[:, 0], start + length)


def branch(
    extend: Extend, params: Any, base: Prefix, common: ArrayLike, tokens: ArrayLike, length: ArrayLike, slots: int
) -> Prefix:
    """Another text whose first `common` tokens are those of `base`: only what comes after them is read.

    The result is laid out as `read` lays out a whole text: one segment, slot i at position i.

    Args:
      base: a text read as the beginning, batch 1.
      common: int32 [], at most `base.length`.
      tokens: int32 [1, T], the rest of the other text, right-padded; `length` of them real, at least 1.
      slots: of the result, at least common + length.
    """
    (whole,), common = base.context, jnp.asarray(common, jnp.int32)
    kept = cut(whole, jnp.reshape(common, (1,)))
    rest = read(extend, params, tokens, length, Prefix((kept,), base.logits, common))
    return Prefix((_joined(whole, rest.context[-1], common, length, slots),), rest.logits, rest.length)


@functools.partial(jax.jit, static_argnames=("slots",))
def _joined(base: Segment, rest: Segment, common: Array, length: Array, slots: int) -> Segment:
    """The first `common` slots of `base`, then the first `length` of `rest`; slots beyond are invalid."""
    slot = jnp.arange(slots, dtype=jnp.int32)
    source = jnp.where(slot < common, slot, jnp.minimum(base.slots + slot - common, base.slots + rest.slots - 1))
    whole = jax.tree.map(lambda a, b: jnp.concatenate([a, b], 1)[:, source], base, rest)
    return dataclasses.replace(whole, positions=slot[None], valid=(slot < common + length)[None])


@struct.dataclass
class Window:
    """Another prompt, shown in place of the first while tokens start … stop - 1 of a chain are drawn (§9).

    A chain's states are kept at both prompts' positions, so what a token wrote under one prompt is seen under the other
    as well: the same states, shifted by the difference of the prompts' lengths.

    Attributes:
      prefix: the other prompt, batch 1.
      start, stop: int32 [n], per chain in the order of `ids`; start >= stop is an empty window.
      shift: `models.edits.shift` with the model's ropes.
    """

    prefix: Prefix
    start: Array
    stop: Array
    shift: Shift = struct.field(pytree_node=False)


@struct.dataclass
class _Slots:
    """The loop's state: per slot the chain it works on; per chain what has been drawn."""

    caches: tuple[Segment, ...]  # the chains' states, at each prompt's positions
    token: Array  # int32 [B] last token drawn
    step: Array  # int32 [B] tokens drawn so far
    chain: Array  # int32 [B] index into the output
    live: Array  # bool [B]
    following: Array  # int32 [] next chain to start
    chains: Chains


@functools.partial(jax.jit, static_argnames=("extend", "sampling", "slots", "length", "vocabulary", "tail"))
def sample(
    extend: Extend,
    params: Any,
    prefix: Prefix,
    key: Array,
    ids: Array,
    count: Array,
    stop: Array,
    window: Window | None = None,
    *,
    sampling: Sampling,
    slots: int,
    length: int,
    vocabulary: int,
    tail: tuple[int, ...] = (),
) -> Chains:
    """Draws the chains with the given ids after one shared prefix.

    A slot whose chain ends takes the next chain in the same step; the prompt is read once and shared. Token t of
    chain i is drawn with `draw_key(key, i, t)`, so the result does not depend on slots, other ids or neighbours.

    Args:
      extend, params: the model.
      prefix: the prompt, batch 1.
      key: `arm_key` of the arm.
      ids: int32 [n], traced: other ids do not recompile.
      count: int32 scalar, traced: how many of the ids to draw, from the first; the others pad n.
      stop: int32 [E], token ids that end a chain.
      window: where another prompt is seen in place of `prefix`; with empty windows the chains are those of `prefix`,
        with windows over everything those of the other prompt, token for token.
      sampling: static settings.
      slots: B, chains in flight.
      length: most tokens per chain, the stop token included.
      vocabulary: number of real token ids; rows above are padding and never drawn.
      tail: falling numbers of slots to go on with once no more chains than that are left: fewer slots idle at the end,
        for one more compiled loop each.

    Returns:
      n Chains; rows past `count` are empty (lengths 0).
    """
    size = ids.shape[0]
    views = (prefix,) if window is None else (prefix, window.prefix)
    lengths = jnp.stack([view.length for view in views])

    def uniform(chain: Array, step: Array) -> Array:
        one = lambda c, s: jax.random.uniform(draw_key(key, ids[c], s), (), jnp.float32)
        return jax.vmap(one)(jnp.minimum(chain, size - 1), step)

    def masked(logits: Array) -> Array:
        return jnp.where(jnp.arange(logits.shape[-1])[None] < vocabulary, logits.astype(jnp.float32), -jnp.inf)

    def seen(chain: Array, step: Array) -> Array:
        """int32 [B]: which of the views a row has before it while its token number `step` is drawn."""
        if window is None:
            return jnp.zeros_like(step)
        chain = jnp.minimum(chain, size - 1)
        return ((window.start[chain] <= step) & (step < window.stop[chain])).astype(jnp.int32)

    def decode(caches: tuple[Segment, ...], view: Array, token: Array, step: Array, live: Array) -> Any:
        """Reads token number `step` - 1 before the view: logits [B, V] and the caches with its states."""
        positions = (lengths[view] + step - 1)[:, None]
        if window is None:
            context = (*prefix.context, *caches)
        else:
            pairs = zip(views, caches, strict=True)
            context = tuple(show(s, view == i) for i, (v, c) in enumerate(pairs) for s in (*v.context, c))
        logits, new = extend(params, token[:, None], positions, context, live[:, None], None)
        at_view = lambda i: new if window is None else window.shift(new, lengths[i] - lengths[view])
        return logits[:, 0], tuple(write(c, at_view(i), step - 1, live) for i, c in enumerate(caches))

    opening = law(masked(jnp.concatenate([v.logits for v in views])), sampling)
    opening_finite = jnp.stack([~jnp.isnan(v.logits).any() for v in views])

    def record(
        chains: Chains, who: Array, chain: Array, step: Array, token: Array, finite: Array
    ) -> tuple[Chains, Array]:
        """Writes token number `step` of the rows `who`; returns the chains and which of those rows end here."""
        row = jnp.where(who, chain, size)  # out of range: dropped
        halted = (token[:, None] == stop[None]).any(-1)
        put = lambda a, v: a.at[row].set(v, mode="drop")
        chains = Chains(
            chains.tokens.at[row, step].set(token, mode="drop"),
            put(chains.lengths, step + 1),
            put(chains.stopped, halted),
            put(chains.finite, chains.finite[jnp.minimum(row, size - 1)] & finite),
        )
        return chains, who & (halted | (step + 1 >= length))

    def body(s: _Slots) -> _Slots:
        # Refill: every idle slot opens the next chain, if one is left.
        chain = jnp.where(s.live, s.chain, s.following + jnp.cumsum(~s.live, dtype=jnp.int32) - 1)
        fresh = ~s.live & (chain < count)
        zero = jnp.zeros_like(s.step)
        first = seen(chain, zero)
        p, tokens = opening if window is None else (opening[0][first], opening[1][first])
        token = jnp.where(fresh, draw(p, tokens, uniform(chain, zero)), s.token)
        step = jnp.where(fresh, 1, s.step)
        chains, ended = record(s.chains, fresh, chain, zero, token, opening_finite[first])
        live = (s.live | fresh) & ~ended
        caches = tuple(show(c, ~fresh) for c in s.caches)
        # Decode: one token for every live slot.
        logits, caches = decode(caches, seen(chain, step), token, step, live)
        drawn = draw(*law(masked(logits), sampling), uniform(chain, step))
        chains, ended = record(chains, live, chain, step, drawn, ~jnp.isnan(logits).any(-1))
        following = s.following + fresh.sum(dtype=jnp.int32)
        return _Slots(caches, drawn, step + live.astype(jnp.int32), chain, live & ~ended, following, chains)

    def more_than(few: int, s: _Slots) -> Array:
        """Whether more chains than that are unfinished."""
        return s.live.sum(dtype=jnp.int32) + jnp.maximum(count - s.following, 0) > few

    def narrowed(s: _Slots, width: int) -> _Slots:
        """The state in fewer slots, at least as many as are live."""
        kept = jnp.argsort(~s.live, stable=True)[:width]
        state = {f: getattr(s, f) for f in ("caches", "token", "step", "chain", "live")}
        return dataclasses.replace(s, **jax.tree.map(lambda a: a[kept], state))

    state = _Slots(
        caches=tuple(empty(v.context[0], slots, length) for v in views),
        token=jnp.zeros((slots,), jnp.int32),
        step=jnp.ones((slots,), jnp.int32),
        chain=jnp.zeros((slots,), jnp.int32),
        live=jnp.zeros((slots,), bool),
        following=jnp.int32(0),
        chains=Chains(
            jnp.zeros((size, length), jnp.int32),
            jnp.zeros((size,), jnp.int32),
            jnp.zeros((size,), bool),
            jnp.ones((size,), bool),
        ),
    )
    for width, rest in zip((slots, *tail), (*tail, 0), strict=True):
        state = state if width == slots else narrowed(state, width)
        state = jax.lax.while_loop(functools.partial(more_than, rest), body, state)
    return state.chains


def stack(prefixes: Sequence[Prefix]) -> Prefix:
    """Prefixes as one with a leading axis; shorter prompts get invalid slots."""

    def widen(segment: Segment, slots: int) -> Segment:
        wider = lambda a: jnp.pad(a, [(0, 0), (0, slots - a.shape[1]), *[(0, 0)] * (a.ndim - 2)])
        return jax.tree.map(wider, segment)

    slots = [max(s.slots for s in parts) for parts in zip(*(p.context for p in prefixes), strict=True)]
    wide = [
        dataclasses.replace(p, context=tuple(widen(s, n) for s, n in zip(p.context, slots, strict=True)))
        for p in prefixes
    ]
    return jax.tree.map(lambda *a: jnp.stack(a), *wide)


def rows(prefixes: Sequence[Prefix]) -> Prefix:
    """Prefixes as one of B rows: segments [B, S, ...], logits [B, V], lengths int32 [B]."""
    return jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), stack(prefixes))


@functools.partial(jax.jit, static_argnames=("extend", "sampling", "slots", "length", "vocabulary"))
def sample_arms(
    extend: Extend,
    params: Any,
    prefixes: Prefix,
    keys: Array,
    ids: Array,
    counts: Array,
    stop: Array,
    *,
    sampling: Sampling,
    slots: int,
    length: int,
    vocabulary: int,
) -> Chains:
    """`sample` for A arms at once, so that few chains of many prompts fill one step's matrix products.

    Args: as those of `sample`, with a leading axis A on prefixes (`stack`), keys [A], ids [A, n] and counts [A];
      `slots` are those of one arm.

    Returns: Chains with a leading axis A; the tokens are those of A calls.
    """

    def one(prefix: Prefix, key: Array, ids: Array, count: Array) -> Chains:
        settings = {"sampling": sampling, "slots": slots, "length": length, "vocabulary": vocabulary}
        return sample(extend, params, prefix, key, ids, count, stop, **settings)

    return jax.vmap(one)(prefixes, keys, ids, counts)
