"""Chains drawn while another prompt is shown for a while, and arms drawn together."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmon.sampling.decode import Chains, Prefix, Window, pad, read, sample, sample_arms, stack
from jaxmon.sampling.keys import arm_key, draw_key
from jaxmon.sampling.sampler import Sampling, draw, law
from models.edits import shift
from models.rope import make_rope
from tests import tiny

STOP = jnp.array([0, 3], jnp.int32)
ABSENT, PRESENT = [5, 9, 2, 7, 11], [5, 9, 44, 23, 2, 7, 11]
SHIFT = functools.partial(shift, ropes=(make_rope(16, 1e4, None, 256),) * 3)
N, LENGTH, FOREVER = 12, 7, 100
IDS = jnp.arange(N, dtype=jnp.int32)


@pytest.fixture(scope="module")
def model() -> tuple[Any, Any, Prefix, Prefix]:
    extend, params = tiny.qwen()
    return extend, params, *(read(extend, params, *pad(p, 8)) for p in (ABSENT, PRESENT))


def run(model: Any, prefix: Prefix, window: Window | None = None, sampling: Sampling | None = None) -> Chains:
    extend, params, *_ = model
    return sample(
        extend, params, prefix, arm_key(1, "record", "x0:a"), IDS, jnp.int32(N), STOP, window,
        sampling=sampling or Sampling(), slots=5, length=LENGTH, vocabulary=tiny.VOCABULARY,
    )  # fmt: skip


def shown(model: Any, start: Any, stop: Any) -> Window:
    every = lambda v: jnp.broadcast_to(jnp.asarray(v, jnp.int32), (N,))
    return Window(model[3], every(start), every(stop), SHIFT)


def same(one: Chains, other: Chains) -> None:
    jax.tree.map(np.testing.assert_array_equal, one, other)


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(0.8, 9, 0.9, 0.0)])
def test_no_window_is_one_arm_and_a_window_over_everything_the_other(model: Any, sampling: Sampling) -> None:
    *_, absent, present = model
    plain, other = run(model, absent, sampling=sampling), run(model, present, sampling=sampling)
    same(run(model, absent, shown(model, 0, 0), sampling), plain)
    same(run(model, absent, shown(model, 5, 5), sampling), plain)
    same(run(model, absent, shown(model, 0, FOREVER), sampling), other)
    assert (np.asarray(plain.tokens) != np.asarray(other.tokens)).any()


def test_before_its_window_a_chain_is_that_of_the_other_arm(model: Any) -> None:
    plain, start = np.asarray(run(model, model[2]).tokens), np.arange(N) % LENGTH
    tokens = np.asarray(run(model, model[2], shown(model, start, start + 3)).tokens)
    for i, s in enumerate(start):
        np.testing.assert_array_equal(tokens[i, :s], plain[i, :s])
    assert (tokens != plain).any()


def test_windows_against_a_slow_twin(model: Any) -> None:
    """One chain, token by token, every token's states a segment of its own, turned to the prompt that is shown."""
    extend, params, absent, present = model
    start, stop = np.arange(N) % 4, np.arange(N) % 4 + 1 + np.arange(N) % 3
    fast = run(model, absent, shown(model, start, stop))
    for chain in range(N):
        out: list[int] = []
        states: list[tuple[int, Any]] = []  # (which prompt it was read under, its segment)
        while len(out) < LENGTH and (not out or out[-1] not in (0, 3)):
            step = len(out)
            inside = int(start[chain] <= step < stop[chain])
            prompt = (absent, present)[inside]
            logits = prompt.logits
            if out:
                away = lambda made, now=inside: jnp.array([(now - made) * 2], jnp.int32)
                context = (*prompt.context, *(SHIFT(s, away(made)) for made, s in states))
                where = jnp.reshape(prompt.length + step - 1, (1, 1))
                logits, new = extend(params, jnp.array([[out[-1]]], jnp.int32), where, context)
                logits = logits[:, 0]
                states.append((inside, new))
            logits = jnp.where(jnp.arange(logits.shape[-1]) < tiny.VOCABULARY, logits[0], -jnp.inf)[None]
            key = draw_key(arm_key(1, "record", "x0:a"), jnp.int32(chain), jnp.int32(step))
            out.append(int(draw(*law(logits, Sampling()), jax.random.uniform(key, (1,)))[0]))
        assert np.asarray(fast.tokens[chain, : int(fast.lengths[chain])]).tolist() == out


def test_arms_drawn_together_are_the_arms_drawn_alone(model: Any) -> None:
    """Prompts of other lengths, counts and keys of their own: the same tokens as one by one."""
    extend, params, *prefixes = model
    settings = {"sampling": Sampling(), "length": LENGTH, "vocabulary": tiny.VOCABULARY}
    keys = [arm_key(1, "record", arm) for arm in ("x1", "x0:a")]
    counts = jnp.array([N, 7], jnp.int32)
    names = (jnp.stack(keys), jnp.stack([IDS, IDS + 3]), counts)
    many = sample_arms(extend, params, stack(prefixes), *names, STOP, slots=4, **settings)
    for i, (prefix, key) in enumerate(zip(prefixes, keys, strict=True)):
        one = sample(extend, params, prefix, key, names[1][i], counts[i], STOP, slots=16, **settings)
        same(jax.tree.map(lambda a, i=i: a[i], many), one)
