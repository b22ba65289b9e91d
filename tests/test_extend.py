"""The algebra of contexts: cuts, shared prompts, padding and positions leave the logits where they belong."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from models.context import empty, write
from tests import checkpoints
from tests.running import extend, places, take, tiny

FAMILIES = ["qwen2", "qwen3 yarn"]


@pytest.mark.parametrize("name", FAMILIES)
def test_20_extend_at_every_split(name: str) -> None:
    """extend(a + b) = extend(extend(a), b), and slices of one cached run serve as well (idea 1)."""
    model, tokens = tiny(name), checkpoints.tokens(length=4)
    positions = places(tokens, 50)
    whole, segment = extend(model, tokens, positions)
    for cut in range(1, 4):
        _, first = extend(model, tokens[:, :cut], positions[:, :cut])
        for before in (first, take(segment, 0, cut)):
            rest, second = extend(model, tokens[:, cut:], positions[:, cut:], (before,))
            np.testing.assert_allclose(rest, whole[:, cut:], atol=2e-5, rtol=0)
            for made, kept in zip(second.keys, segment.keys, strict=True):
                np.testing.assert_allclose(made, kept[:, cut:], atol=2e-5, rtol=0)
    none, _ = extend(model, tokens, positions, (take(segment, 0, 0),))  # a cut at 0: a segment of no slots
    np.testing.assert_allclose(none, whole, atol=2e-5, rtol=0)


@pytest.mark.parametrize("name", FAMILIES)
def test_32_cached_decode_equals_full_pass(name: str) -> None:
    """A shared prompt (batch 1), then token by token into a buffer of B rows, against one pass over everything."""
    model = tiny(name)
    prompt, chains = checkpoints.tokens(rows=1, length=5), checkpoints.tokens(rows=3, length=7, seed=3)
    whole = np.concatenate([np.repeat(prompt, 3, 0), chains], axis=1)
    expected, _ = extend(model, whole, places(whole))
    _, shared = extend(model, prompt, places(prompt))
    buffer = empty(shared, 3, 8)
    for i in range(7):
        token, where = chains[:, i : i + 1], np.full((3, 1), 5 + i, np.int32)
        logits, new = extend(model, token, where, (shared, buffer))
        np.testing.assert_allclose(logits[:, 0], expected[:, 5 + i], atol=2e-5, rtol=0)
        buffer = write(buffer, new, jnp.full(3, i, jnp.int32), jnp.ones(3, bool))


@pytest.mark.parametrize("name", FAMILIES)
def test_24_26_27_ragged_rows(name: str) -> None:
    """Right padding is seen by nobody: every row equals the same row alone, at prefill and eight steps later."""
    model, lengths = tiny(name), (12, 7, 1)
    tokens = checkpoints.tokens(rows=3, length=12)
    valid = np.arange(12)[None] < np.array(lengths)[:, None]
    last = jnp.asarray([[n - 1] for n in lengths], jnp.int32)
    logits, prompts = extend(model, np.where(valid, tokens, 0), places(tokens), (), jnp.asarray(valid), last)
    follow = checkpoints.tokens(rows=3, length=8, seed=5)
    where = np.array(lengths, np.int32)[:, None] + np.arange(8, dtype=np.int32)
    after, _ = extend(model, follow, where, (prompts,))
    for row, n in enumerate(lengths):
        alone = np.concatenate([tokens[row : row + 1, :n], follow[row : row + 1]], axis=1)
        expected, _ = extend(model, alone, places(alone))
        np.testing.assert_allclose(logits[row, 0], expected[0, n - 1], atol=2e-5, rtol=0)
        np.testing.assert_allclose(after[row], expected[0, n:], atol=2e-5, rtol=0)


@pytest.mark.parametrize("name", FAMILIES)
def test_16_17_rows_do_not_see_their_neighbours(name: str) -> None:
    model, tokens = tiny(name), checkpoints.tokens(rows=4)
    together, _ = extend(model, tokens, places(tokens))
    other = np.concatenate([tokens[:1], tokens[:0:-1]])
    np.testing.assert_array_equal(extend(model, other, places(other))[0][0], together[0])
    np.testing.assert_allclose(extend(model, tokens[:1], places(tokens[:1]))[0][0], together[0], atol=2e-5, rtol=0)


@pytest.mark.parametrize("name", ["qwen2", "qwen3", "qwen2 linear", "qwen3 yarn"])
def test_29_30_positions_are_honoured(name: str) -> None:
    """Rotary embeddings are relative: one offset changes nothing, a gap in the middle changes what follows it."""
    model, tokens = tiny(name), checkpoints.tokens()
    plain, _ = extend(model, tokens, places(tokens))
    moved, _ = extend(model, tokens, places(tokens, 37))
    np.testing.assert_allclose(moved, plain, atol=5e-5, rtol=0)
    gap = places(tokens) + np.where(np.arange(12) >= 6, 20, 0).astype(np.int32)
    apart, _ = extend(model, tokens, gap)
    np.testing.assert_allclose(apart[:, :6], plain[:, :6], atol=2e-5, rtol=0)
    assert np.abs(np.asarray(apart - plain)[:, 6:]).max() > 1e-2


def test_29_storage_order_is_not_position() -> None:
    """Slots may be stored in any order and in any number of segments; only their positions count."""
    model, tokens = tiny("qwen3"), checkpoints.tokens(length=10)
    expected, whole = extend(model, tokens, places(tokens))
    a, b = take(whole, 0, 4), take(whole, 4, 9)
    for context in ((a, b), (b, a), (take(whole, 2, 9), take(whole, 0, 2))):
        got, _ = extend(model, tokens[:, 9:], places(tokens)[:, 9:], context)
        np.testing.assert_allclose(got[:, 0], expected[:, 9], atol=2e-5, rtol=0)
    flipped = jax.tree.map(lambda x: jnp.flip(x, 2 if x.ndim == 5 else 1), take(whole, 0, 9))
    got, _ = extend(model, tokens[:, 9:], places(tokens)[:, 9:], (flipped,))
    np.testing.assert_allclose(got[:, 0], expected[:, 9], atol=2e-5, rtol=0)


def test_at_picks_logits() -> None:
    model, tokens = tiny("qwen3"), checkpoints.tokens()
    every, _ = extend(model, tokens, places(tokens))
    at = jnp.asarray([[3, 0, 11], [5, 5, 2]], jnp.int32)
    picked, _ = extend(model, tokens, places(tokens), (), None, at)
    np.testing.assert_allclose(picked, np.take_along_axis(np.asarray(every), np.asarray(at)[:, :, None], 1), atol=1e-5)


def test_positions_are_required() -> None:
    model = tiny("qwen3")
    with pytest.raises(TypeError, match="positions"):
        model.extend(model.graphdef, model.params, jnp.asarray(checkpoints.tokens()))
