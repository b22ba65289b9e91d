"""Option probabilities: teacher-forcing against the chain rule on a mock, and against re-reading on a random Qwen."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmon.sampling.answers import option_log_probabilities, options
from jaxmon.sampling.decode import pad, read
from tests import tiny

SEQUENCES = [[4], [7, 8], [7, 9, 10], [12, 5], [13]]


def test_equals_the_chain_rule_on_a_mock_with_a_known_law():
    table = jnp.asarray(np.random.default_rng(0).normal(size=(64, 64)), jnp.float32)
    prefix = read(tiny.markov, table, *pad([5, 9], 8))
    got = option_log_probabilities(tiny.markov, table, prefix, options(SEQUENCES), tiny.VOCABULARY)
    law = np.asarray(jax.nn.log_softmax(table[:, : tiny.VOCABULARY], -1), np.float64)
    expected = [sum(law[a, b] for a, b in zip([9, *s], s, strict=False)) for s in SEQUENCES]
    np.testing.assert_allclose(np.asarray(got), expected, atol=1e-5)


def test_equals_reading_prompt_and_option_in_one_piece():
    extend, params = tiny.qwen()
    prompt = [5, 9, 2, 7, 11]
    prefix = read(extend, params, *pad(prompt, 8))
    got = option_log_probabilities(extend, params, prefix, options(SEQUENCES), tiny.VOCABULARY)
    for value, s in zip(np.asarray(got), SEQUENCES, strict=True):
        ids = jnp.asarray([prompt + s], jnp.int32)
        logits, _ = extend(params, ids, jnp.arange(ids.shape[1], dtype=jnp.int32)[None], ())
        law = jax.nn.log_softmax(logits[0, :, : tiny.VOCABULARY], -1)
        expected = sum(float(law[len(prompt) - 1 + j, t]) for j, t in enumerate(s))
        assert abs(value - expected) < 1e-4


def test_single_token_options_sum_to_one_over_the_vocabulary():
    extend, params = tiny.qwen()
    prefix = read(extend, params, *pad([5, 9], 8))
    every = options([[i] for i in range(tiny.VOCABULARY)])
    mass = jnp.exp(option_log_probabilities(extend, params, prefix, every, tiny.VOCABULARY)).sum()
    assert abs(float(mass) - 1) < 1e-5


@pytest.mark.parametrize(
    ("bad", "words"), [([[4], []], "no tokens"), ([[4], [4, 5]], "beginning"), ([[4], [4]], "beginning")]
)
def test_overlapping_or_empty_options_are_refused(bad: list, words: str):
    with pytest.raises(ValueError, match=words):
        options(bad)
