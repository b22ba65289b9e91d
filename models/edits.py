"""Edits of a segment: cut it, show it to some rows only, shift it to other positions. Nothing is recomputed.

Knows: slots, masks, how keys turn with their positions. Does not know: any model family, tokens, what an edit is for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp

from models.context import Segment
from models.rope import Rope, rotate

Array = jax.Array


def cut(segment: Segment, length: Array) -> Segment:
    """The first `length` slots of every row: the rest is seen by nobody. Nothing is copied.

    Args:
      length: int32 [B]; a shared segment becomes one with a mask per row.
    """
    kept = jnp.arange(segment.slots, dtype=jnp.int32)[None] < length[:, None]
    return dataclasses.replace(segment, valid=segment.valid & kept)


def show(segment: Segment, rows: Array) -> Segment:
    """The segment as seen by the rows with True in bool [B] alone; to the others it is not there."""
    return dataclasses.replace(segment, valid=segment.valid & rows[:, None])


def shift(segment: Segment, distance: Array, ropes: Sequence[Rope]) -> Segment:
    """The same states at other positions: what `extend` would have made there of the same inputs.

    Rotations add up, R(p + d) k = R(d) R(p) k, layer by layer with the layer's own frequencies; a pair with frequency 0
    (partial, proportional embeddings) stays, and so does YaRN's scale, which the keys already carry. Values have no
    position. A shift by 0 is the identity, bit for bit.

    Args:
      segment: any batch.
      distance: int32 [1|B], in tokens; negative goes back.
      ropes: one per layer.
    """
    by = jnp.broadcast_to(distance[:, None], segment.positions.shape)
    turned = tuple(
        rotate(keys, by, dataclasses.replace(rope, scale=1.0)) for keys, rope in zip(segment.keys, ropes, strict=True)
    )
    return dataclasses.replace(segment, keys=turned, positions=segment.positions + by)
