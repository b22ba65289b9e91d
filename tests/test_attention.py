"""Attention over segments equals one softmax over their union, however the union is cut."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.attention import MASKED, merge, partial_softmax, visible

B, T, K, G, H = 2, 3, 2, 2, 4


def draw(slots: int, seed: int = 0, scale: float = 1.0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    sizes = (B, T, K, G, H), (B, slots, K, H), (B, slots, K, H)
    query, keys, values = (rng.standard_normal(s).astype(np.float32) for s in sizes)
    return query * scale, keys, values, rng.random((B, T, slots)) < 0.7


def by_loops(query: np.ndarray, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The definition, one query at a time in float64."""
    out = np.zeros(query.shape)
    for b, t, k, g in np.ndindex(query.shape[:4]):
        seen = np.flatnonzero(mask[b, t])
        if len(seen):
            scores = keys[b, seen, k].astype(np.float64) @ query[b, t, k, g]
            weights = np.exp(scores - scores.max())
            out[b, t, k, g] = weights @ values[b, seen, k] / weights.sum()
    return out


def attend(query: np.ndarray, keys: np.ndarray, values: np.ndarray, mask: np.ndarray, cuts: list[int]) -> jax.Array:
    edges = [0, *sorted(cuts), keys.shape[1]]
    parts = [
        partial_softmax(
            jnp.asarray(query), *(jnp.asarray(a[:, i:j]) for a in (keys, values)), jnp.asarray(mask[..., i:j])
        )
        for i, j in itertools.pairwise(edges)
    ]
    return merge(parts)


@settings(deadline=None, max_examples=25)
@given(
    st.integers(1, 9), st.lists(st.integers(0, 9), max_size=3), st.integers(0, 99), st.sampled_from([0.1, 1.0, 30.0])
)
def test_any_cut_gives_the_softmax_of_the_union(slots: int, cuts: list[int], seed: int, scale: float) -> None:
    query, keys, values, mask = draw(slots, seed, scale)
    got = attend(query, keys, values, mask, [min(c, slots) for c in cuts])
    np.testing.assert_allclose(got, by_loops(query, keys, values, mask), atol=2e-5, rtol=0)


def test_shared_segment_equals_its_copy_in_every_row() -> None:
    query, keys, values, mask = draw(5)
    shared = partial_softmax(*(jnp.asarray(a) for a in (query, keys[:1], values[:1], mask)))
    copies = partial_softmax(*(jnp.asarray(a) for a in (query, keys[[0, 0]], values[[0, 0]], mask)))
    for a, b in zip(shared, copies, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_22_23_a_row_that_sees_nothing_is_zero_with_zero_gradient() -> None:
    query, keys, values, mask = draw(4)
    mask[0, 1] = False

    def total(*arrays: jax.Array) -> jax.Array:
        return merge([partial_softmax(*arrays, jnp.asarray(mask))] * 2)[0, 1].sum()

    arrays = [jnp.asarray(a) for a in (query, keys, values)]
    out = merge([partial_softmax(*arrays, jnp.asarray(mask))])
    assert np.isfinite(out).all()
    np.testing.assert_array_equal(out[0, 1], 0)
    for slope in jax.grad(total, argnums=(0, 1, 2))(*arrays):
        np.testing.assert_array_equal(slope, 0)


def test_22_a_masked_segment_adds_nothing_and_what_it_holds_is_not_read() -> None:
    query, keys, values, mask = draw(4)
    real = partial_softmax(*(jnp.asarray(a) for a in (query, keys, values, mask)))
    alone = merge([real])
    dead = partial_softmax(
        jnp.asarray(query), jnp.asarray(keys * 1e8), jnp.asarray(values), jnp.zeros(mask.shape, bool)
    )
    for parts in ([real, dead], [dead, real], [dead, real, dead]):
        np.testing.assert_allclose(merge(parts), alone, atol=1e-6)


@pytest.mark.parametrize("shift", [-300.0, 0.0, 300.0])
def test_large_scores_stay_finite_and_shift_free(shift: float) -> None:
    """A constant added to all scores cancels, also where exp would overflow."""
    query, keys, values, mask = draw(6)
    query[..., 0], keys[..., 0] = 1.0, keys[..., 0] * 0 + shift
    got = attend(query, keys, values, mask, [2, 4])
    keys[..., 0] = 0
    np.testing.assert_allclose(got, by_loops(query, keys, values, mask), atol=1e-4, rtol=0)


def test_bfloat16_statistics_are_float32() -> None:
    query, keys, values, mask = draw(6)
    narrow = [jnp.asarray(a, jnp.bfloat16) for a in (query, keys, values)]
    part = partial_softmax(*narrow, jnp.asarray(mask))
    assert {a.dtype for a in part} == {jnp.dtype(jnp.float32)}
    exact = by_loops(*(np.asarray(a, np.float32) for a in narrow), mask)
    np.testing.assert_allclose(merge([part]), exact, atol=2e-2, rtol=0)  # weights rounded to 8 bits, |values| < 4


def test_a_window_is_counted_in_positions() -> None:
    """Key j is seen from i iff i - W < j <= i: W tokens, itself among them, wherever they are stored (W = 3)."""
    positions = jnp.asarray([[7, 4, 5, 6, 9]])
    seen = visible(positions, positions, jnp.ones((1, 5), bool), 3)
    by_hand = [[i - 3 < j <= i for j in (7, 4, 5, 6, 9)] for i in (7, 4, 5, 6, 9)]
    np.testing.assert_array_equal(seen[0], by_hand)
    np.testing.assert_array_equal(seen[0].sum(-1), [3, 1, 2, 3, 2])  # 7 sees 5, 6, 7; 9 sees 7 and itself


def test_visible_by_position_not_by_slot() -> None:
    seen = visible(jnp.asarray([[5, 1]]), jnp.asarray([[9, 5, 0, 1]]), jnp.asarray([[True, True, True, False]]))
    np.testing.assert_array_equal(seen, [[[False, True, True, False], [False, False, True, False]]])
    assert MASKED < -1e29
