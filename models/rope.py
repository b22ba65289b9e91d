"""Rotary position embedding as data: a vector of frequencies and one scale per layer group.

Knows: default, linear, proportional and YaRN frequencies (the equations of `transformers`' rope utilities and of arXiv
2309.00071).
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

# The fields each rope type has, beside its name and theta.
FIELDS: Mapping[str, frozenset[str]] = {
    "default": frozenset(),
    "linear": frozenset({"factor"}),
    "proportional": frozenset({"factor", "partial_rotary_factor"}),
    "yarn": frozenset(
        {
            "factor",
            "original_max_position_embeddings",
            "attention_factor",
            "beta_fast",
            "beta_slow",
            "mscale",
            "mscale_all_dim",
            "truncate",
        }
    ),
}


@dataclasses.dataclass(frozen=True)
class Rope:
    """Angles of a layer group: pair (d, d + H/2) turns by position * frequencies[d]; cos and sin times `scale`.

    A zero frequency leaves its pair unrotated (partial and proportional rotary embeddings).
    """

    frequencies: tuple[float, ...]  # H/2 values, radians per token
    scale: float = 1.0  # YaRN's attention factor; 1 elsewhere


def make_rope(head_dim: int, theta: float, scaling: Mapping[str, Any] | None, max_positions: int) -> Rope:
    """Frequencies of a checkpoint's rope fields.

    default: f_d = theta^(-2d/H). linear: f_d / factor. proportional: f_d / factor (1 where not given) for the first
    partial_rotary_factor of the pairs, 0 for the others; the exponent's denominator stays H. yarn: a ramp between f_d
    (fast dims) and f_d / factor (slow dims), cos and sin scaled by 0.1 ln(factor) + 1.

    Args:
      head_dim: H, even.
      theta: base, > 1.
      scaling: the `rope_scaling` / `rope_parameters` dict, or None.
      max_positions: the config's max_position_embeddings, YaRN's original length where the dict has none.

    Raises:
      ValueError: an unknown rope type, a field the type does not have, a value out of range or not a number.
    """
    if head_dim % 2 or head_dim < 2:
        raise ValueError(f"head_dim must be even and positive, got {head_dim}")
    if not theta > 1.0:
        raise ValueError(f"theta must be > 1, got {theta}")
    kind, fields = _read(scaling or {})
    # Rounded to float32 step by step, as the models' own code does: at position 10^4 one rounding of a frequency
    # is already visible in the angle.
    exponents = np.arange(0, head_dim, 2, dtype=np.float32) / np.float32(head_dim)
    periods = (np.float64(theta) ** exponents.astype(np.float64)).astype(np.float32)
    base = np.float32(1) / periods
    if kind == "default":
        return _rope(base)
    if kind == "proportional":
        part = _number(fields, "partial_rotary_factor", 1.0)
        if part > 1:
            raise ValueError(f"rope field partial_rotary_factor must be in (0, 1], got {part}")
        turning = np.arange(head_dim // 2) < int(part * head_dim // 2)
        return _rope(np.where(turning, base / np.float32(_number(fields, "factor", 1.0, at_least=1.0)), np.float32(0)))
    factor = _number(fields, "factor", at_least=1.0)
    if kind == "linear":
        return _rope(base / np.float32(factor))
    ramp = _yarn_ramp(head_dim, theta, fields, max_positions)
    slow = np.float32(1) / (np.float32(factor) * periods)
    return _rope(slow * ramp + base * (np.float32(1) - ramp), _yarn_scale(factor, fields))


def _read(scaling: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The type and its own fields; `type` is the legacy name of `rope_type`, `rope_theta` comes as an argument."""
    kinds = {scaling[k] for k in ("rope_type", "type") if scaling.get(k) is not None} or {"default"}
    if len(kinds) > 1:
        raise ValueError(f"rope_type and type contradict each other ({', '.join(sorted(map(str, kinds)))})")
    kind = kinds.pop()
    if kind not in FIELDS:
        raise ValueError(f"rope type {kind!r} is not supported (have {', '.join(FIELDS)})")
    fields = {k: v for k, v in scaling.items() if v is not None and k not in ("rope_theta", "rope_type", "type")}
    if unknown := sorted(set(fields) - FIELDS[kind]):
        raise ValueError(f"rope type {kind!r} has no field {', '.join(unknown)}")
    return kind, fields


def _number(fields: Mapping[str, Any], name: str, default: float | None = None, at_least: float = 0.0) -> float:
    value = fields.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not max(at_least, 1e-6) <= value < math.inf:
        raise ValueError(f"rope field {name} must be a number {f'>= {at_least}' if at_least else '> 0'}, got {value!r}")
    return float(value)


def _yarn_ramp(head_dim: int, theta: float, fields: Mapping[str, Any], max_positions: int) -> np.ndarray:
    """0 for dims that turn often within the original length, 1 for those that do not complete a turn; [H/2]."""
    original = _number(fields, "original_max_position_embeddings", float(max_positions), at_least=1.0)
    fast, slow = _number(fields, "beta_fast", 32.0), _number(fields, "beta_slow", 1.0)
    if not isinstance(fields.get("truncate", True), bool):
        raise ValueError(f"rope field truncate must be true or false, got {fields['truncate']!r}")

    def dim_of(turns: float) -> float:  # the (fractional) dim that makes `turns` turns in the original length
        return head_dim * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(theta))

    low, high = dim_of(fast), dim_of(slow)
    if fields.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, head_dim - 1)
    if low > high:
        raise ValueError(
            f"rope type 'yarn' has an empty ramp (beta_fast {fast}, beta_slow {slow}, original length {original:g})"
        )
    width = high - low if high > low else 0.001
    return np.clip((np.arange(head_dim // 2, dtype=np.float32) - np.float32(low)) / np.float32(width), 0, 1)


def _yarn_scale(factor: float, fields: Mapping[str, Any]) -> float:
    """The attention factor: given, or the ratio of the two mscale terms, or 0.1 ln(factor) + 1."""
    if "attention_factor" in fields:
        return _number(fields, "attention_factor")

    def term(weight: float) -> float:
        return 0.1 * weight * math.log(factor) + 1.0

    given = [_number(fields, name) for name in ("mscale", "mscale_all_dim") if fields.get(name)]
    if len(given) == 1:
        raise ValueError("rope fields mscale and mscale_all_dim must be given together")
    return term(given[0]) / term(given[1]) if given else term(1.0)


def _rope(frequencies: np.ndarray, scale: float = 1.0) -> Rope:
    return Rope(tuple(float(f) for f in frequencies), scale)


def rotate(x: Array, positions: Array, rope: Rope) -> Array:
    """Rotates queries or keys [B, T, heads, H] to their positions int [B, T]; once, at the time they are made."""
    angles = (
        positions[..., None, None].astype(jnp.float32) * jnp.asarray(rope.frequencies, jnp.float32)[None, None, None]
    )
    cos, sin = jnp.cos(angles) * rope.scale, jnp.sin(angles) * rope.scale
    first, second = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1).astype(x.dtype)
