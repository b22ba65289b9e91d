"""From a prompt to n chains: read it once, then one compiled loop whose slots are refilled as chains end.

Knows: prefixes (a context and what comes next), chains, slots. Does not know: text, arms, answers, any model family;
a model is the pair of `extend` (a pure function) and its parameters.
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

from jaxmon.keys import draw_key
from jaxmon.sampler import Sampling, draw, law
from models.context import Context, Segment, empty, write

Array = jax.Array
Extend = Callable[..., tuple[Array, Segment]]  # (params, tokens, positions, context, valid, at) -> (logits, segment)


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
    """Reads right-padded tokens int32 [1, T], `length` of them real, after a prefix (or as the beginning)."""
    start = jnp.int32(0) if after is None else after.length
    context = () if after is None else after.context
    offsets = jnp.arange(tokens.shape[1], dtype=jnp.int32)[None]
    last = jnp.reshape(length - 1, (1, 1))
    logits, segment = extend(params, tokens, start + offsets, context, offsets < length, last)
    return Prefix((*context, segment), logits[:, 0], start + length)


@struct.dataclass
class _Slots:
    """The loop's state: per slot the chain it works on; per chain what has been drawn."""

    cache: Segment
    token: Array  # int32 [B] last token drawn
    step: Array  # int32 [B] tokens drawn so far
    chain: Array  # int32 [B] index into the output
    live: Array  # bool [B]
    following: Array  # int32 [] next chain to start
    chains: Chains


@functools.partial(jax.jit, static_argnames=("extend", "sampling", "slots", "size", "length", "vocabulary"))
def sample(
    extend: Extend,
    params: Any,
    prefix: Prefix,
    key: Array,
    first: Array,
    count: Array,
    stop: Array,
    *,
    sampling: Sampling,
    slots: int,
    size: int,
    length: int,
    vocabulary: int,
) -> Chains:
    """Draws the chains with ids first … first + count - 1 after one shared prefix.

    A slot whose chain ends takes the next chain in the same step; the prompt is read once and shared. Token t of
    chain i is drawn with `draw_key(key, i, t)`, so the result does not depend on slots, size or neighbours.

    Args:
      extend, params: the model.
      prefix: the prompt, batch 1.
      key: `arm_key` of the arm.
      first, count: int32 scalars, traced: another range does not recompile.
      stop: int32 [E], token ids that end a chain.
      sampling: static settings.
      slots: B, chains in flight.
      size: most chains one call can return (static); count <= size.
      length: most tokens per chain, the stop token included.
      vocabulary: number of real token ids; rows above are padding and never drawn.

    Returns:
      Chains with n = size; rows past `count` are empty (lengths 0).
    """

    def uniform(chain: Array, step: Array) -> Array:
        one = lambda c, s: jax.random.uniform(draw_key(key, first + c, s), (), jnp.float32)
        return jax.vmap(one)(chain, step)

    def masked(logits: Array) -> Array:
        return jnp.where(jnp.arange(logits.shape[-1])[None] < vocabulary, logits.astype(jnp.float32), -jnp.inf)

    opening = law(masked(prefix.logits), sampling)
    opening_finite = ~jnp.isnan(prefix.logits).any()

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
        token = jnp.where(fresh, draw(*opening, uniform(chain, zero)), s.token)
        step = jnp.where(fresh, 1, s.step)
        chains, ended = record(s.chains, fresh, chain, zero, token, jnp.broadcast_to(opening_finite, fresh.shape))
        live = (s.live | fresh) & ~ended
        cache = dataclasses.replace(s.cache, valid=s.cache.valid & ~fresh[:, None])
        # Decode: one token for every live slot.
        positions = (prefix.length + step - 1)[:, None]
        logits, new = extend(params, token[:, None], positions, (*prefix.context, cache), live[:, None], None)
        cache = write(cache, new, step - 1, live)
        logits = logits[:, 0]
        drawn = draw(*law(masked(logits), sampling), uniform(chain, step))
        chains, ended = record(chains, live, chain, step, drawn, ~jnp.isnan(logits).any(-1))
        following = s.following + fresh.sum(dtype=jnp.int32)
        return _Slots(cache, drawn, step + live.astype(jnp.int32), chain, live & ~ended, following, chains)

    def unfinished(s: _Slots) -> Array:
        return s.live.any() | (s.following < count)

    start = _Slots(
        cache=empty(prefix.context[0], slots, length),
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
    return jax.lax.while_loop(unfinished, body, start).chains
