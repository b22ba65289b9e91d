"""The pure function a study calls, the same for every family.

Knows: the call of a network. Does not know: which network it is.
"""

from __future__ import annotations

from typing import Any

import jax
from flax import nnx

from models.context import Context, Segment

Array = jax.Array


def extend(
    graphdef: nnx.GraphDef,
    params: Any,
    tokens: Array,
    positions: Array,
    context: Context = (),
    valid: Array | None = None,
    at: Array | None = None,
) -> tuple[Array, Segment]:
    """Reads `tokens` after `context`: their logits, and the segment they make. Nothing is mutated.

    Args:
      graphdef, params: `nnx.split` of a family's network; the first is static, the second a pytree.
      tokens: int32 [B, T].
      positions: int32 [B, T], absolute; a key is seen by queries at or after its position.
      context: segments of batch 1 (shared) or B.
      valid: bool [B, T]; False marks padding, seen by nobody. Default: all valid.
      at: int32 [B, Q], which of the T tokens to give logits for. Default: all.

    Returns:
      logits float32 [B, T or Q, V] and the new segment (batch B, T slots) of the layers that own keys and values.
    """
    return nnx.merge(graphdef, params)(tokens, positions, context, valid, at)
