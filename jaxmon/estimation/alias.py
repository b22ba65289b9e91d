"""Binomials from tables: one random word, one look-up, no rejection loop.

A bootstrap draws the same binomials ten thousand times, so their laws are laid out once. Walker's alias method (ACM
TOMS 3, 1977): W = 2^m columns of equal mass; a word's top m bits choose a column, its other 32 - m bits choose between
the column's own value and its alias. Masses are whole multiples of 2^-32 that add up to 1 exactly; values rarer than
that are left out. An entry packs threshold (32 - m bits) and alias (m bits) into one word.

Bin(n, q) with n known only to lie in low ... low + 4^D - 1 is a sum of independent binomials over the digits of n - low
in base 4: Bin(low, q) + sum_i Bin(d_i 4^i, q), a table for each (`Window`).

Knows: n, q -> tables -> draws. Does not know: counts, patterns, replicates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

TAIL = 32 * np.log(2)  # values beyond the Bernstein bound of probability 2^-32 are left out of a table
BASE = 4


class Table(NamedTuple):
    """Laws of one shape [...]: `lowest` float32 [...], the value of column 0; `entry` uint32 [..., W]."""

    lowest: Any
    entry: Any


class Window(NamedTuple):
    """Bin(n, q) for n in low ... low + 4^D - 1; low float32 [...]; base [...]; digits: D tables [..., 3]."""

    low: Any
    base: Table
    digits: tuple[Table, ...]


def half_width(n: Any, q: Any) -> Any:
    """t with P(|K - nq| > t) <= 2^-31 for K ~ Bin(n, q): exp(-t^2 / (2 (var + t/3))) = 2^-32 (Bernstein)."""
    return TAIL / 3 + np.sqrt(TAIL**2 / 9 + 2 * TAIL * n * q * (1 - q))


def _bits(n: int) -> int:
    """Bits that number the values of Bin(n, .) in a table; of n alone, so that equal studies share shapes."""
    half = half_width(n, 0.5)
    return min(n, int(np.ceil(n / 2 + half)) - int(np.floor(n / 2 - half))).bit_length()


def table(n: np.ndarray, q: np.ndarray) -> Table:
    """Alias tables of Bin(n, q).

    Args: n: whole numbers >= 0 (float or int); q in [0, 1]; one shape.
    Returns: Table (NumPy).
    """
    n, q = np.asarray(n, np.int64), np.asarray(q, np.float64)
    start = np.maximum(0, np.floor(n * q - half_width(n, q))).astype(np.int64)
    m = _bits(int(n.max(initial=1)))
    k = start[..., None] + np.arange(1 << m)
    return Table(start.astype(np.float32), _pack(_whole(_masses(n[..., None], q[..., None], k)), m))


def _masses(n: np.ndarray, q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """P(Bin(n, q) = k), float64; 0 where k > n."""
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n.max(initial=0) + 1)))])
    inside = k <= n
    k = np.minimum(k, n)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_q, log_p = np.log(q), np.log1p(-q)
        powers = np.where(k > 0, k * log_q, 0.0) + np.where(n > k, (n - k) * log_p, 0.0)
    return np.where(inside, np.exp(log_factorial[n] - log_factorial[k] - log_factorial[n - k] + powers), 0.0)


def _whole(mass: np.ndarray) -> np.ndarray:
    """Masses as int64 multiples of 2^-32 that add up to 2^32; the mode takes what rounding leaves."""
    whole = np.rint(mass * 2.0**32).astype(np.int64)
    mode = mass.argmax(-1)[..., None]
    rest = 2**32 - whole.sum(-1, keepdims=True)
    np.put_along_axis(whole, mode, np.take_along_axis(whole, mode, -1) + rest, -1)
    return whole


def _pack(whole: np.ndarray, m: int) -> np.ndarray:
    """Alias tables of integer masses [..., 2^m]: all laws in step, one column finished per turn.

    Columns wait in ascending order of mass. Each turn the current one is filled up from the heaviest; once that is no
    longer overfull it becomes the current one. What is left always has the mean of a full column: this never fails.
    """
    columns, full = 1 << m, 1 << (32 - m)
    mass = whole.reshape(-1, columns)
    rows = np.arange(len(mass))
    order = np.argsort(mass, 1, kind="stable")
    mass = np.take_along_axis(mass, order, 1)
    entry = np.zeros(mass.shape, np.int64)
    light, heavy = np.zeros(len(mass), np.int64), np.full(len(mass), columns - 1)
    now = light.copy()
    for _ in range(columns - 1):
        has = mass[rows, now]
        entry[rows, now] = np.where(has < full, (has << m) | order[rows, heavy], order[rows, now])
        mass[rows, heavy] -= full - has
        emptied = mass[rows, heavy] < full
        light += ~emptied
        now = np.where(emptied, heavy, light)
        heavy -= emptied
    entry[rows, now] = order[rows, now]  # the last column is full: it is its own alias
    out = np.empty_like(entry)
    np.put_along_axis(out, order, entry, 1)
    return out.astype(np.uint32).reshape(whole.shape)


def window(n: np.ndarray, reach: np.ndarray, q: np.ndarray) -> Window:
    """Tables for Bin(left, q), where left ~ Bin(n, reach) is a draw of its own.

    Args: n whole, reach, q in [0, 1], one shape.
    Returns: Window that holds every `left` but those of probability 2^-31.
    """
    n = np.asarray(n, np.float64)
    low = np.maximum(0, np.floor(n * reach - half_width(n, reach)))
    high = np.minimum(n, np.ceil(n * reach + half_width(n, reach)))
    low, high = np.where(reach < 1, low, n), np.where(reach > 0, high, 0)
    depth = -(-_bits(int(n.max(initial=1))) // 2)
    of_digit = lambda i: np.broadcast_to(np.arange(1, BASE) * BASE**i, (*n.shape, BASE - 1))
    spread = np.broadcast_to(q[..., None], (*n.shape, BASE - 1))
    digits = tuple(table(of_digit(i), spread) for i in range(depth))
    return Window(low.astype(np.float32), table(low, q), digits)


def draw(laws: Table, row: jax.Array, word: jax.Array) -> jax.Array:
    """One draw of each law laws[row] (the leading axes of `laws` flattened): row int32, word uint32 -> float32."""
    m = laws.entry.shape[-1].bit_length() - 1
    column = word >> (32 - m)
    entry = laws.entry.reshape(-1).at[(row << m) + column.astype(jnp.int32)].get(mode="promise_in_bounds")
    own = (word & jnp.uint32((1 << (32 - m)) - 1)) < (entry >> m)
    lowest = laws.lowest.reshape(-1).at[row].get(mode="promise_in_bounds")
    return lowest + jnp.where(own, column, entry & jnp.uint32((1 << m) - 1)).astype(jnp.float32)


def draw_window(laws: Window, row: jax.Array, n: jax.Array, words: Sequence[jax.Array]) -> jax.Array:
    """One draw of Bin(n, q) for each law laws[row]; n float32, 1 + D words uint32 -> float32, at most n."""
    over = jnp.clip(n - laws.low[row], 0, BASE ** len(laws.digits) - 1).astype(jnp.int32)
    total = draw(laws.base, row, words[0])
    for i, laws_of in enumerate(laws.digits):
        digit = (over >> (2 * i)) & 3
        drawn = draw(laws_of, row * 3 + jnp.maximum(digit, 1) - 1, words[1 + i])
        total = total + jnp.where(digit > 0, drawn, jnp.zeros_like(drawn))
    return jnp.minimum(total, n)
