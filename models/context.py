"""A context is a tuple of key/value segments; everything a study does to a model is an edit of that tuple.

Knows: what a segment holds and how slots are made and written. Does not know: any model family, tokens, prompts.
Axis letters: L layers, B batch, T queries, S cache slots, N heads, K kv heads, H head dim, D model, V vocabulary.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from flax import struct

Array = jax.Array


@struct.dataclass
class Segment:
    """Keys and values of a run of tokens, with the absolute position of every slot.

    A slot's index is storage; its position is data. The batch axis is 1 where the segment is shared by all chains
    (a prompt) and B where each chain has its own (the chains themselves). Layers may differ in heads and head size.

    Attributes:
      keys: per layer [1|B, S, K, H], already rotated to `positions`.
      values: per layer [1|B, S, K, H].
      positions: int32 [1|B, S], absolute token positions.
      valid: bool [1|B, S]; False slots (padding, not yet written) are seen by nobody.
    """

    keys: tuple[Array, ...]
    values: tuple[Array, ...]
    positions: Array
    valid: Array

    @property
    def slots(self) -> int:
        return self.positions.shape[1]


Context = tuple[Segment, ...]


def empty(like: Segment, batch: int, slots: int) -> Segment:
    """A segment of unwritten (invalid) slots with the layers, heads and dtypes of `like`."""

    def blank(a: Array) -> Array:
        return jnp.zeros((batch, slots, *a.shape[2:]), a.dtype)

    return jax.tree.map(blank, like)


def write(buffer: Segment, new: Segment, column: Array, live: Array) -> Segment:
    """Writes one new slot per row into `buffer` at that row's own column.

    Args:
      buffer: the chains' segment, batch B, S slots.
      new: what `extend` returned for one token per row, batch B, one slot.
      column: int32 [B], the slot each row writes.
      live: bool [B]; rows that are not live write an invalid slot.
    """
    new = dataclasses.replace(new, valid=live[:, None])
    put = jax.vmap(lambda row, slot, value: row.at[slot].set(value))  # rows stay on the devices that hold them
    return jax.tree.map(lambda a, b: put(a, column, b[:, 0]), buffer, new)
