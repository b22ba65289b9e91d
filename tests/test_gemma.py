"""Gemma in use: decoding past the window, shared prompts, frozen and shifted states, every parameter used.

Three models stand for the rest: Gemma 3; Gemma 4 with per-layer embeddings and shared keys and values; Gemma 4 with
experts and K = V. Each is compared with one plain pass over the whole text, which test_gemma_parity.py compares with
`transformers`.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmon.sampling import early
from jaxmon.sampling.decode import Prefix, read
from models.assign import by_path
from models.context import Segment, empty, write
from models.edits import shift
from models.loading import Model
from tests import gemma_cases
from tests.gemma_cases import WINDOW
from tests.running import STEP, extend, places, tiny_gemma

NAMES = ("gemma3", "gemma4 edge", "gemma4 26b")
BOUND = 2e-4
LENGTH = 3 * WINDOW


@functools.cache
def whole(name: str) -> tuple[np.ndarray, np.ndarray, Segment]:
    """Four texts of three windows, their logits in one pass, and their states."""
    tokens = gemma_cases.tokens()
    logits, segment = extend(tiny_gemma(name), tokens, places(tokens))
    return tokens, np.asarray(logits), segment


@functools.partial(jax.jit, static_argnums=(0, 1))
def _step(run: Any, graphdef: Any, params: Any, prompt: Any, buffer: Any, token: Any, position: Any, at: Any) -> Any:
    logits, new = run(graphdef, params, token[:, None], position[:, None], (prompt, buffer))
    return logits[:, 0], write(buffer, new, at, jnp.ones(token.shape, bool))


@pytest.mark.parametrize("name", NAMES)
def test_34_35_cached_decoding_past_the_window(name: str) -> None:
    """Rows of a ragged batch (prompts of 5, 8, 9 tokens) go on token by token to three windows; at full length."""
    model, (tokens, logits, segment) = tiny_gemma(name), whole(name)
    starts = np.array([5, 8, 9, 5], np.int32)
    prompt = jax.tree.map(lambda a: a[:, :9], segment)
    prompt = Segment(prompt.keys, prompt.values, prompt.positions, jnp.arange(9)[None] < jnp.asarray(starts)[:, None])
    buffer = empty(segment, 4, LENGTH - 5)
    for step in range(LENGTH - 9):
        position = jnp.asarray(starts + step)
        token = jnp.asarray(tokens[np.arange(4), starts + step])
        got, buffer = _step(
            model.extend, model.graphdef, model.params, prompt, buffer, token, position, jnp.full(4, step, jnp.int32)
        )
        np.testing.assert_allclose(got, logits[np.arange(4), starts + step], atol=BOUND, rtol=0)
    assert len(segment.keys) == len(model.config.ropes) == len(model.config.stored)


@pytest.mark.parametrize("name", NAMES)
def test_19_20_21_a_shared_prompt_split_anywhere(name: str) -> None:
    """prefill(a + b) = extend(prefill(a), b): a is read once for all rows, around the window; logits where wanted."""
    model, (tokens, _, _) = tiny_gemma(name), whole(name)
    run = functools.partial(model.extend, model.graphdef)
    for split in (1, WINDOW - 1, WINDOW, WINDOW + 1, 2 * WINDOW):
        together = np.concatenate([np.tile(tokens[:1, :split], (4, 1)), tokens[:, split:]], 1)
        want, states = extend(model, together, places(together))
        padded = np.zeros((1, LENGTH), np.int32)
        padded[:, :split] = tokens[:1, :split]
        prefix = read(run, model.params, padded, np.int32(split))
        rest = np.zeros((4, LENGTH), np.int32)
        rest[:, : LENGTH - split] = tokens[:, split:]
        valid = jnp.broadcast_to(jnp.arange(LENGTH)[None] < LENGTH - split, rest.shape)
        where = jnp.asarray(split + places(rest))
        got, made = extend(model, rest, where, prefix.context, valid)
        np.testing.assert_allclose(got[:, : LENGTH - split], want[:, split:], atol=BOUND, rtol=0)
        np.testing.assert_allclose(prefix.logits, want[:1, split - 1], atol=BOUND, rtol=0)
        np.testing.assert_allclose(made.keys[-1][:, 0], states.keys[-1][:, split], atol=BOUND, rtol=0)
        if name != "gemma4 edge":
            continue
        at = jnp.asarray([[0, 2], [3, 1], [1, 1], [0, 3]], jnp.int32)  # layers that share are run there alone
        some = extend(model, rest, where, prefix.context, valid, at)[0]
        np.testing.assert_allclose(some, jnp.take_along_axis(got, at[:, :, None], 1), atol=BOUND, rtol=0)


def move(model: Model) -> Any:
    return functools.partial(shift, ropes=model.config.ropes)


@pytest.mark.parametrize("name", NAMES)
def test_31_a_shifted_segment_is_the_one_read_there(name: str) -> None:
    """Sliding, proportional and shared layers: what is made of tokens at p, shifted by d, is made of them at p + d."""
    model, (tokens, _, here) = tiny_gemma(name), whole(name)
    there = extend(model, tokens, places(tokens, 37))[1]
    moved = move(model)(here, jnp.array([37], jnp.int32))
    for ours, theirs in zip(jax.tree.leaves(moved), jax.tree.leaves(there), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-4, rtol=0)
    assert np.abs(np.asarray(moved.keys[0] - here.keys[0])).max() > 0.1


@pytest.mark.parametrize("name", NAMES)
def test_frozen_is_unfrozen_where_the_chain_cannot_see_the_sentence(name: str) -> None:
    """The prompt with an empty place for a sentence: chains read there anew have the states frozen from the prompt
    without that place; an answer after them sees the sentence in full layers alone once a window has passed.
    """
    model, (tokens, _, _) = tiny_gemma(name), whole(name)
    run, sentence, d = functools.partial(model.extend, model.graphdef), tokens[1:2, :8], 8
    before = read(run, model.params, tokens[:1, :8], np.int32(8))
    rest = move(model)(before.context[0], jnp.array([d], jnp.int32))
    said = read(run, model.params, sentence, np.int32(d))
    blind = Prefix((rest,), before.logits, before.length + d)
    after = Prefix((*said.context, rest), before.logits, blind.length)
    rows = jnp.asarray(tokens), jnp.asarray(gemma_cases.LENGTHS, jnp.int32)
    frozen = early.freeze(early.read_chains(run, model.params, before, *rows), before, after, move(model))
    again = early.read_chains(run, model.params, blind, *rows)
    real = np.asarray(frozen.valid)
    for ours, theirs in zip(frozen.keys + frozen.values, again.keys + again.values, strict=True):
        np.testing.assert_allclose(np.asarray(ours)[real], np.asarray(theirs)[real], atol=BOUND, rtol=0)
    np.testing.assert_array_equal(frozen.positions, again.positions)
    token, position = tokens[:, -1:], jnp.asarray(blind.length + rows[1])[:, None]
    answer = lambda prefix, states: np.asarray(extend(model, token, position, (*prefix.context, states))[0])
    np.testing.assert_allclose(answer(blind, frozen), answer(blind, again), atol=BOUND, rtol=0)
    assert np.abs(answer(after, frozen) - answer(blind, frozen)).max() > 1e-2


def test_a_token_beyond_the_window_is_out_of_sight_of_sliding_layers() -> None:
    """Gemma 3 of sliding layers alone: with L layers, a token more than L (W - 1) back changes nothing at all."""
    tokens = gemma_cases.tokens()[:1]
    other = tokens.copy()
    other[0, 0] += 1
    model = tiny_gemma("gemma3 sliding")
    a, b = (np.asarray(extend(model, t, places(t))[0][0]) for t in (tokens, other))
    reach = model.config.num_layers * (WINDOW - 1)
    np.testing.assert_array_equal(a[reach + 1 :], b[reach + 1 :])
    assert np.abs(a[: reach + 1] - b[: reach + 1]).max(-1).min() > 0


@pytest.mark.parametrize("name", NAMES)
def test_o3_every_parameter_is_used(name: str) -> None:
    """Each parameter of each layer moves the logits, but for the last layer's scalar: the final norm takes it out.

    There are as many parameters as the tensors written.
    """
    model, (tokens, logits, _) = tiny_gemma(name), whole(name)
    leaves, tree = jax.tree.flatten(model.params)
    paths = list(by_path(model.params))
    assert len(paths) == len(leaves) == len(gemma_cases.shapes(gemma_cases.CASES[name]))
    still = []
    for i, path in enumerate(paths):
        noise = 0.1 * np.random.default_rng(i).standard_normal(leaves[i].shape).astype(np.float32)
        changed = jax.tree.unflatten(tree, [*leaves[:i], leaves[i] + noise, *leaves[i + 1 :]])
        got = STEP(model.extend, model.graphdef, changed, jnp.asarray(tokens), jnp.asarray(places(tokens)))[0]
        if np.abs(got - logits).max() < 1e-2:
            still.append(path)
    assert still == ([] if name == "gemma3" else [f"layers.{model.config.num_layers - 1}.scalar"])


def test_experts_are_the_same_under_vmap() -> None:
    """Several arms at once are a vmap: the tokens' experts must not mix."""
    model, (tokens, logits, _) = tiny_gemma("gemma4 26b"), whole("gemma4 26b")
    one = lambda row: model.extend(model.graphdef, model.params, row[None], jnp.arange(LENGTH, dtype=jnp.int32)[None])
    got = jax.jit(jax.vmap(lambda row: one(row)[0][0]))(jnp.asarray(tokens))
    np.testing.assert_allclose(got, logits, atol=BOUND, rtol=0)
