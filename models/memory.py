"""Bytes of weights and of chains on one device, and how many chains fit: plans, tables and refusals count with these.

Keys and values are counted from the segment that `extend` would make, so layers without keys of their own and layers of
other head sizes count as what they are. Sliding layers are cached in full (a prompt can be swapped under them).

Knows: shapes, shardings. Does not know: any family, the study. GiB are 2^30 bytes.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from models.context import Segment

SPARE = 0.1  # of a device's memory, for activations, sorted laws and programs: a rule of thumb, not measured


def weights(params: Any) -> int:
    """Bytes of parameters that one device holds; leaves are arrays, or shapes with or without a sharding."""

    def held(leaf: Any) -> int:
        shape = leaf.shape if leaf.sharding is None else leaf.sharding.shard_shape(leaf.shape)
        return math.prod(shape) * leaf.dtype.itemsize

    return sum(held(leaf) for leaf in jax.tree.leaves(params))


def states(extend: Callable[..., Any], graphdef: Any, params: Any) -> Segment:
    """Shapes of the keys and values of one token of one chain: what `extend` would make, nothing computed."""
    one = jax.ShapeDtypeStruct((1, 1), jnp.int32)
    bare = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), params)
    return jax.eval_shape(lambda p, t, at: extend(graphdef, p, t, at)[1], bare, one, one)


def token(made: Segment, model_axis: int = 1) -> int:
    """Bytes of one token's keys and values on one device; kv heads are cut where the axis divides them."""
    parts = lambda heads: 1 if heads % model_axis else model_axis
    return sum(math.prod(a.shape) // parts(a.shape[2]) * a.dtype.itemsize for a in (*made.keys, *made.values))


def chain(token_bytes: int, length: int, vocabulary: int) -> int:
    """Bytes of one chain in flight: keys and values of `length` tokens, and the next token's float32 logits."""
    return length * token_bytes + 4 * vocabulary


def fit(limit: float, held: int, each: int) -> int:
    """How many chains of `each` bytes fit beside `held` bytes into a device of `limit` bytes, with SPARE left over."""
    return max(0, int((limit * (1 - SPARE) - held) // each))


def limit(device: jax.Device) -> int:
    """Bytes a device can give; a CPU's share of the machine's memory where the backend does not say."""
    stats = device.memory_stats() or {}
    if "bytes_limit" in stats:
        return int(stats["bytes_limit"])
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // jax.local_device_count()


def gib(count: float) -> str:
    """Bytes for people."""
    return f"{count / 2**30:,.2f} GiB"
