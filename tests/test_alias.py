"""Tables of binomial laws against scipy's, and the random words against jax.random's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxmon.estimation import alias, threefry


def test_words_are_those_of_jax_random():
    """jax.random.bits of a Threefry key xors the two words of counter (0, i)."""
    key = jax.random.key(3)
    i = jnp.arange(100, dtype=jnp.uint32)
    a, b = threefry.words(jax.random.key_data(key), jnp.zeros_like(i), i)
    np.testing.assert_array_equal(a ^ b, jax.random.bits(key, (100,), jnp.uint32))


def law(table, row, size):
    """The exact law that a packed table draws from: every column's mass, split at its threshold."""
    entry = table.entry.reshape(-1, table.entry.shape[-1])[row].astype(np.int64)
    m = len(entry).bit_length() - 1
    p = np.zeros(size)
    start = int(table.lowest.reshape(-1)[row])
    np.add.at(p, start + np.arange(len(entry)), (entry >> m) / 2.0**32)
    np.add.at(p, start + (entry & (len(entry) - 1)), (2.0 ** (32 - m) - (entry >> m)) / 2.0**32)
    return p


CASES = [
    (1000, 0.5),
    (1000, 0.03),
    (1000, 0.997),
    (20, 0.5),
    (7, 0.3),
    (1, 0.7),
    (0, 0.4),
    (50, 0.0),
    (50, 1.0),
    (2000, 0.2),
]


def test_tables_hold_the_exact_laws():
    """Every probability within 2^-30: rounding takes 2^-33 of each, the mode what is left over, the tails 2^-31."""
    table = alias.table(*np.array(CASES).T)
    for row, (n, q) in enumerate(CASES):
        p = law(table, row, 4096)
        assert p.sum() == 1
        assert np.abs(p - stats.binom.pmf(np.arange(4096), n, q)).max() < 2**-25 / 4
        assert np.abs(p - stats.binom.pmf(np.arange(4096), n, q)).sum() < 2**-22


@pytest.mark.parametrize("left", [0, 1, 77, 255])
def test_a_window_draws_the_law_of_what_is_left(left):
    """The convolution of the digits' laws is the binomial law, exactly."""
    n, reach, q = np.array([1000.0]), np.array([0.5]), np.array([0.3])
    w = alias.window(n, reach, q)
    p = law(w.base, 0, 2048)
    for i, digits in enumerate(w.digits):
        d = (left >> (2 * i)) & 3
        if d:
            p = np.convolve(p, law(digits, d - 1, 512))[:2048]
    exact = stats.binom.pmf(np.arange(2048), int(w.low[0]) + left, 0.3)
    assert np.abs(p - exact).sum() < 2**-20


@pytest.mark.parametrize(("n", "reach"), [(1000, 0.5), (1000, 0.0), (1000, 1.0), (24, 0.4), (1, 0.5), (20_000, 0.9)])
def test_windows_hold_what_can_be_left(n, reach):
    w = alias.window(np.array([float(n)]), np.array([reach]), np.array([0.2]))
    low, high = int(w.low[0]), int(w.low[0]) + 4 ** len(w.digits) - 1
    assert stats.binom.cdf(low - 1, n, reach) + stats.binom.sf(high, n, reach) < 2**-30


def test_draws_read_the_tables():
    """200,000 draws of three windows: mean and variance within 6 standard errors (4e-9 each), and never more than n."""
    q = np.array([0.3, 0.02, 1.0])
    w = jax.tree.map(jnp.asarray, alias.window(np.full(3, 1000.0), np.full(3, 0.5), q))
    size = 200_000
    i = jnp.arange(size, dtype=jnp.uint32)
    pairs = -(-(1 + len(w.digits)) // 2)
    words = [x for h in range(pairs) for x in threefry.words(jnp.array([5, 6], jnp.uint32), jnp.full_like(i, h), i)]
    for row in range(3):
        for n in (400, 500, 613):
            drawn = np.asarray(alias.draw_window(w, jnp.int32(row), jnp.full(size, n, jnp.float32), words), float)
            var = n * q[row] * (1 - q[row])
            assert drawn.max() <= n
            assert abs(drawn.mean() - n * q[row]) <= 6 * np.sqrt(var / size) + 1e-5
            assert abs(drawn.var() - var) <= 6 * var * np.sqrt(2.2 / size) + 1e-5
