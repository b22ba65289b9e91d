"""Gemma 3 and Gemma 4 (text): one decoder core as Flax modules, and the pure function a study calls.

Norms before and after attention and MLP, sliding and full layers, GeGLU; Gemma 4 adds per-layer embeddings, shared keys
and values, values made of keys, a mixture of experts, layer scalars and capped logits, all by config. The layers that
own keys and values come first; a segment holds those alone, at full length: a window is a mask, never a rolling cache.
Every layer has its own arrays and the loop over layers is unrolled (models/qwen/README.md says why).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from models.attention import merge, partial_softmax, visible
from models.context import Context, Segment
from models.gemma.config import GemmaConfig, LayerShape
from models.gemma.experts import Mixture, Router
from models.gemma.norm import RMSNorm, normalised
from models.linear import Linear
from models.rope import rotate

Array = jax.Array
Pair = tuple[Array, Array]  # keys and values of one layer, [1|B, S, K, H]


def gelu(x: Array) -> Array:
    return jax.nn.gelu(x, approximate=True)


def embed(table: Array, tokens: Array) -> Array:
    """Rows of a table [V, ..., D] times sqrt(D), which is rounded to the table's dtype first (39.25 of 1536)."""
    return table[tokens] * jnp.asarray(table.shape[-1] ** 0.5, table.dtype)


class Attention(nnx.Module):
    """Grouped queries over keys and values that this layer owns or an earlier one made."""

    def __init__(self, c: GemmaConfig, shape: LayerShape, dtype: Any, rngs: nnx.Rngs):
        d, h, k = c.hidden_size, shape.head_dim, shape.kv_heads
        norm = lambda: RMSNorm(h, c.norm_eps, c.norm_offset, dtype)
        self.q_proj, self.q_norm = Linear(d, c.num_heads * h, False, dtype, rngs), norm()
        self.k_proj = Linear(d, k * h, False, dtype, rngs) if shape.owns else None
        self.k_norm = norm() if shape.owns else None
        self.v_proj = Linear(d, k * h, False, dtype, rngs) if shape.owns and shape.value_proj else None
        self.o_proj = Linear(c.num_heads * h, d, False, dtype, rngs)
        self.config, self.shape = c, shape

    def keys_values(self, x: Array, positions: Array) -> Pair:
        """What this layer stores of x [B, T, D]: rotated keys, values; made of one projection where K = V."""
        assert self.k_proj is not None
        assert self.k_norm is not None
        heads = (*x.shape[:2], self.shape.kv_heads, self.shape.head_dim)
        k = self.k_proj(x).reshape(heads)
        v = k if self.v_proj is None else self.v_proj(x).reshape(heads)
        if self.config.value_norm:
            v = normalised(v, self.config.norm_eps).astype(x.dtype)
        return rotate(self.k_norm(k), positions, self.shape.rope), v

    def __call__(self, x: Array, positions: Array, states: Sequence[Pair], masks: Sequence[Array]) -> Array:
        c, s, (b, t, _) = self.config, self.shape, x.shape
        q = rotate(self.q_norm(self.q_proj(x).reshape(b, t, c.num_heads, s.head_dim)), positions, s.rope)
        q = (q * c.query_scale).reshape(b, t, s.kv_heads, -1, s.head_dim)
        parts = [partial_softmax(q, k, v, mask) for (k, v), mask in zip(states, masks, strict=True)]
        return self.o_proj(merge(parts).reshape(b, t, -1).astype(x.dtype))


class MLP(nnx.Module):
    def __init__(self, size: int, inner: int, dtype: Any, rngs: nnx.Rngs):
        self.gate_proj = Linear(size, inner, False, dtype, rngs)
        self.up_proj = Linear(size, inner, False, dtype, rngs)
        self.down_proj = Linear(inner, size, False, dtype, rngs)

    def __call__(self, x: Array) -> Array:
        return self.down_proj(gelu(self.gate_proj(x)) * self.up_proj(x))


class PerLayer(nnx.Module):
    """A layer's own embedding of the tokens, gated by the stream and added to it."""

    def __init__(self, c: GemmaConfig, dtype: Any, rngs: nnx.Rngs):
        self.gate = Linear(c.hidden_size, c.ple_size, False, dtype, rngs)
        self.projection = Linear(c.ple_size, c.hidden_size, False, dtype, rngs)
        self.norm = RMSNorm(c.hidden_size, c.norm_eps, c.norm_offset, dtype)

    def __call__(self, x: Array, own: Array) -> Array:
        return x + self.norm(self.projection(gelu(self.gate(x)) * own))


