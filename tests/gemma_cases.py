"""Tiny Gemma checkpoints for tests: a table of configs, random weights by Hugging Face name.

As tests/checkpoints.py: weights are drawn with NumPy, names and shapes are written out once more, independently of the
name table under test.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests import checkpoints

TOKENIZER = checkpoints.GOLDEN / "gemma_tokenizer.json"
VOCABULARY = 320  # rows of the tiny models' embedding; the tiny tokenizer has fewer ids
WINDOW = 8
S, F = "sliding_attention", "full_attention"

_COMMON: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 40,
    "num_hidden_layers": 3,
    "layer_types": [S, S, F],
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "sliding_window": WINDOW,
    "hidden_activation": "gelu_pytorch_tanh",
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": True,
    "final_logit_softcapping": None,
}


def _ropes(full: dict[str, Any], sliding_theta: float = 1e4) -> dict[str, Any]:
    return {"rope_parameters": {F: full, S: {"rope_type": "default", "rope_theta": sliding_theta}}}


GEMMA3: dict[str, Any] = {
    **_COMMON,
    **_ropes({"rope_type": "default", "rope_theta": 1e6}),
    "model_type": "gemma3_text",
    "query_pre_attn_scalar": 8,
}
GEMMA4: dict[str, Any] = {
    **_COMMON,
    **_ropes({"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6}),
    "model_type": "gemma4_text",
    "global_head_dim": 16,
    "num_global_key_value_heads": None,
    "attention_k_eq_v": False,
    "num_kv_shared_layers": 0,
    "use_double_wide_mlp": False,
    "hidden_size_per_layer_input": 0,
    "vocab_size_per_layer_input": VOCABULARY,
    "enable_moe_block": False,
    "num_experts": None,
    "top_k_experts": None,
    "moe_intermediate_size": None,
    "use_bidirectional_attention": None,
}
_SHARED = {"num_hidden_layers": 5, "layer_types": [S, F, S, S, F], "num_kv_shared_layers": 3}
_PLE = {"hidden_size_per_layer_input": 16}  # few dims, all near zero, would be blown up by their norm
_MOE = {"enable_moe_block": True, "num_experts": 6, "top_k_experts": 2, "moe_intermediate_size": 10}
_K_IS_V = {"attention_k_eq_v": True, "num_global_key_value_heads": 1}

# name -> config.json: every feature on in some case and off in another
CASES: dict[str, dict[str, Any]] = {
    "gemma3": GEMMA3,
    "gemma3 linear": {**GEMMA3, **_ropes({"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6}, 5e3)},
    "gemma3 scale": {**GEMMA3, "query_pre_attn_scalar": 50, "rms_norm_eps": 0.1},
    "gemma3 cap": {**GEMMA3, "final_logit_softcapping": 3.0, "num_key_value_heads": 1, "layer_types": [F, S, S]},
    "gemma3 sliding": {**GEMMA3, "num_hidden_layers": 2, "layer_types": [S, S]},
    "gemma4": GEMMA4,
    "gemma4 one head size": {**GEMMA4, "global_head_dim": 8, "num_key_value_heads": 4},
    "gemma4 rope": {
        **GEMMA4,
        **_ropes({"rope_type": "proportional", "partial_rotary_factor": 0.5, "rope_theta": 1e3, "factor": 2.0}, 1e2),
    },
    "gemma4 cap": {**GEMMA4, "final_logit_softcapping": 3.0, "rms_norm_eps": 0.01},
    "gemma4 per-layer": {**GEMMA4, **_PLE},
    "gemma4 shared": {**GEMMA4, **_SHARED},
    "gemma4 edge": {**GEMMA4, **_SHARED, **_PLE, "use_double_wide_mlp": True, "final_logit_softcapping": 10.0},
    "gemma4 k=v": {**GEMMA4, **_K_IS_V},
    "gemma4 k=v, equal heads": {**GEMMA4, "attention_k_eq_v": True},
    "gemma4 experts": {**GEMMA4, **_MOE},
    "gemma4 26b": {**GEMMA4, **_MOE, **_K_IS_V, "final_logit_softcapping": 10.0},
    "gemma4 12b": {**GEMMA4, **_K_IS_V, "model_type": "gemma4_unified_text", "final_logit_softcapping": 10.0},
}


LENGTHS = (WINDOW - 3, WINDOW, WINDOW + 1, 3 * WINDOW)  # of the rows of a ragged batch


def tokens(seed: int = 1) -> np.ndarray:
    """int32 [4, 24]: a batch whose rows are to be read up to LENGTHS."""
    return np.random.default_rng(seed).integers(0, VOCABULARY, (len(LENGTHS), max(LENGTHS))).astype(np.int32)


def shapes(fields: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Hugging Face names and shapes ([out, in]) of a config, without the unused ones of shared layers."""
    c = fields
    four, d, n = "gemma4" in c["model_type"], c["hidden_size"], c["num_attention_heads"]
    ple, layers = c.get("hidden_size_per_layer_input", 0), c["num_hidden_layers"]
    first_shared = layers - c.get("num_kv_shared_layers", 0)
    named: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (c["vocab_size"], d), "model.norm.weight": (d,)}
    if ple:
        named["model.embed_tokens_per_layer.weight"] = (c["vocab_size_per_layer_input"], layers * ple)
        named["model.per_layer_model_projection.weight"] = (layers * ple, d)
        named["model.per_layer_projection_norm.weight"] = (ple,)
    for i, kind in enumerate(c["layer_types"]):
        full, shared = kind == F, i >= first_shared
        h = c["global_head_dim"] if four and full else c["head_dim"]
        k = c["num_key_value_heads"]
        if full and c.get("attention_k_eq_v") and c["num_global_key_value_heads"]:
            k = c["num_global_key_value_heads"]
        wide = c["intermediate_size"] * (2 if shared and c["use_double_wide_mlp"] else 1)
        own: dict[str, tuple[int, ...]] = {
            "self_attn.q_proj.weight": (n * h, d),
            "self_attn.q_norm.weight": (h,),
            "self_attn.o_proj.weight": (d, n * h),
            "mlp.gate_proj.weight": (wide, d),
            "mlp.up_proj.weight": (wide, d),
            "mlp.down_proj.weight": (d, wide),
        }
        norms = ["input", "post_attention", "pre_feedforward", "post_feedforward"]
        if not shared:
            own |= {"self_attn.k_proj.weight": (k * h, d), "self_attn.k_norm.weight": (h,)}
            if not (full and c.get("attention_k_eq_v")):
                own["self_attn.v_proj.weight"] = (k * h, d)
        if four:
            own["layer_scalar"] = (1,)
        if ple:
            own |= {"per_layer_input_gate.weight": (ple, d), "per_layer_projection.weight": (d, ple)}
            own["post_per_layer_input_norm.weight"] = (d,)
        if c.get("enable_moe_block"):
            e, m = c["num_experts"], c["moe_intermediate_size"]
            own |= {"router.scale": (d,), "router.per_expert_scale": (e,), "router.proj.weight": (e, d)}
            own |= {"experts.gate_up_proj": (e, 2 * m, d), "experts.down_proj": (e, d, m)}
            norms += ["post_feedforward_layernorm_1", "post_feedforward_layernorm_2", "pre_feedforward_layernorm_2"]
        own |= {f"{name}.weight" if "layernorm" in name else f"{name}_layernorm.weight": (d,) for name in norms}
        named |= {f"model.layers.{i}.{name}": shape for name, shape in own.items()}
    return named


def weights(fields: dict[str, Any], seed: int = 0) -> dict[str, np.ndarray]:
    """Random float32 weights: norms, scales and layer scalars off their neutral values."""
    rng, around = np.random.default_rng(seed), 0.0 if "gemma3" in fields["model_type"] else 1.0
    drawn = {}
    for name, shape in shapes(fields).items():
        noise = rng.standard_normal(shape)
        if "norm" in name:
            drawn[name] = around + 0.3 * noise
        elif name.endswith(("scale", "scalar")):
            drawn[name] = 1 + 0.3 * noise
        elif "embed_tokens" in name:
            drawn[name] = noise * 0.2
        else:
            drawn[name] = noise * shape[-1] ** -0.5
    return {name: value.astype(np.float32) for name, value in drawn.items()}


def write_folder(
    folder: Path, fields: dict[str, Any], tensors: dict[str, np.ndarray] | None = None, shards: int = 0
) -> Path:
    """A model folder in Hugging Face layout, with the tiny Gemma tokenizer."""
    tensors = weights(fields) if tensors is None else tensors
    return checkpoints.write_folder(folder, fields, tensors, shards, TOKENIZER)
