"""Early answers and frozen chains against reading every text anew, and against a one-layer model in NumPy."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmon.sampling import early
from jaxmon.sampling.answers import option_log_probabilities, options
from jaxmon.sampling.decode import Prefix, pad, read
from models.edits import shift
from models.rope import make_rope
from tests import tiny

ROPE = make_rope(16, 1e4, None, 256)
SENTENCE, REST, FORCED = [7, 21, 9], [4, 33, 8, 2], [11, 5]
START = [17, 3]
CHAINS = np.random.default_rng(0).integers(1, 60, (3, 12)).astype(np.int32)
LENGTHS = (12, 7, 3)
OPTIONS = ((30,), (31, 40), (32, 41, 42))  # of one, two and three tokens
CUTS = np.array([early.positions(0, n, 4) for n in LENGTHS], np.int32)


@pytest.fixture(scope="module")
def model() -> tuple[Any, Any]:
    return tiny.qwen()


def measured(model: Any, prompt: list[int], chains: Any = None) -> tuple[Prefix, Any, np.ndarray]:
    """(prefix, the chains' states behind it, early answers [B, K, O]); `chains` replaces the states."""
    extend, params = model
    prefix = read(extend, params, *pad(prompt, 8))
    if chains is None:
        chains = early.read_chains(extend, params, prefix, jnp.asarray(CHAINS), jnp.asarray(LENGTHS, jnp.int32))
    found = early.early_answers(
        extend, params, prefix, chains, jnp.asarray(CUTS), jnp.asarray(FORCED, jnp.int32), options(OPTIONS), 61
    )
    return prefix, chains, np.asarray(found)


def anew(model: Any, text: list[int]) -> np.ndarray:
    """log P(option | text) with every option's whole text read from the beginning."""
    extend, params = model
    rows = np.zeros((len(OPTIONS), 32), np.int32)  # one shape: one compilation; what comes later is seen by nobody
    for row, option in zip(rows, OPTIONS, strict=True):
        row[: len(text) + len(option)] = [*text, *option]
    logits, _ = extend(params, jnp.asarray(rows), jnp.broadcast_to(jnp.arange(32, dtype=jnp.int32), rows.shape), ())
    law = np.asarray(jax.nn.log_softmax(logits[..., :61], -1))
    return np.array([sum(law[o, len(text) - 1 + i, t] for i, t in enumerate(x)) for o, x in enumerate(OPTIONS)])


@pytest.mark.parametrize("make", [tiny.qwen, tiny.gemma])
def test_slices_of_one_chain_answer_as_texts_read_anew(make: Callable[[], Any]) -> None:
    model = make()
    _, _, found = measured(model, START + REST)
    for b, k in np.ndindex(*CUTS.shape):
        text = START + REST + CHAINS[b, : CUTS[b, k]].tolist() + FORCED
        np.testing.assert_allclose(found[b, k], anew(model, text), atol=5e-4, rtol=0)


@pytest.mark.parametrize("rows", [6, 100])
def test_cuts_asked_together_are_those_asked_one_by_one(model: Any, rows: int) -> None:
    prefix, chains, found = measured(model, START + REST)
    given = (jnp.asarray(CUTS), jnp.asarray(FORCED, jnp.int32), options(OPTIONS), 61)
    together = early.early_answers(*model, prefix, chains, *given, rows)
    np.testing.assert_allclose(together, found, atol=2e-5, rtol=0)


def test_options_of_rows_are_those_of_single_prefixes(model: Any) -> None:
    extend, params = model
    prefix = read(extend, params, *pad(START + REST, 8))
    rows = Prefix(prefix.context, jnp.tile(prefix.logits, (3, 1)), jnp.tile(prefix.length, 3))
    one = option_log_probabilities(extend, params, prefix, options(OPTIONS), 61)
    many = option_log_probabilities(extend, params, rows, options(OPTIONS), 61)
    assert one.shape == (3,)
    np.testing.assert_allclose(many, np.tile(one, (3, 1)), atol=1e-5, rtol=0)


def test_inserting_nothing_has_no_direct_effect_at_all(model: Any) -> None:
    """DE = 0 bit for bit: a shift by 0 under the same prompt (§6)."""
    prefix, chains, found = measured(model, START + REST)
    frozen = early.freeze(chains, prefix, prefix, functools.partial(shift, ropes=(ROPE,) * 3))
    np.testing.assert_array_equal(measured(model, START + REST, frozen)[2], found)


def test_frozen_is_unfrozen_where_the_chain_cannot_see_the_sentence(model: Any) -> None:
    """A chain read anew behind a prompt whose (first) sentence is hidden from it has the frozen states."""
    extend, params = model
    move = functools.partial(shift, ropes=(ROPE,) * 3)
    before, sentence = (read(extend, params, *pad(p, 8)) for p in (START + REST, SENTENCE))
    d = jnp.reshape(sentence.length, (1,))
    rest = tuple(move(s, d) for s in before.context)
    blind = Prefix(rest, before.logits, before.length + d[0])  # the sentence's place is left empty
    after = Prefix((*sentence.context, *rest), before.logits, blind.length)
    rows = jnp.asarray(CHAINS), jnp.asarray(LENGTHS, jnp.int32)
    frozen = early.freeze(early.read_chains(extend, params, before, *rows), before, after, move)
    again = early.read_chains(extend, params, blind, *rows)
    answers = lambda prefix, states: np.asarray(
        early.early_answers(
            extend, params, prefix, states, jnp.asarray(CUTS), jnp.asarray(FORCED, jnp.int32), options(OPTIONS), 61
        )
    )
    np.testing.assert_allclose(answers(after, frozen), answers(after, again), atol=5e-4, rtol=0)
    assert np.abs(answers(blind, frozen) - answers(after, frozen)).max() > 1e-2  # the answer itself does see it


@pytest.mark.parametrize("at", [0, 2, 6], ids=["first", "middle", "last"])
def test_frozen_answers_of_a_one_layer_model_by_hand(at: int) -> None:
    """NumPy: keys and values of the chain as X = 0 made them, at positions moved by d, under the X = 1 prompt."""
    extend, params = tiny.qwen(num_layers=1, head_norms=False)
    prompt, d, cut = START + REST, len(SENTENCE), 5
    whole = prompt[:at] + SENTENCE + prompt[at:]
    before, after = (read(extend, params, *pad(p, 12)) for p in (prompt, whole))
    rows = jnp.asarray(CHAINS[:1]), jnp.asarray(LENGTHS[:1], jnp.int32)
    chains = early.read_chains(extend, params, before, *rows)
    frozen = early.freeze(chains, before, after, functools.partial(shift, ropes=(ROPE,)))
    assert int(after.length) - int(before.length) == d
    found = early.early_answers(
        extend, params, after, frozen, jnp.array([[cut]]), jnp.asarray(FORCED, jnp.int32), options(((30,), (31,))), 61
    )

    w = jax.tree.map(lambda a: np.asarray(a, np.float64), params)
    layer = w["layers"][0]
    get = lambda tree, *path: functools.reduce(lambda t, k: t[k], path, tree)[...]
    norm = lambda x, g: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * g

    def turn(x: np.ndarray, p: np.ndarray) -> np.ndarray:
        angle = p[:, None, None] * np.asarray(ROPE.frequencies)
        a, b = np.split(x, 2, -1)
        return np.concatenate([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)], -1)

    tokens = np.array([*whole, *CHAINS[0, :cut], *FORCED])
    positions = np.arange(len(tokens))  # the chain's keys stand d further on than X = 0 had put them
    x = get(w, "embedding")[tokens]
    y = norm(x, get(layer, "input_norm", "weight"))
    q, k, v = (y @ get(layer, "attention", f"{n}_proj", "kernel") for n in "qkv")
    q = turn(q.reshape(-1, 4, 16), positions)
    k, v = turn(k.reshape(-1, 2, 16), positions), v.reshape(-1, 2, 16)
    scores = np.einsum("tnh,snh->nts", q, k.repeat(2, 1)) / 4
    scores = np.where(positions[None, :] <= positions[:, None], scores, -np.inf)
    law = np.exp(scores - scores.max(-1, keepdims=True))
    law /= law.sum(-1, keepdims=True)
    x = x + np.einsum("nts,snh->tnh", law, v.repeat(2, 1)).reshape(-1, 64) @ get(layer, "attention", "o_proj", "kernel")
    y = norm(x, get(layer, "post_norm", "weight"))
    gate, up = (y @ get(layer, "mlp", f"{n}_proj", "kernel") for n in ("gate", "up"))
    x = x + (gate / (1 + np.exp(-gate)) * up) @ get(layer, "mlp", "down_proj", "kernel")
    logits = (norm(x, get(w, "norm", "weight")) @ get(w, "head").T)[-1, :61]
    expected = logits - np.log(np.exp(logits - logits.max()).sum()) - logits.max()
    np.testing.assert_allclose(found[0, 0], expected[[30, 31]], atol=2e-4, rtol=0)


