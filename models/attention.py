"""Attention over a context: a partial softmax per segment, merged by log-sum-exp.

The merge makes a shared prompt one large matrix product for all chains, and lets segments be swapped, cut or frozen
without recomputing the others. Reductions are float32. A query that sees nothing gets zeros, never NaN.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

Array = jax.Array
IMPLEMENTATION = "segments"  # recorded with a run; there is no other yet
MASKED = -1e30  # finite, so that a fully masked row stays finite


class Partial(NamedTuple):
    """Softmax statistics of one segment: running maximum, normaliser and unnormalised output, float32."""

    maximum: Array  # [B, T, K, G]
    total: Array  # [B, T, K, G]
    output: Array  # [B, T, K, G, H]


def visible(query_positions: Array, key_positions: Array, key_valid: Array, window: int | None = None) -> Array:
    """Causal visibility by position: bool [B, T, S] from int [B, T], int [1|B, S], bool [1|B, S].

    With a window W the key at position j is seen from position i iff i - W < j <= i: W tokens, itself among them.
    Positions decide, not slots: an edit that moves a segment moves what a window sees of it.
    """
    queries, keys = query_positions[:, :, None], key_positions[:, None, :]
    seen = (keys <= queries) & key_valid[:, None, :]
    return seen if window is None else seen & (keys > queries - window)


def partial_softmax(query: Array, keys: Array, values: Array, mask: Array) -> Partial:
    """Softmax statistics of `query` over one segment.

    Args:
      query: [B, T, K, G, H], scaled; G = N / K query heads share a kv head.
      keys, values: [1|B, S, K, H]; batch 1 is a segment shared by all rows.
      mask: bool [B, T, S], True where the key is seen.
    """
    shared = keys.shape[0] == 1 and query.shape[0] != 1
    if shared:
        scores = jnp.einsum("btkgh,skh->btkgs", query, keys[0], preferred_element_type=jnp.float32)
    else:
        scores = jnp.einsum("btkgh,bskh->btkgs", query, keys, preferred_element_type=jnp.float32)
    seen = mask[:, :, None, None, :]
    scores = jnp.where(seen, scores, MASKED)
    maximum = scores.max(-1, initial=MASKED)  # defined for a segment of no slots, too
    weights = jnp.where(seen, jnp.exp(scores - maximum[..., None]), 0.0)
    total = weights.sum(-1)
    weights = weights.astype(values.dtype)
    if shared:
        output = jnp.einsum("btkgs,skh->btkgh", weights, values[0], preferred_element_type=jnp.float32)
    else:
        output = jnp.einsum("btkgs,bskh->btkgh", weights, values, preferred_element_type=jnp.float32)
    return Partial(maximum, total, output)


def merge(parts: list[Partial]) -> Array:
    """The softmax over the union of the segments: [B, T, K, G, H] float32; zeros where nothing is seen."""
    maximum = parts[0].maximum
    for part in parts[1:]:
        maximum = jnp.maximum(maximum, part.maximum)
    scales = [jnp.exp(part.maximum - maximum) for part in parts]
    total = sum(s * part.total for s, part in zip(scales, parts, strict=True))
    output = sum(s[..., None] * part.output for s, part in zip(scales, parts, strict=True))
    return output / jnp.maximum(total, 1e-30)[..., None]