class Layer(nnx.Module):
    def __init__(self, c: GemmaConfig, shape: LayerShape, dtype: Any, rngs: nnx.Rngs):
        norm = lambda: RMSNorm(c.hidden_size, c.norm_eps, c.norm_offset, dtype)
        self.input_norm, self.post_attention_norm = norm(), norm()
        self.pre_mlp_norm, self.post_mlp_norm = norm(), norm()
        self.attention = Attention(c, shape, dtype, rngs)
        self.mlp = MLP(c.hidden_size, shape.intermediate_size, dtype, rngs)
        self.router = Router(c, dtype, rngs) if c.experts else None
        self.experts = Mixture(c, dtype, rngs) if c.experts else None
        self.dense_norm, self.pre_experts_norm, self.experts_norm = (norm() if c.experts else None for _ in range(3))
        self.per_layer = PerLayer(c, dtype, rngs) if c.ple_size else None
        self.scalar = nnx.Param(jnp.ones((1,), dtype)) if c.layer_scalars else None

    def feed_forward(self, x: Array) -> Array:
        """The dense MLP; with a mixture, the sum of both, each with norms of its own."""
        y = self.mlp(self.pre_mlp_norm(x))
        if self.router and self.experts and self.dense_norm and self.pre_experts_norm and self.experts_norm:
            y = self.dense_norm(y) + self.experts_norm(self.experts(self.pre_experts_norm(x), *self.router(x)))
        return self.post_mlp_norm(y)

    def __call__(
        self,
        x: Array,
        positions: Array,
        cached: Sequence[Pair],
        made: Pair | None,
        masks: Sequence[Array],
        own: Array | None,
    ) -> tuple[Array, Pair]:
        """One block.

        Args:
          x: [B, T, D]; positions: int32 [B, T].
          cached: the pairs of the context's segments.
          made: the pair of the tokens being read, where an earlier layer made it; None: this layer does.
          masks: bool [B, T, S], of the segments and of the tokens being read.
          own: this layer's embedding of the tokens, [B, T, P]; None where there is none.

        Returns: the stream, and the pair of the tokens being read.
        """
        y = self.input_norm(x)
        made = self.attention.keys_values(y, positions) if made is None else made
        x = x + self.post_attention_norm(self.attention(y, positions, (*cached, made), masks))
        x = x + self.feed_forward(x)
        if self.per_layer is not None and own is not None:
            x = self.per_layer(x, own)
        return x if self.scalar is None else x * self.scalar[...][None, None], made


class Embeddings(nnx.Module):
    """Per-layer embeddings: a table of the tokens and a projection of the stream, in equal parts; [B, T, L, P]."""

    def __init__(self, c: GemmaConfig, dtype: Any, rngs: nnx.Rngs):
        width = c.num_layers * c.ple_size
        self.table = nnx.Param(jax.random.normal(rngs.params(), (c.ple_vocab, width), dtype) * 0.02)
        self.projection = Linear(c.hidden_size, width, False, dtype, rngs)
        self.norm = RMSNorm(c.ple_size, c.norm_eps, c.norm_offset, dtype)
        self.config = c

    def __call__(self, tokens: Array, x: Array) -> Array:
        c, dtype = self.config, x.dtype
        shape = (*tokens.shape, c.num_layers, c.ple_size)
        said = embed(self.table[...].reshape(-1, c.num_layers, c.ple_size), tokens)
        seen = (self.projection(x).astype(jnp.float32) * c.hidden_size**-0.5).astype(dtype).reshape(shape)
        return ((self.norm(seen) + said).astype(jnp.float32) * 2**-0.5).astype(dtype)


class Gemma(nnx.Module):
    """Holds the parameters."""

    def __init__(self, c: GemmaConfig, dtype: Any = jnp.float32, rngs: nnx.Rngs | None = None):
        rngs = nnx.Rngs(0) if rngs is None else rngs
        self.embedding = nnx.Param(jax.random.normal(rngs.params(), (c.vocab_size, c.hidden_size), dtype) * 0.02)
        self.per_layer = Embeddings(c, dtype, rngs) if c.ple_size else None
        self.layers = nnx.List([Layer(c, shape, dtype, rngs) for shape in c.layers])
        self.norm = RMSNorm(c.hidden_size, c.norm_eps, c.norm_offset, dtype)
        self.config = c

    def __call__(
        self, tokens: Array, positions: Array, context: Context, valid: Array | None, at: Array | None
    ) -> tuple[Array, Segment]:
        c, made = self.config, dict[int, Pair]()
        valid = jnp.ones(tokens.shape, bool) if valid is None else valid
        spots = (*((s.positions, s.valid) for s in context), (positions, valid))

        def run(x: Array, where: Array, own: Array | None, first: int, stop: int) -> Array:
            """Layers first … stop - 1 of queries at the positions `where`."""
            masks = {w: [visible(where, p, v, w) for p, v in spots] for w in dict.fromkeys(c.windows)}
            for i in range(first, stop):
                j = c.layers[i].source
                cached = [(s.keys[j], s.values[j]) for s in context]
                mine = None if own is None else own[:, :, i]
                x, made[j] = self.layers[i](x, where, cached, made.get(j), masks[c.layers[i].window], mine)
            return x

        x = embed(self.embedding[...], tokens)
        own = None if self.per_layer is None else self.per_layer(tokens, x)
        owners = len(c.stored)
        x = run(x, positions, own, 0, owners)
        if at is not None:  # layers that only read keys and values are run where logits are wanted
            x, positions_at = jnp.take_along_axis(x, at[:, :, None], 1), jnp.take_along_axis(positions, at, 1)
            own = None if own is None else jnp.take_along_axis(own, at[:, :, None, None], 1)
        x = run(x, positions if at is None else positions_at, own, owners, c.num_layers)
        logits = jnp.einsum("btd,vd->btv", self.norm(x), self.embedding[...], preferred_element_type=jnp.float32)
        if c.logit_cap is not None:
            logits = c.logit_cap * jnp.tanh(logits / c.logit_cap)
        keys, values = zip(*(made[j] for j in range(owners)), strict=True)
        return logits, Segment(keys, values, positions, valid)
