"""The name table of Gemma 3 and Gemma 4 checkpoints, and which tensors of a checkpoint are of no account to text.

Text weights lie under one of PREFIXES: a text model's own, or those of the multimodal checkpoints.
"""

from __future__ import annotations

from collections.abc import Collection

from models.assign import Rule
from models.gemma.config import GemmaConfig

PREFIXES = ("model.language_model.", "language_model.model.", "model.")

_ENDS = (
    ("embedding", "embed_tokens.weight", "token_embd.weight"),
    ("norm.weight", "norm.weight", "output_norm.weight"),
    ("per_layer.table", "embed_tokens_per_layer.weight", ""),
    ("per_layer.projection.kernel", "per_layer_model_projection.weight", ""),
    ("per_layer.norm.weight", "per_layer_projection_norm.weight", ""),
)
_LAYER = (
    ("input_norm.weight", "input_layernorm.weight", "attn_norm.weight"),
    ("post_attention_norm.weight", "post_attention_layernorm.weight", "post_attention_norm.weight"),
    ("pre_mlp_norm.weight", "pre_feedforward_layernorm.weight", "ffn_norm.weight"),
    ("post_mlp_norm.weight", "post_feedforward_layernorm.weight", "post_ffw_norm.weight"),
    ("attention.q_proj.kernel", "self_attn.q_proj.weight", "attn_q.weight"),
    ("attention.k_proj.kernel", "self_attn.k_proj.weight", "attn_k.weight"),
    ("attention.v_proj.kernel", "self_attn.v_proj.weight", "attn_v.weight"),
    ("attention.o_proj.kernel", "self_attn.o_proj.weight", "attn_output.weight"),
    ("attention.q_norm.weight", "self_attn.q_norm.weight", "attn_q_norm.weight"),
    ("attention.k_norm.weight", "self_attn.k_norm.weight", "attn_k_norm.weight"),
    ("mlp.gate_proj.kernel", "mlp.gate_proj.weight", "ffn_gate.weight"),
    ("mlp.up_proj.kernel", "mlp.up_proj.weight", "ffn_up.weight"),
    ("mlp.down_proj.kernel", "mlp.down_proj.weight", "ffn_down.weight"),
    ("scalar", "layer_scalar", ""),
    ("per_layer.gate.kernel", "per_layer_input_gate.weight", ""),
    ("per_layer.projection.kernel", "per_layer_projection.weight", ""),
    ("per_layer.norm.weight", "post_per_layer_input_norm.weight", ""),
    ("router.scale", "router.scale", ""),
    ("router.proj.kernel", "router.proj.weight", ""),
    ("router.per_expert_scale", "router.per_expert_scale", ""),
    ("experts.gate_up", "experts.gate_up_proj", ""),
    ("experts.down", "experts.down_proj", ""),
    ("dense_norm.weight", "post_feedforward_layernorm_1.weight", ""),
    ("pre_experts_norm.weight", "pre_feedforward_layernorm_2.weight", ""),
    ("experts_norm.weight", "post_feedforward_layernorm_2.weight", ""),
)
_TRANSPOSED = ("kernel", "experts.gate_up", "experts.down")

# Images and sound of the multimodal checkpoints, and a table that follows from the config.
_OTHERS = ("vision_tower", "audio_tower", "embed_vision", "embed_audio", "multi_modal_projector")
IGNORED = (*(f"{head}{name}.*" for name in _OTHERS for head in ("model.", "")), "*rotary_emb.inv_freq")
_SHARED = ("k_proj", "v_proj", "k_norm", "v_norm")  # of layers that read others' keys and values: stored, never used


def prefix(names: Collection[str]) -> str:
    """Where the text weights of a checkpoint lie; "model." where that is nowhere to be seen."""
    return next((p for p in PREFIXES if f"{p}embed_tokens.weight" in names), PREFIXES[-1])


def rules(config: GemmaConfig, names: Collection[str]) -> list[Rule]:
    """The table for one checkpoint. GGUF files hold 1 + w of Gemma 3's norms, the weight itself is w."""
    at, shift = prefix(names), -config.norm_offset
    rows = [(ours, f"{at}{hf}", gguf) for ours, hf, gguf in _ENDS]
    rows += [(f"layers.{{}}.{ours}", f"{at}layers.{{}}.{hf}", gguf and f"blk.{{}}.{gguf}") for ours, hf, gguf in _LAYER]
    return [
        Rule(ours, hf, gguf, ours.endswith(_TRANSPOSED), shift if ours.endswith("norm.weight") else 0.0)
        for ours, hf, gguf in rows
    ]


def ignored(config: GemmaConfig, names: Collection[str]) -> tuple[str, ...]:
    """Patterns of names that may be there and are not read."""
    at = f"{prefix(names)}layers"
    shared = [i for i, layer in enumerate(config.layers) if not layer.owns]
    return (*IGNORED, *(f"{at}.{i}.self_attn.{name}.weight" for i in shared for name in _SHARED))


def twins(names: Collection[str]) -> dict[str, str]:
    """The head, which is the embedding, may be stored once more."""
    embedding = f"{prefix(names)}embed_tokens.weight"
    return {
        "lm_head.weight": embedding,
        "language_model.lm_head.weight": embedding,
        "output.weight": "token_embd.weight",
    }
