"""The organism as a Hugging Face checkpoint: config.json, model.safetensors, tokenizer and generation files.

Knows: the names Qwen3 checkpoints use. Does not know: how the parameters came about.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from flax import nnx
from safetensors.numpy import save
from tokenizers import Tokenizer

from models.qwen.config import QwenConfig
from models.rope import make_rope

THETA = 1000.0  # conversations are short: the slowest pair turns about a quarter turn over one
LAYER: dict[tuple[str, ...], str] = {  # our module path in a layer -> the checkpoint's
    ("input_norm", "weight"): "input_layernorm.weight",
    ("post_norm", "weight"): "post_attention_layernorm.weight",
    ("attention", "q_norm", "weight"): "self_attn.q_norm.weight",
    ("attention", "k_norm", "weight"): "self_attn.k_norm.weight",
    **{("attention", n, "kernel"): f"self_attn.{n}.weight" for n in ("q_proj", "k_proj", "v_proj", "o_proj")},
    **{("mlp", n, "kernel"): f"mlp.{n}.weight" for n in ("gate_proj", "up_proj", "down_proj")},
}


def fields(words: Tokenizer, hidden: int, intermediate: int, layers: int) -> dict[str, Any]:
    """config.json of an organism: Qwen3, 4 heads and 2 kv heads of size 16, tied embedding."""
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "vocab_size": words.get_vocab_size(),
        "hidden_size": hidden,
        "intermediate_size": intermediate,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "hidden_act": "silu",
        "max_position_embeddings": 256,
        "rms_norm_eps": 1e-6,
        "rope_theta": THETA,
        "attention_bias": False,
        "tie_word_embeddings": True,
        "use_sliding_window": False,
        "bos_token_id": None,
        "eos_token_id": words.token_to_id("<|im_end|>"),
        "pad_token_id": words.token_to_id("<|endoftext|>"),
        "dtype": "float32",
    }


def config(f: dict[str, Any]) -> QwenConfig:
    """The model's shapes from config.json's fields."""
    return QwenConfig(
        vocab_size=f["vocab_size"],
        hidden_size=f["hidden_size"],
        intermediate_size=f["intermediate_size"],
        num_layers=f["num_hidden_layers"],
        num_heads=f["num_attention_heads"],
        num_kv_heads=f["num_key_value_heads"],
        head_dim=f["head_dim"],
        rope=make_rope(f["head_dim"], f["rope_theta"], None, f["max_position_embeddings"]),
        norm_eps=f["rms_norm_eps"],
        tied=f["tie_word_embeddings"],
        qkv_bias=f["attention_bias"],
        output_bias=f["attention_bias"],
        head_norms=True,
        max_positions=f["max_position_embeddings"],
    )


def tensors(params: Any, layers: int) -> dict[str, np.ndarray]:
    """Checkpoint name -> array; matrices turned to [out, in], layers unstacked."""
    plain = nnx.to_pure_dict(params)
    named = {"model.embed_tokens.weight": np.asarray(plain["embedding"])}
    named["model.norm.weight"] = np.asarray(plain["norm"]["weight"])
    for path, name in LAYER.items():
        stacked = plain["layers"]
        for key in path:
            stacked = stacked[key]
        for i in range(layers):
            named[f"model.layers.{i}.{name}"] = np.ascontiguousarray(np.asarray(stacked[i]).T)
    return named


def write(folder: Path, f: dict[str, Any], params: Any, words: Tokenizer) -> None:
    """Writes the checkpoint's five files."""
    folder.mkdir(parents=True, exist_ok=True)
    stop = [words.token_to_id("<|im_end|>"), words.token_to_id("<|endoftext|>")]
    files = {
        "config.json": f,
        "generation_config.json": {
            "do_sample": True,
            "temperature": 1.0,
            "top_p": 1.0,
            "top_k": 0,
            "eos_token_id": stop,
            "pad_token_id": stop[1],
        },
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": "<|im_end|>",
            "pad_token": "<|endoftext|>",
            "model_max_length": f["max_position_embeddings"],
            "clean_up_tokenization_spaces": False,
        },
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, indent=2) + "\n")
    words.save(str(folder / "tokenizer.json"))
    (folder / "model.safetensors").write_bytes(save(tensors(params, f["num_hidden_layers"]), {"format": "pt"}))
