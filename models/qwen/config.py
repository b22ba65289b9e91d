"""The live fields of a Qwen2 or Qwen3 checkpoint; the difference of the two families is data here, not code."""

from __future__ import annotations

import dataclasses

from models.rope import Rope


@dataclasses.dataclass(frozen=True)
class QwenConfig:
    """Shapes and switches of one model.

    Qwen2 has biases on q, k, v and no head norms; Qwen3 has head norms and (by default) no biases.
    """

    vocab_size: int  # V, rows of the embedding
    hidden_size: int  # D
    intermediate_size: int
    num_layers: int  # L
    num_heads: int  # N
    num_kv_heads: int  # K
    head_dim: int  # H
    rope: Rope
    norm_eps: float
    tied: bool  # the output head is the embedding
    qkv_bias: bool
    output_bias: bool
    head_norms: bool
    max_positions: int
