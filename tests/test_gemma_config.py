"""Every field of a Gemma config is live, checked, inert or refused by name; published and saved forms read the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from models.checkpoint import CheckpointError
from models.families import ALIASES, FAMILIES, family_of
from models.gemma.config import from_hf
from models.gemma.tables import CHECKED, INERT, LIVE
from tests.gemma_cases import CASES, GEMMA3, GEMMA4, F, S

EDGE, MOE = CASES["gemma4 edge"], CASES["gemma4 26b"]
OLD3 = {k: v for k, v in GEMMA3.items() if k not in ("rope_parameters", "layer_types")}
OLD3 |= {"num_hidden_layers": 6, "rope_theta": 1e6, "rope_local_base_freq": 1e4}
_ROPES = GEMMA4["rope_parameters"]

# family -> field -> (a config that has it, another value): the shapes read must differ
FLIPS: dict[str, dict[str, tuple[dict[str, Any], Any]]] = {
    "gemma3": {
        "vocab_size": (GEMMA3, 400),
        "hidden_size": (GEMMA3, 64),
        "intermediate_size": (GEMMA3, 64),
        "num_hidden_layers": (OLD3, 7),
        "num_attention_heads": (GEMMA3, 2),
        "head_dim": (GEMMA3, 16),
        "num_key_value_heads": (GEMMA3, 1),
        "max_position_embeddings": (GEMMA3, 99),
        "rms_norm_eps": (GEMMA3, 1e-5),
        "sliding_window": (GEMMA3, 9),
        "layer_types": (GEMMA3, [S, F, F]),
        "rope_parameters": (GEMMA3, {k: {**v, "rope_theta": 5e3} for k, v in GEMMA3["rope_parameters"].items()}),
        "final_logit_softcapping": (GEMMA3, 30.0),
        "query_pre_attn_scalar": (GEMMA3, 168),
        "rope_theta": (OLD3, 1e5),
        "rope_local_base_freq": (OLD3, 2e4),
        "rope_scaling": (OLD3, {"rope_type": "linear", "factor": 8.0}),
        "sliding_window_pattern": (OLD3, 3),
        "_sliding_window_pattern": (OLD3, 2),
    },
    "gemma4": {
        "vocab_size": (GEMMA4, 400),
        "hidden_size": (GEMMA4, 64),
        "intermediate_size": (GEMMA4, 64),
        "num_hidden_layers": ({k: v for k, v in GEMMA4.items() if k != "layer_types"} | {"num_hidden_layers": 6}, 7),
        "num_attention_heads": (GEMMA4, 2),
        "head_dim": (GEMMA4, 16),
        "num_key_value_heads": (GEMMA4, 1),
        "max_position_embeddings": (GEMMA4, 99),
        "rms_norm_eps": (GEMMA4, 1e-5),
        "sliding_window": (GEMMA4, 9),
        "layer_types": (GEMMA4, [S, F, F]),
        "rope_parameters": (GEMMA4, {**_ROPES, F: {**_ROPES[F], "partial_rotary_factor": 0.5}}),
        "final_logit_softcapping": (GEMMA4, 30.0),
        "global_head_dim": (GEMMA4, 32),
        "num_global_key_value_heads": (MOE, 2),
        "per_layer_config": (GEMMA4, {"2": {"head_dim": 32}}),
        "attention_k_eq_v": (GEMMA4, True),
        "num_kv_shared_layers": (EDGE, 0),
        "use_double_wide_mlp": (EDGE, False),
        "hidden_size_per_layer_input": (EDGE, 8),
        "vocab_size_per_layer_input": (EDGE, 8),
        "enable_moe_block": (MOE, False),
        "num_experts": (MOE, 8),
        "top_k_experts": (MOE, 3),
        "moe_intermediate_size": (MOE, 8),
    },
}


@pytest.mark.parametrize("family", FLIPS)
def test_41_each_live_field_sets_something(family: str) -> None:
    assert set(FLIPS[family]) == LIVE[family]
    for field, (fields, other) in FLIPS[family].items():
        assert from_hf(fields) != from_hf({**fields, field: other}), field
    assert not LIVE[family] & (set(CHECKED[family]) | set(INERT))


REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (GEMMA3, {"attn_logit_softcapping": 50.0}, "attn_logit_softcapping is 50.0; only None is built"),
    (GEMMA3, {"use_bidirectional_attention": True}, "use_bidirectional_attention is True"),
    (GEMMA3, {"hidden_activation": "silu"}, "hidden_activation is 'silu'; only 'gelu_pytorch_tanh' is built"),
    (GEMMA3, {"altup_num_inputs": 4}, "config field altup_num_inputs is not understood for gemma3"),
    (GEMMA3, {"rope_scaling": {"rope_type": "linear", "factor": 2}}, "rope_parameters and rope_scaling are both given"),
    (GEMMA3, {"rope_parameters": {F: {"rope_theta": 1e4}}}, "rope_parameters must have an object sliding_attention"),
    (GEMMA4, {"tie_word_embeddings": False}, "tie_word_embeddings is False; only True is built"),
    (GEMMA4, {"attention_bias": True}, "attention_bias is True"),
    (GEMMA4, {"use_bidirectional_attention": "all"}, "use_bidirectional_attention is 'all'"),
    (GEMMA4, {"rope_parameters": None}, "rope_parameters must have an object sliding_attention, got None"),
    (GEMMA4, {"global_head_dim": None}, "config field global_head_dim is missing"),
    (GEMMA4, {"head_dim": 7}, "sliding_attention: head_dim must be even"),
    (GEMMA4, {"layer_types": [S, F]}, "layer_types must list 3 times"),
    (GEMMA4, {"layer_types": [S, S, "chunked_attention"]}, "layer_types must list 3 times"),
    (GEMMA4, {"num_key_value_heads": 3}, "num_attention_heads (4) is not a multiple of the 3 key/value heads"),
    (GEMMA4, {"num_kv_shared_layers": 1}, "nothing to share with, no layer before has full_attention"),
    (GEMMA4, {"num_kv_shared_layers": 3}, "nothing to share with, there are 3 layers"),
    (GEMMA4, {"per_layer_config": {"2": {"sliding_window": 3}}}, "only head_dim, num_key_value_heads are built"),
    (GEMMA4, {"per_layer_config": {"1": {"head_dim": 16}}}, "must say the same of every full layer and nothing else"),
    (MOE, {"top_k_experts": 7}, "top_k_experts (7) exceeds num_experts (6)"),
    (MOE, {"num_experts": None}, "config field num_experts is missing"),
    (EDGE, {"vocab_size_per_layer_input": -1}, "vocab_size_per_layer_input must be a positive integer"),
]


@pytest.mark.parametrize(("fields", "change", "expected"), REFUSED, ids=[r[2][:40] for r in REFUSED])
def test_41_refused_config_fields(fields: dict[str, Any], change: dict[str, Any], expected: str) -> None:
    with pytest.raises(CheckpointError) as caught:
        from_hf(fields | change)
    assert expected in str(caught.value)


def test_a_multimodal_config_is_its_text_config() -> None:
    inner = {k: v for k, v in EDGE.items() if k != "tie_word_embeddings"}
    outer = {"model_type": "gemma4", "text_config": inner, "vision_config": {"depth": 3}, "audio_config": None}
    outer |= {"image_token_id": 5, "boi_token_id": 6, "eoa_token_index": 7, "vision_soft_tokens_per_image": 280}
    assert from_hf(outer) == from_hf(EDGE)
    with pytest.raises(CheckpointError, match="config field surprise beside text_config is not understood"):
        from_hf(outer | {"surprise": 1})
    with pytest.raises(CheckpointError, match="tie_word_embeddings is False"):
        from_hf(outer | {"tie_word_embeddings": False})


def test_gemma3_configs_may_leave_out_what_has_a_default() -> None:
    """The published multimodal configs give four sizes and the scaling; the rest is transformers' default."""
    published = {"hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34, "sliding_window": 1024}
    published |= {"model_type": "gemma3_text", "rope_scaling": {"factor": 8.0, "rope_type": "linear"}}
    config = from_hf({"model_type": "gemma3", "text_config": published, "mm_tokens_per_image": 256})
    assert (config.vocab_size, config.num_heads, config.query_scale) == (262208, 8, 1 / 16)
    assert config.windows[:7] == (1024,) * 5 + (None, 1024)
    full, sliding = (config.layers[i].rope.frequencies for i in (5, 0))
    assert (full[0], sliding[0]) == (1 / 8, 1.0)  # factor 8 in the full layers alone


@pytest.mark.torch
@pytest.mark.parametrize("name", ["gemma3", "gemma3 linear", "gemma4", "gemma4 edge", "gemma4 26b", "gemma4 12b"])
def test_what_transformers_saves_again_reads_the_same(tmp_path: Path, name: str) -> None:
    """save_pretrained writes other fields (per_layer_config for global_head_dim); the shapes must not change."""
    transformers = pytest.importorskip("transformers")
    transformers.AutoConfig.for_model(**json.loads(json.dumps(CASES[name]))).save_pretrained(tmp_path)
    saved = json.loads((tmp_path / "config.json").read_text())
    assert from_hf(saved) == from_hf(CASES[name])


def test_families_and_their_aliases() -> None:
    for name in ("gemma4", "gemma4_text", "gemma4_unified", "gemma4_unified_text"):
        assert family_of({"model_type": name}) == "gemma4"
    assert set(ALIASES.values()) <= set(FAMILIES)
    with pytest.raises(CheckpointError, match="model_type 'gemma2' is not supported"):
        family_of({"model_type": "gemma2"})
