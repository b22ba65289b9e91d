"""The one matrix product of all families.

Knows: how a product sums. Does not know: what it is part of.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from models.int8 import product

Array = jax.Array


class Linear(nnx.Module):
    """y = x W + b with W [in, out]; sums in float32."""

    def __init__(self, size_in: int, size_out: int, bias: bool, dtype: Any, rngs: nnx.Rngs):
        self.kernel = nnx.Param(jax.random.normal(rngs.params(), (size_in, size_out), dtype) * size_in**-0.5)
        self.bias = nnx.Param(jnp.zeros((size_out,), dtype)) if bias else None

    def __call__(self, x: Array) -> Array:
        y = product(x, self.kernel[...])
        return y if self.bias is None else y + self.bias[...][None, None]
