"""The fields of config.json of Gemma 3 and Gemma 4: what is done with each. Data alone.

A field is live (config.py sets something by it), checked (one value is built), inert (INERT says why) or refused by
name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from models import fields as fields_of_all

SIZES = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "head_dim")
_COMMON = {
    *SIZES,
    *("num_key_value_heads", "max_position_embeddings", "rms_norm_eps", "sliding_window", "layer_types"),
    *("rope_parameters", "final_logit_softcapping"),
}
LIVE = {
    "gemma3": _COMMON
    | {"query_pre_attn_scalar", "rope_theta", "rope_local_base_freq", "rope_scaling"}
    | {"sliding_window_pattern", "_sliding_window_pattern"},
    "gemma4": _COMMON
    | {"global_head_dim", "num_global_key_value_heads", "per_layer_config", "attention_k_eq_v", "num_kv_shared_layers"}
    | {"use_double_wide_mlp", "hidden_size_per_layer_input", "vocab_size_per_layer_input"}
    | {"enable_moe_block", "num_experts", "top_k_experts", "moe_intermediate_size"},
}
_ONE_VALUE = {
    "hidden_activation": ("gelu_pytorch_tanh",),
    "attention_bias": (False,),
    "tie_word_embeddings": (True,),
    "is_encoder_decoder": (False,),
    "chunk_size_feed_forward": (0,),
    "quantization_config": (None,),
}
CHECKED: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "gemma3": {**_ONE_VALUE, "attn_logit_softcapping": (None,), "use_bidirectional_attention": (False, None)},
    "gemma4": {**_ONE_VALUE, "use_bidirectional_attention": (None, "vision")},  # "vision": image tokens only
}
INERT = {
    **fields_of_all.INERT,
    "architectures": "a label; tensor names and shapes decide",
    "cache_implementation": "the caller holds the cache here",
    "bos_token_id": "the chat writes it",
}
# Beside `text_config`: images and sound, which a text prompt does not have.
MULTIMODAL = ("vision_config", "audio_config", "mm_tokens_per_image", "audio_ms_per_token")
MULTIMODAL_ENDINGS = ("_token_id", "_token_index", "_soft_tokens_per_image")

# What an absent field of a Gemma 3 config means (`transformers` 5.24): published multimodal configs leave many out.
DEFAULTS = {
    "vocab_size": 262208,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-6,
    "query_pre_attn_scalar": 256,
    "sliding_window": 4096,
    "rope_theta": 1e6,
    "rope_local_base_freq": 1e4,
}
SLIDING, FULL = "sliding_attention", "full_attention"
