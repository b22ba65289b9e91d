"""Fields of config.json: live, checked or inert; anything else is refused by name, in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import pytest
from flax import nnx

from models.assign import by_path, spread
from models.qwen.config import CHECKED, INERT, LIVE, from_hf
from models.qwen.modeling import Qwen
from models.qwen.params import RULES
from tests import published
from tests.checkpoints import QWEN2, QWEN3, edit, refusal, write_folder

FIELDS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (QWEN3, {"model_type": "llama"}, "model_type 'llama' is not supported (have qwen2, qwen3"),
    (QWEN3, {"model_type": ...}, "model_type None is not supported (have qwen2, qwen3, gemma3"),
    (QWEN3, {"logit_scale": 2.0}, "field logit_scale is not understood for qwen3"),
    (QWEN2, {"attention_bias": True}, "field attention_bias is not understood for qwen2"),
    (QWEN3, {"zeta": 1, "alpha": 2}, "field alpha, zeta is not understood"),
    (QWEN3, {"quantization_config": {"bits": 4}}, "field quantization_config is"),
    (QWEN3, {"hidden_act": "gelu"}, "field hidden_act is 'gelu'; only 'silu' is built"),
    (QWEN3, {"use_sliding_window": True}, "field use_sliding_window is True"),
    (QWEN3, {"layer_types": ["full_attention", "sliding_attention"]}, "field layer_types must be 2 times"),
    (QWEN3, {"layer_types": ["full_attention"]}, "field layer_types must be 2 times"),
    (QWEN3, {"architectures": ["Qwen3ForSequenceClassification"]}, "field architectures is"),
    (QWEN3, {"num_key_value_heads": 3}, "num_attention_heads (4) is not a multiple of num_key_value_heads (3)"),
    (QWEN3, {"num_key_value_heads": 8}, "num_attention_heads (4) is not a multiple of num_key_value_heads (8)"),
    (QWEN3, {"head_dim": 7}, "field head_dim (7) is odd"),
    (QWEN3, {"head_dim": ...}, "field head_dim is missing"),
    (QWEN2, {"num_attention_heads": 5, "num_key_value_heads": 5}, "hidden_size (32) is not a multiple of"),
    (QWEN3, {"rms_norm_eps": 0}, "field rms_norm_eps must be a positive number, got 0"),
    (QWEN3, {"rms_norm_eps": "1e-6"}, "field rms_norm_eps must be a positive number"),
    (QWEN3, {"rms_norm_eps": ...}, "field rms_norm_eps is missing"),
    (QWEN3, {"tie_word_embeddings": "yes"}, "field tie_word_embeddings must be true or false"),
    (QWEN3, {"attention_bias": 1}, "field attention_bias must be true or false"),
    (QWEN3, {"rope_parameters": ...}, "field rope_theta is missing"),
    (QWEN3, {"rope_theta": 5e5}, "field rope_theta has two values [10000.0, 500000.0]"),
    (QWEN3, {"rope_parameters": 4}, "field rope_parameters must be an object or null"),
    (QWEN3, {"rope_parameters": {"rope_theta": 1e4, "rope_type": "llama3"}}, "rope type 'llama3' is not supported"),
    (QWEN3, {"rope_parameters": {"rope_theta": 0.5}}, "theta must be > 1"),
    (
        QWEN3,
        {
            "rope_scaling": {"type": "linear", "factor": 2.0},
            "rope_parameters": {"rope_theta": 1e4, "rope_type": "linear", "factor": 4.0},
        },
        "rope_scaling and rope_parameters contradict each other",
    ),
    (QWEN3, {"eos_token_id": "2"}, "field eos_token_id must be a token id or a list of them"),
    (QWEN3, {"eos_token_id": 285}, "eos_token_id 285 is not an id of the tokenizer"),
    (QWEN3, {"vocab_size": 100}, "the tokenizer has 283 ids, config field vocab_size only 100"),
    *(
        (QWEN3, {f: v}, f"field {f} must be a positive")
        for f in ("hidden_size", "num_hidden_layers")
        for v in (0, -1, 1.5)
    ),
    *(
        (QWEN3, {f: ...}, f"field {f} is missing")
        for f in ("vocab_size", "intermediate_size", "num_key_value_heads", "max_position_embeddings")
    ),
]


@pytest.mark.parametrize(("fields", "change", "expected"), FIELDS, ids=lambda v: v if isinstance(v, str) else None)
def test_41_refused_config_fields(
    tmp_path: Path, fields: dict[str, Any], change: dict[str, Any], expected: str
) -> None:
    write_folder(tmp_path, fields)
    edit(tmp_path / "config.json", **change)
    message = refusal(tmp_path)
    assert expected in message
    assert str(tmp_path) in message


def test_41_every_field_is_live_checked_or_inert_for_one_reason() -> None:
    for family in LIVE.values():
        assert not (family & set(CHECKED)) | (family & set(INERT)) | (set(CHECKED) & set(INERT))
    assert all(reason.strip() for reason in INERT.values())


def test_41_inert_fields_change_nothing() -> None:
    full = {"architectures": ["Qwen3ForCausalLM"], "layer_types": ["full_attention"] * 2}
    changed = (
        QWEN3 | {name: full.get(name, "anything") for name in INERT if name not in ("model_type", "layer_types")} | full
    )
    assert from_hf(changed) == from_hf(QWEN3)


@pytest.mark.parametrize(
    "old",
    [
        {"rope_theta": 1e4, "rope_scaling": None},
        {"rope_theta": 1e4, "rope_scaling": {"type": "default"}},
        {"rope_theta": 10000, "rope_parameters": QWEN3["rope_parameters"], "rope_scaling": {"rope_type": "default"}},
    ],
)
def test_legacy_rope_fields_mean_the_same(old: dict[str, Any]) -> None:
    without = {k: v for k, v in QWEN3.items() if k != "rope_parameters"}
    assert from_hf(without | old) == from_hf(QWEN3)


def test_legacy_yarn_means_the_same() -> None:
    yarn = {"factor": 4.0, "original_max_position_embeddings": 128}
    old = {k: v for k, v in QWEN3.items() if k != "rope_parameters"}
    old |= {"rope_theta": 1e4, "rope_scaling": {"type": "yarn", **yarn}}
    assert from_hf(old) == from_hf(QWEN3 | {"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4, **yarn}})


def real_config(name: str) -> dict[str, Any]:
    file = published.MODELS / "configs" / f"{name}.json"
    if not file.exists():
        pytest.skip("published configs are absent")
    return json.loads(file.read_text())


@pytest.mark.parametrize("size", ["0.6B", "1.7B", "4B", "8B", "14B", "32B"])
def test_published_qwen3_configs_make_the_published_shapes(size: str) -> None:
    """Every tensor of the full-size model, by name and shape, from shapes alone (no memory)."""
    fields = real_config(f"Qwen3-{size}")
    shapes_file = published.MODELS / "configs" / "shapes" / f"Qwen3-{size}.text.json"
    expected = {k: tuple(v) for k, v in json.loads(shapes_file.read_text()).items()}
    config = from_hf(fields)
    state = nnx.state(nnx.eval_shape(lambda: Qwen(config, jnp.bfloat16, nnx.Rngs(0))))
    shapes = {p: v.shape for p, v in by_path(state).items()}
    rows = (r for r in spread(RULES, config.num_layers) if r.path in shapes)
    made = {r.hf: shapes[r.path][::-1] if r.transposed else shapes[r.path] for r in rows}
    assert made == expected
