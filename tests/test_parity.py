"""Qwen2 and Qwen3 against `transformers`: live where torch is installed, else from the committed golden arrays."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from models.loading import Model, load
from models.qwen.modeling import RMSNorm
from tests import checkpoints
from tests.checkpoints import CASES
from tests.running import extend, hidden_states, places, tiny

BOUND = 1e-4  # largest absolute difference in float32, of logits and of every hidden state


def compare(model: Model, tokens: np.ndarray, start: int, logits: np.ndarray, states: np.ndarray) -> None:
    positions = places(tokens, start)
    for depth, (ours, theirs) in enumerate(zip(hidden_states(model, tokens, positions), states, strict=True)):
        assert np.abs(ours - theirs).max() <= BOUND, f"after layer {depth}"
    ours = np.asarray(extend(model, tokens, positions)[0])
    assert ours.dtype == np.float32
    assert np.abs(ours - logits).max() <= BOUND
    assert np.abs(logits).max() > 0.5  # a model that says nothing would pass everything


@pytest.mark.parametrize("name", CASES)
def test_golden_parity(name: str) -> None:
    golden = np.load(checkpoints.GOLDEN / "qwen.npz")
    tokens = checkpoints.tokens(rows=1)
    states = golden[f"{name}/states"][:, None]
    compare(tiny(name), tokens, CASES[name][1], golden[f"{name}/logits"][None], states)


@pytest.mark.torch
@pytest.mark.parametrize("name", CASES)
def test_live_parity(name: str) -> None:
    pytest.importorskip("torch", reason="torch is absent: parity runs on golden arrays only")
    from tests import reference

    fields, start = CASES[name]
    tokens = checkpoints.tokens(rows=1, seed=2)
    logits, states = reference.run(
        reference.make(fields, checkpoints.weights(fields)), tokens, places(tokens, start).astype(np.int64)
    )
    compare(tiny(name), tokens, start, logits, np.stack(states))


@pytest.mark.torch
@pytest.mark.parametrize("name", ["qwen2", "qwen3"])
def test_golden_is_what_torch_says_now(name: str) -> None:
    pytest.importorskip("torch", reason="torch is absent")
    from tests import reference

    fields, start = CASES[name]
    tokens = checkpoints.tokens(rows=1)
    logits, _ = reference.run(reference.make(fields, checkpoints.weights(fields)), tokens, places(tokens, start))
    golden = np.load(checkpoints.GOLDEN / "qwen.npz")[f"{name}/logits"]
    assert np.abs(logits[0] - golden).max() <= 1e-5


@pytest.mark.torch
@pytest.mark.parametrize("name", ["qwen2", "qwen3"])
def test_39_outlier_channel(tmp_path: Path, name: str) -> None:
    """One channel of the stream at 1e3: the norms must reduce in float32."""
    pytest.importorskip("torch", reason="torch is absent")
    from tests import reference

    fields = CASES[name][0]
    weights = checkpoints.weights(fields)
    weights["model.embed_tokens.weight"][:, 3] = 1e3
    tokens = checkpoints.tokens()
    logits, states = reference.run(reference.make(fields, weights), tokens)
    compare_relative = [
        np.abs(a - b).max() / np.abs(b).max()
        for a, b in zip(
            hidden_states(load(checkpoints.write_folder(tmp_path, fields, weights)), tokens, places(tokens)),
            states,
            strict=True,
        )
    ]
    assert max(compare_relative) <= 1e-6
    ours = np.asarray(extend(load(tmp_path), tokens, places(tokens))[0])
    assert np.abs(ours - logits).max() <= BOUND


def test_39_outlier_norm_in_bfloat16() -> None:
    """One rounding to bfloat16 in all (relative 2^-8): squares, mean and root are float32, beside a channel of 1e3."""
    x = np.random.default_rng(0).standard_normal((1, 200, 64)) * 10
    x[..., 0] = 1e3
    narrow = jnp.asarray(x, jnp.bfloat16)
    wide = np.asarray(narrow, np.float64)
    want = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-6)
    got = RMSNorm(64, 1e-6, jnp.bfloat16)(narrow)
    assert np.abs(np.asarray(got, np.float64) / want - 1).max() <= 2.0**-8


@pytest.mark.parametrize("name", ["qwen2", "qwen3"])
def test_17_bfloat16_error_and_flips(name: str) -> None:
    """bfloat16 weights and activations: the error relative to float32 is bounded, near ties may flip, others not."""
    exact = tiny(name)
    rough = tiny(name, "bfloat16")
    assert {a.dtype for a in jax.tree.leaves(rough.params)} == {jnp.dtype(jnp.bfloat16)}
    tokens = checkpoints.tokens(rows=8, length=32, seed=7)
    a, b = (np.asarray(extend(m, tokens, places(tokens))[0]) for m in (exact, rough))
    error = np.sqrt(((a - b) ** 2).mean()) / a.std()
    flips = (a.argmax(-1) != b.argmax(-1)).mean()
    top = np.sort(a, -1)
    clear = top[..., -1] - top[..., -2] > 2 * np.abs(a - b).max(-1)
    print(f"{name}: bfloat16 relative error {error:.4f}, argmax flips {flips:.3f}")
    assert error <= 0.05
    assert flips <= 0.1
    assert not (a.argmax(-1) != b.argmax(-1))[clear].any()


def test_45_product_precision_is_pinned() -> None:
    """Parity in float32 means float32 products: conftest pins the precision, and a compiled product carries it."""
    assert jax.config.jax_default_matmul_precision == "highest"
    ones = jnp.ones((2, 2))
    assert "HIGHEST" in str(jax.make_jaxpr(lambda a: jnp.einsum("ij,jk->ik", a, a))(ones))
