"""Edits of a segment: shifts add up with rotations, cuts and masks hide, nothing else changes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from models.context import Segment
from models.edits import cut, shift, show
from models.rope import Rope, make_rope, rotate
from tests import checkpoints
from tests.running import extend, places, tiny

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
ROPES = {
    "default": make_rope(16, 1e4, None, 256),
    "linear": make_rope(16, 1e4, {"rope_type": "linear", "factor": 2.0}, 256),
    "yarn, scaled": make_rope(16, 1e6, YARN, 256),
    "partial: half of the pairs stand still": Rope((1.0, 0.3, 0.1, 0.03, 0.0, 0.0, 0.0, 0.0)),
}


def made(rope: Rope, seed: int = 0) -> tuple[jax.Array, Segment]:
    """Raw keys [2, 5, 2, 16], and a segment of one layer with them at positions 3 … 7."""
    raw, values = jax.random.normal(jax.random.key(seed), (2, 2, 5, 2, 16))
    positions = jnp.broadcast_to(3 + jnp.arange(5, dtype=jnp.int32), (2, 5))
    return raw, Segment((rotate(raw, positions, rope),), (values,), positions, jnp.ones((2, 5), bool))


@pytest.mark.parametrize("name", ROPES)
def test_a_shift_is_a_rotation_to_the_later_position(name: str) -> None:
    """shift(rotate(k, p), d) = rotate(k, p + d), rows with distances of their own; 0 is the identity bit for bit."""
    rope = ROPES[name]
    raw, segment = made(rope)
    distance = jnp.array([9, -2], jnp.int32)
    moved = shift(segment, distance, [rope])
    np.testing.assert_array_equal(moved.positions, segment.positions + distance[:, None])
    np.testing.assert_allclose(moved.keys[0], rotate(raw, moved.positions, rope), atol=2e-6, rtol=0)
    np.testing.assert_array_equal(moved.values[0], segment.values[0])
    back = shift(moved, -distance, [rope])
    np.testing.assert_allclose(back.keys[0], segment.keys[0], atol=2e-6, rtol=0)
    jax.tree.map(np.testing.assert_array_equal, shift(segment, jnp.zeros(1, jnp.int32), [rope]), segment)
    assert np.abs(moved.keys[0] - segment.keys[0]).max() > 0.1


@pytest.mark.parametrize("name", ["qwen2", "qwen3 yarn"])
def test_a_shifted_segment_is_the_one_read_there(name: str) -> None:
    """Through all layers: what a model makes of tokens at p, shifted by d, is what it makes of them at p + d."""
    model, tokens = tiny(name), checkpoints.tokens(rows=2, length=6)
    _, here = extend(model, tokens, places(tokens, 4))
    _, there = extend(model, tokens, places(tokens, 15))
    moved = shift(here, jnp.array([11], jnp.int32), model.config.ropes)
    for ours, theirs in zip(jax.tree.leaves(moved), jax.tree.leaves(there), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-5, rtol=0)


def test_cut_and_shown_slots_alone_are_seen() -> None:
    model, tokens, follow = tiny("qwen3"), checkpoints.tokens(rows=2, length=6), checkpoints.tokens(rows=2, length=1)
    _, whole = extend(model, tokens, places(tokens))
    at = np.array([[4], [6]], np.int32)
    logits, _ = extend(model, follow, at, (cut(whole, jnp.array([4, 6], jnp.int32)),))
    _, part = extend(model, tokens[:, :4], places(tokens[:, :4]))
    short, _ = extend(model, follow, at, (part,))
    long, _ = extend(model, follow, at, (whole,))
    np.testing.assert_allclose(logits[0], short[0], atol=1e-5, rtol=0)
    np.testing.assert_array_equal(logits[1], long[1])
    shown, _ = extend(model, follow, at, (show(whole, jnp.array([True, False])),))
    alone, _ = extend(model, follow, at)
    np.testing.assert_array_equal(shown[0], long[0])
    np.testing.assert_allclose(shown[1], alone[1], atol=1e-6, rtol=0)
