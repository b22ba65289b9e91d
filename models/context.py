"""A context is a tuple of key/value segments; everything a study does to a model is an edit of that tuple.

Knows: what a segment holds and how slots are made and written. Does not know: any model family, tokens, prompts.
Axis letters: L layers, B batch, T queries, S cache slots, N heads, K kv heads, H head dim, D model, V vocabulary.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import struct

Array = jax.Array


@struct.dataclass
class Segment:
    """Keys and values of a run of tokens, with the absolute position of every slot.

    A slot's index is storage; its position is data. The batch axis is 1 where the segment is shared by all chains
    (a prompt) and B where each chain has its own (the chains themselves).

    Attributes:
      keys: layer group name -> [L, 1|B, S, K, H], already rotated to `positions`.
      values: layer group name -> [L, 1|B, S, K, H].
      positions: int32 [1|B, S], absolute token positions.
      valid: bool [1|B, S]; False slots (padding, not yet written) are seen by nobody.
    """

    keys: dict[str, Array]
    values: dict[str, Array]
    positions: Array
    valid: Array

    @property
    def slots(self) -> int:
        return self.positions.shape[1]


Context = tuple[Segment, ...]


def empty(like: Segment, batch: int, slots: int) -> Segment:
    """A segment of unwritten (invalid) slots with the layer groups and dtypes of `like`."""

    def blank(a: Array) -> Array:
        return jnp.zeros((a.shape[0], batch, slots, *a.shape[3:]), a.dtype)

    return Segment(
        {g: blank(a) for g, a in like.keys.items()},
        {g: blank(a) for g, a in like.values.items()},
        jnp.zeros((batch, slots), jnp.int32),
        jnp.zeros((batch, slots), bool),
    )


def write(buffer: Segment, new: Segment, column: Array, live: Array) -> Segment:
    """Writes one new slot per row into `buffer` at that row's own column.

    Args:
      buffer: the chains' segment, batch B, S slots.
      new: what `extend` returned for one token per row, batch B, one slot.
      column: int32 [B], the slot each row writes.
      live: bool [B]; rows that are not live write an invalid slot.
    """
    rows = jnp.arange(column.shape[0])
    put = lambda a, b: a.at[:, rows, column].set(b[:, :, 0])
    return Segment(
        {g: put(a, new.keys[g]) for g, a in buffer.keys.items()},
        {g: put(a, new.values[g]) for g, a in buffer.values.items()},
        buffer.positions.at[rows, column].set(new.positions[:, 0]),
        buffer.valid.at[rows, column].set(live),
    )
