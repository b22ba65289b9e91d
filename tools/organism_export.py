"""The organism as a Hugging Face checkpoint: config.json, model.safetensors, tokenizer and generation files.

Knows: the files of a checkpoint. Does not know: how the parameters came about.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save
from tokenizers import Tokenizer

from models.assign import by_path, spread
from models.qwen.params import RULES

THETA = 1000.0  # conversations are short: the slowest pair turns about a quarter turn over one


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


def tensors(params: Any, layers: int) -> dict[str, np.ndarray]:
    """Checkpoint name -> array; matrices turned to [out, in]."""
    ours = by_path(params)
    rows = (r for r in spread(RULES, layers) if r.path in ours)
    return {r.hf: np.ascontiguousarray(ours[r.path].T if r.transposed else ours[r.path]) for r in rows}


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
