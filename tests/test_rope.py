"""Rotary embeddings: closed forms, a complex-number reference, and the identities interventions rest on."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.rope import Rope, make_rope, rotate

KINDS: dict[str, dict[str, Any] | None] = {
    "default": None,
    "linear": {"rope_type": "linear", "factor": 8.0},
    "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128},
    "proportional": {"rope_type": "proportional", "partial_rotary_factor": 0.25},
    "legacy name": {"type": "yarn", "factor": 2.0},
}


def keys(seed: int, length: int = 5, head_dim: int = 16) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((2, length, 3, head_dim)).astype(np.float32)


def by_complex_numbers(x: np.ndarray, positions: np.ndarray, rope: Rope) -> np.ndarray:
    """Pair (d, d + H/2) as a complex number times exp(i p f_d)."""
    half = x.shape[-1] // 2
    turned = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * positions[..., None, None] * np.array(rope.frequencies))
    return rope.scale * np.concatenate([turned.real, turned.imag], -1)


def test_default_closed_form() -> None:
    rope = make_rope(8, 10000.0, None, 99)
    np.testing.assert_allclose(rope.frequencies, [1, 0.1, 0.01, 0.001], rtol=3e-7)
    assert rope.scale == 1.0


def test_40_linear_divides_and_yarn_ramps() -> None:
    """Golden table: linear is f / factor; YaRN keeps fast dims, divides slow ones, and scales cos and sin."""
    plain = np.array(make_rope(64, 1e4, None, 0).frequencies)
    np.testing.assert_allclose(make_rope(64, 1e4, KINDS["linear"], 0).frequencies, plain / 8, rtol=3e-7)
    rope = make_rope(64, 1e4, {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}, 0)
    ratio = plain / np.array(rope.frequencies)
    turns = 4096 * plain / (2 * math.pi)
    np.testing.assert_allclose(ratio[turns > 45], 1, rtol=1e-6)  # more than beta_fast = 32 turns, and a dim to spare
    np.testing.assert_allclose(ratio[turns < 0.7], 4, rtol=1e-6)  # fewer than beta_slow = 1
    assert (np.diff(ratio) > -1e-6).all()
    assert rope.scale == pytest.approx(0.1 * math.log(4) + 1)


def test_40_proportional_turns_the_first_pairs_by_the_whole_heads_exponents() -> None:
    """Gemma 4's full layers: 64 frequencies 1e6^(-2k/512), then 192 zeros; not the law of a head of 128."""
    rope = make_rope(512, 1e6, {"rope_type": "proportional", "partial_rotary_factor": 0.25}, 0)
    want = [1e6 ** (-2 * k / 512) for k in range(64)]
    np.testing.assert_allclose(rope.frequencies[:64], want, rtol=3e-7)
    assert rope.frequencies[64:] == (0.0,) * 192
    np.testing.assert_allclose(make_rope(8, 1e4, {"rope_type": "proportional", "factor": 2.0}, 0).frequencies[0], 0.5)


def test_yarn_by_loops() -> None:
    """The paper's ramp, one dim at a time in float64, without the rounding of its ends."""
    head_dim, theta, factor, original = 32, 5e5, 3.0, 300.0
    fields = {"rope_type": "yarn", "factor": factor, "original_max_position_embeddings": 300, "truncate": False}
    rope = make_rope(head_dim, theta, fields, 0)

    def dim_of(turns: float) -> float:
        return head_dim * math.log(original / (2 * math.pi * turns)) / (2 * math.log(theta))

    low, high = max(dim_of(32), 0), min(dim_of(1), head_dim - 1)
    for d in range(head_dim // 2):
        plain, ramp = theta ** (-2 * d / head_dim), min(max((d - low) / (high - low), 0), 1)
        assert rope.frequencies[d] == pytest.approx(plain * (1 - ramp) + plain / factor * ramp, rel=1e-5)


@pytest.mark.torch
@pytest.mark.parametrize("theta", [1e4, 1e6])
@pytest.mark.parametrize("head_dim", [16, 64, 128])
@pytest.mark.parametrize("kind", ["default", "linear", "yarn"])
def test_40_frequencies_are_those_of_transformers(kind: str, head_dim: int, theta: float) -> None:
    pytest.importorskip("torch", reason="torch is absent")
    from tests import checkpoints, reference

    rope = {"rope_theta": theta, "rope_type": "default", **(KINDS[kind] or {})}
    fields = checkpoints.QWEN3 | {"head_dim": head_dim, "rope_parameters": rope}
    table = reference.make(fields, checkpoints.weights(fields)).model.rotary_emb
    ours = make_rope(head_dim, theta, rope, 512)
    np.testing.assert_allclose(np.float32(ours.frequencies), table.inv_freq.numpy(), rtol=1.3e-7)
    assert ours.scale == pytest.approx(table.attention_scaling)


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(sorted(KINDS)), st.integers(0, 5000), st.integers(-400, 4000), st.integers(0, 99))
def test_31_shift_is_exact_for_every_kind(kind: str, start: int, by: int, seed: int) -> None:
    """A rotated key turned on by d (scale 1) is the key at p + d; the tolerance is float32's at 9,000 rad."""
    rope, k = make_rope(16, 1e4, KINDS[kind], 512), jnp.asarray(keys(seed))
    positions = jnp.broadcast_to(start + 400 + jnp.arange(5, dtype=jnp.int32), (2, 5))
    turn = dataclasses.replace(rope, scale=1.0)
    moved = rotate(rotate(k, positions, rope), jnp.full((2, 5), by, jnp.int32), turn)
    np.testing.assert_allclose(moved, rotate(k, positions + by, rope), atol=1e-2, rtol=0)
    np.testing.assert_array_equal(rotate(k, jnp.zeros((2, 5), jnp.int32), turn), k)


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(sorted(KINDS)), st.integers(0, 99))
def test_32_rotation_is_the_complex_one_and_keeps_norms(kind: str, seed: int) -> None:
    rope, k = make_rope(16, 1e4, KINDS[kind], 512), keys(seed)
    positions = np.random.default_rng(seed).integers(0, 500, (2, 5)).astype(np.int32)
    got = rotate(jnp.asarray(k), jnp.asarray(positions), rope)
    np.testing.assert_allclose(got, by_complex_numbers(k, positions, rope), atol=3e-4, rtol=0)
    norms = np.linalg.norm(got, axis=-1), rope.scale * np.linalg.norm(k, axis=-1)
    np.testing.assert_allclose(*norms, rtol=1e-5)


