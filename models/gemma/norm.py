"""RMSNorm of Gemma: all of it in float32, one rounding at the end.

Knows: both conventions of the weight. Does not know: where norms stand.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

Array = jax.Array


def normalised(x: Array, eps: float) -> Array:
    """x / sqrt(mean(x^2) + eps) over the last axis, float32."""
    wide = x.astype(jnp.float32)
    return wide * jax.lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + eps)


class RMSNorm(nnx.Module):
    """y = x / rms(x) * (offset + w); the sum offset + w is never rounded to the weights' dtype."""

    def __init__(self, size: int, eps: float, offset: float, dtype: Any):
        self.weight = nnx.Param(jnp.full((size,), 1.0 - offset, dtype))
        self.eps, self.offset = eps, offset

    def __call__(self, x: Array) -> Array:
        weight = self.offset + self.weight[...].astype(jnp.float32)
        return (normalised(x, self.eps) * weight.reshape((1,) * (x.ndim - 1) + weight.shape)).astype(x.dtype)
