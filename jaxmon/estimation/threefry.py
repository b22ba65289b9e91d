"""Random words that stay in registers: Threefry-2x32, 20 rounds, unrolled, both output words used.

Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3" (rotations and key constant from there).
It is the same function as jax.random's default; tests/test_alias.py compares them bit for bit. jax.random.bits keeps
one word of two and, on CPUs, runs its rounds as a loop that no consumer is fused with: on the machine this was measured
on, 14 ns a word against 1.2 ns here.

Knows: key and counter -> words. Does not know: what is drawn with them.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


def words(key: jax.Array, high: jax.Array, low: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Two independent words per counter (high, low).

    Args:
      key: uint32 [2], e.g. jax.random.key_data of a Threefry key.
      high, low: uint32, broadcast against each other; no counter may be used twice with one key.
    Returns: two uint32 arrays of the counters' shape.
    """
    keys = (key[0], key[1], key[0] ^ key[1] ^ jnp.uint32(PARITY))
    a, b = high + keys[0], low + keys[1]
    for group in range(5):
        for r in ROTATIONS[group % 2]:
            a = a + b
            b = ((b << r) | (b >> (32 - r))) ^ a
        a = a + keys[(group + 1) % 3]
        b = b + (keys[(group + 2) % 3] + jnp.uint32(group + 1))
    return a, b


def unit(word: jax.Array) -> jax.Array:
    """float32 in (0, 1], in steps of 2^-24."""
    return ((word >> 8) + jnp.uint32(1)).astype(jnp.float32) * jnp.float32(2**-24)