@pytest.mark.parametrize(
    ("start", "stop", "probes", "expected"),
    [
        (0, 40, 4, [10, 20, 30, 40]),
        (2, 18, 4, [6, 10, 14, 18]),
        (5, 8, 4, [6, 7, 8, 8]),  # fewer tokens than probes
        (5, 5, 3, [5, 5, 5]),  # no token at all
        (0, 7, 1, [7]),
    ],
)
def test_positions(start: int, stop: int, probes: int, expected: list[int]) -> None:
    assert early.positions(start, stop, probes) == expected


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([3, 3, 3, 3], 0),  # settles at the first
        ([1, 2, 3, 3], 2),
        ([3, 1, 3, 3], 2),  # an earlier agreement does not count
        ([3, 3, 3, 1], 3),  # never settles before the end
        ([5], 0),
    ],
)
def test_settled(answers: list[int], expected: int) -> None:
    assert early.settled(np.array([answers, answers])).tolist() == [expected] * 2


@pytest.mark.parametrize(
    ("pieces", "thought", "expected"),
    [
        (["<think>", "\n", "so", " G", "\n", "</think>", "\n\n", "Answer: G"], "so G", (2, 4)),
        (["<think>", "\n", "so", " G"], "so G", (2, 4)),  # never closed
        (["I think", " so.", "\nAnswer", ": G"], "I think so.", (0, 2)),  # no channel
        (["  I", " think\n", "Answer: G"], "I think", (0, 2)),  # a token that also holds the line break
        (["Answer: G"], "", None),  # no thought
    ],
)
def test_span(pieces: list[str], thought: str, expected: tuple[int, int] | None) -> None:
    text_of = lambda ids: "".join(pieces[i] for i in ids)
    assert early.span(list(range(len(pieces))), text_of, thought) == expected
