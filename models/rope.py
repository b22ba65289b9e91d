"""Rotary position embedding as data: a vector of frequencies and one scale per layer group.

Knows: default, linear and YaRN scaling (the equations of `transformers`' rope utilities and of arXiv 2309.00071).
Does not know: which layers use it. There is no table and no cache: angles are computed from positions at each call.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Array = jax.Array


@dataclasses.dataclass(frozen=True)
class Rope:
    """Angles of a layer group: pair (d, d + H/2) turns by position * frequencies[d]; cos and sin times `scale`.

    A zero frequency leaves its pair unrotated (partial and proportional rotary embeddings).
    """

    frequencies: tuple[float, ...]  # H/2 values, radians per token
    scale: float = 1.0  # YaRN's attention factor; 1 elsewhere


def make_rope(head_dim: int, theta: float, scaling: Mapping[str, Any] | None, max_positions: int) -> Rope:
    """Frequencies of a checkpoint's rope fields.

    default: f_d = theta^(-2d/H). linear: f_d / factor. yarn: a ramp between f_d (fast dims) and f_d / factor (slow
    dims), cos and sin scaled by 0.1 ln(factor) + 1.

    Args:
      head_dim: H, even.
      theta: base.
      scaling: the `rope_scaling` / `rope_parameters` dict, or None.
      max_positions: the config's max_position_embeddings, YaRN's original length where the dict has none.

    Raises:
      ValueError: an unknown rope type, a field the type does not have, or a missing or non-positive factor.
    """
    base = theta ** (-np.arange(0, head_dim, 2, dtype=np.float64) / head_dim)
    fields = {k: v for k, v in (scaling or {}).items() if v is not None and k not in ("rope_theta", "type")}
    kind = fields.pop("rope_type", (scaling or {}).get("type", "default"))
    known: dict[str, set[str]] = {
        "default": set(),
        "linear": {"factor"},
        "yarn": {
            "factor",
            "original_max_position_embeddings",
            "attention_factor",
            "beta_fast",
            "beta_slow",
            "mscale",
            "mscale_all_dim",
            "truncate",
        },
    }
    if kind not in known:
        raise ValueError(f"rope type {kind!r} is not supported (have {', '.join(known)})")
    if unknown := sorted(set(fields) - known[kind]):
        raise ValueError(f"rope type {kind!r} has no field {', '.join(unknown)}")
    if kind == "default":
        return _rope(base)
    factor = float(fields.get("factor", 0.0))
    if factor < 1.0:
        raise ValueError(f"rope type {kind!r} needs a factor >= 1, got {fields.get('factor')}")
    if kind == "linear":
        return _rope(base / factor)
    return _yarn(base, head_dim, theta, factor, fields, max_positions)


def _yarn(
    base: np.ndarray, head_dim: int, theta: float, factor: float, fields: Mapping[str, Any], max_positions: int
) -> Rope:
    original = fields.get("original_max_position_embeddings", max_positions)

    def dim_of(turns: float) -> float:  # the (fractional) dim that makes `turns` turns in the original length
        return head_dim * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(theta))

    low, high = dim_of(fields.get("beta_fast", 32.0)), dim_of(fields.get("beta_slow", 1.0))
    if fields.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, head_dim - 1)
    ramp = np.clip((np.arange(head_dim // 2) - low) / max(high - low, 1e-3), 0.0, 1.0)

    def mscale(weight: float) -> float:
        return 0.1 * weight * math.log(factor) + 1.0 if factor > 1 else 1.0

    scale = fields.get("attention_factor")
    if scale is None:
        both = fields.get("mscale") and fields.get("mscale_all_dim")
        scale = mscale(fields["mscale"]) / mscale(fields["mscale_all_dim"]) if both else mscale(1.0)
    return _rope(base * (1 - ramp) + base / factor * ramp, float(scale))


def _rope(frequencies: np.ndarray, scale: float = 1.0) -> Rope:
    return Rope(tuple(float(f) for f in frequencies), scale)


def _turn(x: Array, positions: Array, rope: Rope, scale: float) -> Array:
    angles = positions[..., None, None].astype(jnp.float32) * jnp.asarray(rope.frequencies, jnp.float32)[None, None, None]
    cos, sin = jnp.cos(angles) * scale, jnp.sin(angles) * scale
    first, second = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1).astype(x.dtype)


def rotate(x: Array, positions: Array, rope: Rope) -> Array:
    """Rotates queries or keys [B, T, heads, H] to their positions int [B, T]; once, at the time they are made."""
    return _turn(x, positions, rope, rope.scale)
