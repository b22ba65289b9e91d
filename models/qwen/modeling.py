"""Qwen2 and Qwen3: one decoder core as Flax modules, and the pure function a study calls.

Pre-norm blocks, grouped-query attention with rotary embeddings, SwiGLU. Every layer has its own arrays and the loop
over layers is unrolled: a scan over stacked parameters copies each layer's weights before it uses them, which made a
decode step twice as long on a CPU. Parity with `transformers` is tested layer by layer.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from models.attention import merge, partial_softmax, visible
from models.context import Context, Segment
from models.linear import Linear
from models.qwen.config import QwenConfig
from models.rope import rotate

Array = jax.Array


class RMSNorm(nnx.Module):
    """y = x / rms(x) * w; the mean of squares in float32, the normalised value cast before the weight (Qwen)."""

    def __init__(self, size: int, eps: float, dtype: Any):
        self.weight = nnx.Param(jnp.ones((size,), dtype))
        self.eps = eps

    def __call__(self, x: Array) -> Array:
        wide = x.astype(jnp.float32)
        wide = wide * jax.lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + self.eps)
        weight = self.weight[...]
        return wide.astype(x.dtype) * weight.reshape((1,) * (x.ndim - 1) + weight.shape)


class Attention(nnx.Module):
    def __init__(self, c: QwenConfig, dtype: Any, rngs: nnx.Rngs):
        self.q_proj = Linear(c.hidden_size, c.num_heads * c.head_dim, c.qkv_bias, dtype, rngs)
        self.k_proj = Linear(c.hidden_size, c.num_kv_heads * c.head_dim, c.qkv_bias, dtype, rngs)
        self.v_proj = Linear(c.hidden_size, c.num_kv_heads * c.head_dim, c.qkv_bias, dtype, rngs)
        self.o_proj = Linear(c.num_heads * c.head_dim, c.hidden_size, c.output_bias, dtype, rngs)
        self.q_norm = RMSNorm(c.head_dim, c.norm_eps, dtype) if c.head_norms else None
        self.k_norm = RMSNorm(c.head_dim, c.norm_eps, dtype) if c.head_norms else None
        self.config = c

    def __call__(
        self, x: Array, positions: Array, cached: tuple[tuple[Array, Array], ...], masks: tuple[Array, ...]
    ) -> tuple[Array, Array, Array]:
        c = self.config
        b, t, _ = x.shape
        q = self.q_proj(x).reshape(b, t, c.num_heads, c.head_dim)
        k = self.k_proj(x).reshape(b, t, c.num_kv_heads, c.head_dim)
        v = self.v_proj(x).reshape(b, t, c.num_kv_heads, c.head_dim)
        if self.q_norm is not None and self.k_norm is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k = rotate(q, positions, c.rope), rotate(k, positions, c.rope)
        q = (q * c.head_dim**-0.5).reshape(b, t, c.num_kv_heads, -1, c.head_dim)
        parts = [partial_softmax(q, sk, sv, m) for (sk, sv), m in zip((*cached, (k, v)), masks, strict=True)]
        out = merge(parts).reshape(b, t, c.num_heads * c.head_dim).astype(x.dtype)
        return self.o_proj(out), k, v


class MLP(nnx.Module):
    def __init__(self, c: QwenConfig, dtype: Any, rngs: nnx.Rngs):
        self.gate_proj = Linear(c.hidden_size, c.intermediate_size, False, dtype, rngs)
        self.up_proj = Linear(c.hidden_size, c.intermediate_size, False, dtype, rngs)
        self.down_proj = Linear(c.intermediate_size, c.hidden_size, False, dtype, rngs)

    def __call__(self, x: Array) -> Array:
        return self.down_proj(jax.nn.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nnx.Module):
    def __init__(self, c: QwenConfig, dtype: Any, rngs: nnx.Rngs):
        self.input_norm = RMSNorm(c.hidden_size, c.norm_eps, dtype)
        self.attention = Attention(c, dtype, rngs)
        self.post_norm = RMSNorm(c.hidden_size, c.norm_eps, dtype)
        self.mlp = MLP(c, dtype, rngs)

    def __call__(
        self, x: Array, positions: Array, cached: tuple[tuple[Array, Array], ...], masks: tuple[Array, ...]
    ) -> tuple[Array, Array, Array]:
        y, k, v = self.attention(self.input_norm(x), positions, cached, masks)
        x = x + y
        return x + self.mlp(self.post_norm(x)), k, v


class Qwen(nnx.Module):
    """Holds the parameters."""

    def __init__(self, c: QwenConfig, dtype: Any = jnp.float32, rngs: nnx.Rngs | None = None):
        rngs = nnx.Rngs(0) if rngs is None else rngs
        self.embedding = nnx.Param(jax.random.normal(rngs.params(), (c.vocab_size, c.hidden_size), dtype) * 0.02)
        self.layers = nnx.List([Layer(c, dtype, rngs) for _ in range(c.num_layers)])
        self.norm = RMSNorm(c.hidden_size, c.norm_eps, dtype)
        self.head = (
            None if c.tied else nnx.Param(jax.random.normal(rngs.params(), (c.vocab_size, c.hidden_size), dtype) * 0.02)
        )

    def __call__(
        self, tokens: Array, positions: Array, context: Context, valid: Array | None, at: Array | None
    ) -> tuple[Array, Segment]:
        valid = jnp.ones(tokens.shape, bool) if valid is None else valid
        masks = (*(visible(positions, s.positions, s.valid) for s in context), visible(positions, positions, valid))
        x, made = self.embedding[...][tokens], []
        for i, layer in enumerate(self.layers):
            x, k, v = layer(x, positions, tuple((s.keys[i], s.values[i]) for s in context), masks)
            made.append((k, v))
        if at is not None:
            x = jnp.take_along_axis(x, at[:, :, None], axis=1)
        head = self.embedding[...] if self.head is None else self.head[...]
        logits = jnp.einsum("btd,vd->btv", self.norm(x), head, preferred_element_type=jnp.float32)
        keys, values = zip(*made, strict=True)
        return logits, Segment(keys, values, positions, valid)
