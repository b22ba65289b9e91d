"""The law of the next token, and one draw from it. All arithmetic is float32, whatever the model's precision.

Order, fixed: temperature, top-k, top-p on the renormalised top-k law, min-p relative to the most probable token,
renormalise. Ties are broken towards the lower token id. The draw inverts the cumulative law at one uniform number
of 2^-23 resolution: the chance of any set of tokens is off by at most about 2^-22, and a token rarer than 2^-23 may
never be drawn.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

Array = jax.Array


@dataclasses.dataclass(frozen=True)
class Sampling:
    """Sampling settings; static under jit. Off by default: the model's own law.

    Attributes:
      temperature: > 0 divides the logits; 0 is greedy.
      top_k: keep the k most probable tokens; 0 is off.
      top_p: keep the smallest set of most probable tokens with mass >= top_p; 1 is off.
      min_p: keep tokens with probability >= min_p times the largest; 0 is off.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0

    def __post_init__(self) -> None:
        for name, value, ok, want in (
            ("temperature", self.temperature, 0 <= self.temperature < float("inf"), ">= 0"),
            ("top_k", self.top_k, self.top_k >= 0, ">= 0"),
            ("top_p", self.top_p, 0 < self.top_p <= 1, "in (0, 1]"),
            ("min_p", self.min_p, 0 <= self.min_p <= 1, "in [0, 1]"),
        ):
            if not ok:
                raise ValueError(f"sampling: {name} must be {want}, got {value}")


def law(logits: Array, sampling: Sampling) -> tuple[Array, Array]:
    """The law of the next token under `sampling`.

    Args:
      logits: [B, V]; -inf for tokens that do not exist.
      sampling: static settings.

    Returns:
      probabilities float32 [B, C], zero for what is cut, and token ids int32 [B, C]; C is V, top_k, or 1 (greedy).
      With a cut, candidates come in descending order of probability.
    """
    logits = logits.astype(jnp.float32)
    batch, size = logits.shape
    if sampling.temperature == 0:
        return jnp.ones((batch, 1), jnp.float32), jnp.argmax(logits, -1).astype(jnp.int32)[:, None]
    logits = logits / sampling.temperature
    if not sampling.top_k and sampling.top_p == 1 and sampling.min_p == 0:
        ids = jnp.broadcast_to(jnp.arange(size, dtype=jnp.int32)[None], logits.shape)
        return jax.nn.softmax(logits, -1), ids
    top, ids = jax.lax.top_k(logits, min(sampling.top_k or size, size))
    p = jax.nn.softmax(top, -1)
    before = jnp.cumsum(p, -1) - p  # mass of what is more probable
    kept = jnp.ones_like(p, bool) if sampling.top_p == 1 else before < sampling.top_p
    kept = (kept & (p >= sampling.min_p * p[:, :1])).at[:, 0].set(True)
    p = jnp.where(kept, p, 0.0)
    return p / p.sum(-1, keepdims=True), ids.astype(jnp.int32)


def draw(probabilities: Array, ids: Array, uniform: Array) -> Array:
    """One token per row: the inverse of the cumulative law at `uniform`.

    Args:
      probabilities: float32 [1|B, C]; rows that share one law may have batch 1.
      ids: int32 [1|B, C].
      uniform: float32 [B] in [0, 1).

    Returns:
      int32 [B]. A token of probability 0 past the last positive one is never drawn.
    """
    cumulative = jnp.cumsum(probabilities, -1)
    reached = (cumulative <= uniform[:, None] * cumulative[:, -1:]).sum(-1)
    size = probabilities.shape[-1]
    last = size - 1 - jnp.argmax(probabilities[:, ::-1] > 0, -1)
    pick = jnp.minimum(reached, last).astype(jnp.int32)
    rows = jnp.zeros_like(pick) if ids.shape[0] == 1 else jnp.arange(pick.shape[0], dtype=jnp.int32)
    return ids[rows, pick]
