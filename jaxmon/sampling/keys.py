"""A draw belongs to its name: seed, record, arm, chain, step; never to its place in a batch.

Chain 17 of an arm is therefore the same whether it is drawn alone, in any block, before or after a crash, on one device
or eight. Nothing else (worker, shard, slot, clock) enters a key.
"""

from __future__ import annotations

import hashlib

import jax

Array = jax.Array


def _words(name: str) -> tuple[int, int]:
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:], "little")


def arm_key(seed: int, record: str, arm: str) -> Array:
    """The key of one arm of one record: the seed folded with 64 bits of each name's BLAKE2b digest.

    Args:
      seed: the run's seed, 0 <= seed < 2^32; there is no default (a silent one froze other people's randomness).
      record, arm: stable ids; their text decides, not their order.
    """
    if not 0 <= seed < 2**32:
        raise ValueError(f"seed must be in [0, 2^32), got {seed}")
    key = jax.random.key(seed, impl="threefry2x32")
    for word in (*_words(record), *_words(arm)):
        key = jax.random.fold_in(key, word)
    return key


def draw_key(arm: Array, chain: Array, step: Array) -> Array:
    """The key of one token draw: the arm's key folded with the chain's id and the step within the chain."""
    return jax.random.fold_in(jax.random.fold_in(arm, chain), step)
