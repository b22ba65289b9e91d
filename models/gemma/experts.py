"""Gemma 4's mixture of experts: each token is sent to a few of many small MLPs.

Knows: routing, and how tokens are grouped by expert. Does not know: the block around it.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from models.gemma.config import GemmaConfig
from models.gemma.norm import normalised
from models.linear import Linear

Array = jax.Array


class Router(nnx.Module):
    """Which experts a token goes to, and how much each counts: softmax over all, the largest few, made to sum to 1."""

    def __init__(self, c: GemmaConfig, dtype: Any, rngs: nnx.Rngs):
        assert c.experts is not None
        self.scale = nnx.Param(jnp.ones((c.hidden_size,), dtype))
        self.proj = Linear(c.hidden_size, c.experts.total, False, dtype, rngs)
        self.per_expert_scale = nnx.Param(jnp.ones((c.experts.total,), dtype))
        self.chosen, self.eps = c.experts.chosen, c.norm_eps

    def __call__(self, x: Array) -> tuple[Array, Array]:
        """Weights float32 and experts int32, both [B, T, chosen], of tokens [B, T, D]."""
        scaled = normalised(x, self.eps).astype(x.dtype) * self.scale[...][None, None]
        scores = self.proj((scaled.astype(jnp.float32) * x.shape[-1] ** -0.5).astype(x.dtype))
        weights, experts = jax.lax.top_k(jax.nn.softmax(scores.astype(jnp.float32), -1), self.chosen)
        weights = weights / weights.sum(-1, keepdims=True)
        return weights * self.per_expert_scale[...].astype(jnp.float32)[experts], experts


class Mixture(nnx.Module):
    """sum over a token's experts e of weight_e down_e(gelu(gate_e x) * up_e x)."""

    def __init__(self, c: GemmaConfig, dtype: Any, rngs: nnx.Rngs):
        assert c.experts is not None
        e, d, i = c.experts.total, c.hidden_size, c.experts.intermediate_size
        normal = lambda *shape: jax.random.normal(rngs.params(), shape, dtype) * shape[1] ** -0.5
        self.gate_up = nnx.Param(normal(e, d, 2 * i))  # [E, D, 2 I], the gate first
        self.down = nnx.Param(normal(e, i, d))  # [E, I, D]

    def __call__(self, x: Array, weights: Array, experts: Array) -> Array:
        tokens, chosen = x.reshape(-1, x.shape[-1]), experts.reshape(-1, experts.shape[-1])
        made = _apply(tokens, chosen, self.gate_up[...], self.down[...])
        return (made * weights.reshape(*chosen.shape, 1)).sum(1).astype(x.dtype).reshape(x.shape)


@jax.custom_batching.custom_vmap
def _apply(tokens: Array, experts: Array, gate_up: Array, down: Array) -> Array:
    """What each chosen expert makes of each token [M, D]: float32 [M, chosen, D]. Tokens are sorted by expert.

    Under vmap (several arms at once) the tokens of all are sorted together; there is no reverse-mode derivative.
    """
    chosen = experts.reshape(-1)
    order = jnp.argsort(chosen, stable=True)
    sizes = jnp.bincount(chosen, length=down.shape[0])
    product = lambda a, w: jax.lax.ragged_dot(a, w, sizes, preferred_element_type=jnp.float32)
    gate, up = jnp.split(product(tokens[order // experts.shape[-1]], gate_up).astype(tokens.dtype), 2, -1)
    made = product(jax.nn.gelu(gate, approximate=True) * up, down).astype(tokens.dtype).astype(jnp.float32)
    return jnp.zeros_like(made).at[order].set(made).reshape(*experts.shape, -1)


@_apply.def_vmap
def _apply_to_all(
    size: int, batched: list[bool], tokens: Array, experts: Array, gate_up: Array, down: Array
) -> tuple[Array, bool]:
    if batched[2] or batched[3]:
        # nobody maps over weights: the arms drawn together share one model
        raise NotImplementedError("a vmap over the experts' weights")
    every = [
        (a if b else jnp.broadcast_to(a[None], (size, *a.shape))).reshape(-1, a.shape[-1])
        for a, b in zip((tokens, experts), batched, strict=False)
    ]
    return _apply(*every, gate_up, down).reshape(size, -1, experts.shape[-1], tokens.shape[-1]), True