def test_scores_depend_on_distance_alone() -> None:
    rope, q, k = make_rope(16, 1e4, None, 512), jnp.asarray(keys(0, 1)), jnp.asarray(keys(1, 1))

    def score(at: int, key_at: int) -> float:
        spot = lambda p: jnp.full((2, 1), p, jnp.int32)
        return float((rotate(q, spot(at), rope) * rotate(k, spot(key_at), rope)).sum())

    assert score(9, 4) == pytest.approx(score(1005, 1000), abs=1e-3)
    assert abs(score(9, 4) - score(9, 2)) > 1e-2


def test_33_o2_nothing_is_remembered_between_calls() -> None:
    """Two thetas, two sizes and two offsets in one process each get their own angles."""
    k = jnp.asarray(keys(0))
    seen = [
        np.asarray(rotate(k, jnp.full((2, 5), p, jnp.int32), make_rope(16, theta, None, 0)))
        for theta, p in ((1e4, 7), (1e6, 7), (1e4, 8), (1e4, 7))
    ]
    np.testing.assert_array_equal(seen[0], seen[3])
    assert np.abs(seen[0] - seen[1]).max() > 0.1
    assert np.abs(seen[0] - seen[2]).max() > 0.1


def test_zero_frequency_leaves_its_pair_alone() -> None:
    k = jnp.asarray(keys(0, head_dim=4))
    turned = rotate(k, jnp.full((2, 5), 3, jnp.int32), Rope((1.0, 0.0)))
    np.testing.assert_array_equal(turned[..., jnp.array([1, 3])], k[..., jnp.array([1, 3])])
    assert np.abs(np.asarray(turned - k)[..., [0, 2]]).max() > 0.1


@pytest.mark.parametrize(
    ("scaling", "message"),
    [
        ({"rope_type": "llama3", "factor": 8.0}, "'llama3' is not supported"),
        ({"rope_type": "dynamic", "factor": 8.0}, "'dynamic' is not supported"),
        ({"rope_type": "default", "factor": 8.0}, "'default' has no field factor"),
        ({"rope_type": "linear", "factor": 8.0, "beta_fast": 1}, "'linear' has no field beta_fast"),
        ({"rope_type": "linear"}, "factor must be a number >= 1"),
        ({"rope_type": "proportional", "partial_rotary_factor": 1.5}, "partial_rotary_factor must be in"),
        ({"rope_type": "proportional", "partial_rotary_factor": 0}, "partial_rotary_factor must be a number > 0"),
        ({"rope_type": "linear", "factor": 0.5}, "factor must be a number >= 1"),
        ({"rope_type": "linear", "factor": "8"}, "factor must be a number >= 1"),
        ({"rope_type": "linear", "factor": float("nan")}, "factor must be a number >= 1"),
        ({"rope_type": "yarn", "type": "linear", "factor": 8.0}, "contradict"),
        ({"rope_type": "yarn", "factor": 8.0, "beta_fast": -1}, "beta_fast must be a number > 0"),
        ({"rope_type": "yarn", "factor": 8.0, "beta_fast": 1, "beta_slow": 32}, "empty ramp"),
        ({"rope_type": "yarn", "factor": 8.0, "truncate": "no"}, "truncate must be true or false"),
        ({"rope_type": "yarn", "factor": 8.0, "mscale": 1.0}, "must be given together"),
        ({"rope_type": "yarn", "factor": 8.0, "partial_rotary_factor": 0.5}, "no field partial_rotary_factor"),
    ],
)
def test_41_refused_scalings(scaling: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_rope(16, 1e4, scaling, 4096)


@pytest.mark.parametrize(
    ("head_dim", "theta", "message"), [(7, 1e4, "head_dim"), (8, 1.0, "theta"), (8, -5.0, "theta")]
)
def test_refused_bases(head_dim: int, theta: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_rope(head_dim, theta, None, 512)
