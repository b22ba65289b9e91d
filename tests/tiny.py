"""Tiny models for tests: a random Qwen, and mock models with a known law."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from models.context import Context, Segment
from models.extend import extend
from models.qwen.config import QwenConfig
from models.qwen.modeling import Qwen
from models.rope import make_rope

VOCABULARY = 61
_EXTEND = jax.jit(extend, static_argnums=0)  # tests call it eagerly, too


def qwen(seed: int = 0, **changes: Any) -> tuple[Any, Any]:
    """(extend with its graph bound, params) of a random tiny Qwen3; embeddings large enough for a lively law."""
    fields: dict[str, Any] = {
        "vocab_size": 64,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_layers": 3,
        "num_heads": 4,
        "num_kv_heads": 2,
        "head_dim": 16,
        "rope": make_rope(16, 1e4, None, 256),
        "norm_eps": 1e-6,
        "tied": False,
        "qkv_bias": False,
        "output_bias": False,
        "head_norms": True,
        "max_positions": 256,
    }
    graphdef, params = nnx.split(Qwen(QwenConfig(**(fields | changes)), rngs=nnx.Rngs(seed)))
    params = jax.tree.map(lambda a: a * 20 if a.shape == (64, 32) else a, params)
    return functools.partial(_EXTEND, graphdef), params


def gemma() -> tuple[Any, Any]:
    """(extend, params) of a tiny Gemma 4: sliding layers whose window (8) is short, shared keys and values."""
    from tests.running import tiny_gemma

    made = tiny_gemma("gemma4 edge")
    return functools.partial(_EXTEND, made.graphdef), made.params


def markov(
    params: Any, tokens: jax.Array, positions: jax.Array, context: Context, valid: Any = None, at: Any = None
) -> tuple[jax.Array, Segment]:
    """A mock model whose next-token logits are row `token` of the table `params` [V, V]: its law is known exactly."""
    valid = jnp.ones(tokens.shape, bool) if valid is None else valid
    picked = tokens if at is None else jnp.take_along_axis(tokens, at, axis=1)
    blank = jnp.zeros((*tokens.shape, 1, 1), jnp.float32)
    return params[picked], Segment((blank,), (blank,), positions, valid)
