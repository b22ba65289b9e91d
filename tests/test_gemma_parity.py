"""Gemma 3 and Gemma 4 against `transformers`: live where torch is installed, else from the committed golden arrays.

One ragged batch per case, rows of lengths below, at, above and three times the window, padded on the right.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from models.gemma.modeling import embed
from models.gemma.norm import RMSNorm
from tests import checkpoints, gemma_cases
from tests.gemma_cases import CASES, LENGTHS
from tests.running import extend, places, tiny_gemma

BOUND = 2e-4  # largest absolute difference of logits in float32


def ragged(name: str, dtype: str = "float32", seed: int = 1) -> np.ndarray:
    """Our logits [4, 24, V]; rows are real up to LENGTHS."""
    tokens = gemma_cases.tokens(seed)
    valid = jnp.arange(tokens.shape[1])[None] < jnp.asarray(LENGTHS)[:, None]
    logits = extend(tiny_gemma(name, dtype), tokens, places(tokens), (), valid)[0]
    assert logits.dtype == jnp.float32
    return np.asarray(logits)


@pytest.mark.parametrize("name", CASES)
def test_golden_parity(name: str) -> None:
    golden = np.load(checkpoints.GOLDEN / "gemma.npz")[name]
    ours = ragged(name)
    for row, length in enumerate(LENGTHS):
        assert np.abs(ours[row, length - 1] - golden[row]).max() <= BOUND, length
    assert np.abs(golden).max() > 0.5  # a model that says nothing would pass everything


@pytest.mark.torch
@pytest.mark.parametrize("name", CASES)
def test_live_parity(name: str) -> None:
    pytest.importorskip("torch", reason="torch is absent: parity runs on golden arrays only")
    from tests import reference

    theirs = reference.make(CASES[name], gemma_cases.weights(CASES[name]))
    ours, tokens = ragged(name, seed=2), gemma_cases.tokens(2)
    for row, length in enumerate(LENGTHS):
        logits, _ = reference.run(theirs, tokens[row : row + 1, :length])
        assert np.abs(ours[row, :length] - logits[0]).max() <= BOUND, length


@pytest.mark.parametrize(("name", "most"), [("gemma3", 0.05), ("gemma4 edge", 0.05), ("gemma4 26b", 0.25)])
def test_17_bfloat16_error_and_flips(name: str, most: float) -> None:
    """bfloat16 weights and activations: the error relative to float32 is bounded; clear winners do not flip.

    With a mixture a near tie of experts flips as well, and the token then gets another MLP: a larger bound.
    """
    real = np.arange(max(LENGTHS))[None] < np.array(LENGTHS)[:, None]
    a, b = (np.concatenate([ragged(name, d, seed)[real] for seed in range(2)]) for d in ("float32", "bfloat16"))
    error, flips = np.sqrt(((a - b) ** 2).mean()) / a.std(), (a.argmax(-1) != b.argmax(-1)).mean()
    top = np.sort(a, -1)
    clear = top[..., -1] - top[..., -2] > 2 * np.abs(a - b).max(-1)
    print(f"{name}: bfloat16 relative error {error:.4f}, flips of the top token {flips:.3f} of {len(a)}")
    assert error <= most
    assert flips <= 0.15
    assert not (a.argmax(-1) != b.argmax(-1))[clear].any()


@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_38_39_norm_adds_its_offset_and_reduces_in_float32(offset: float) -> None:
    """Against float64, beside a channel of 1e3 and in bfloat16: one rounding in all (relative 2^-8)."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 50, 64)) * 10
    x[..., 0] = 1e3
    narrow, norm = jnp.asarray(x, jnp.bfloat16), RMSNorm(64, 1e-6, offset, jnp.bfloat16)
    norm.weight[...] = jnp.asarray(0.01 * rng.standard_normal(64) + (1 - offset), jnp.bfloat16)
    wide, w = np.asarray(narrow, np.float64), np.asarray(norm.weight[...], np.float64)
    want = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-6) * (offset + w)
    assert np.abs(np.asarray(norm(narrow), np.float64) / want - 1).max() <= 2.0**-8


@pytest.mark.parametrize(("size", "factor"), [(1536, 39.25), (2560, 50.5), (2816, 53.0), (3072, 55.5), (5376, 73.5)])
def test_37_embeddings_are_scaled_by_a_rounded_root(size: int, factor: float) -> None:
    """In bfloat16 the root of the size is rounded before the product, for every size of Gemma."""
    table = jnp.asarray(np.random.default_rng(0).standard_normal((9, size)), jnp.bfloat16)
    want = (np.asarray(table, np.float64) * factor).astype(jnp.bfloat16)
    np.testing.assert_array_equal(embed(table, jnp.arange(9)), want)
