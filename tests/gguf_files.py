"""Tiny GGUF files for tests, written as a converter would, with names and keys written out once more."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Kind
from tokenizers import Tokenizer

from tests import checkpoints
from tests.checkpoints import TOKENIZER

NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.o_proj": "attn_output",
    **{f"self_attn.{n}_proj": f"attn_{n}" for n in "qkv"},
    **{f"self_attn.{n}_norm": f"attn_{n}_norm" for n in "qk"},
    **{f"mlp.{n}_proj": f"ffn_{n}" for n in ("gate", "up", "down")},
    "model.layers": "blk",
}


def renamed(name: str, names: Mapping[str, str] = NAMES) -> str:
    for old, new in names.items():
        name = name.replace(old, new)
    return name


def metadata(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What a converter writes for a config, and the tiny tokenizer with its padding tokens."""
    family, tokenizer = fields["model_type"], Tokenizer.from_file(str(TOKENIZER))
    words = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().__getitem__)
    added = tokenizer.get_added_tokens_decoder()
    types = [1 if i not in added else 3 if added[i].special else 4 for i in range(len(words))]
    padding = fields["vocab_size"] - len(words)
    merges = [" ".join(pair) for pair in json.loads(TOKENIZER.read_text())["model"]["merges"]]
    rope = fields["rope_parameters"]
    found = {
        "general.name": "tiny",
        f"{family}.block_count": fields["num_hidden_layers"],
        f"{family}.context_length": fields["max_position_embeddings"],
        f"{family}.embedding_length": fields["hidden_size"],
        f"{family}.feed_forward_length": fields["intermediate_size"],
        f"{family}.attention.head_count": fields["num_attention_heads"],
        f"{family}.attention.head_count_kv": fields["num_key_value_heads"],
        f"{family}.attention.layer_norm_rms_epsilon": fields["rms_norm_eps"],
        f"{family}.rope.freq_base": rope["rope_theta"],
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen2",
        "tokenizer.ggml.tokens": words + [f"[PAD{i}]" for i in range(padding)],
        "tokenizer.ggml.token_type": types + [5] * padding,
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.eos_token_id": tokenizer.token_to_id("<|im_end|>"),
        "tokenizer.ggml.add_bos_token": False,
    }
    if "head_dim" in fields:
        found |= {f"{family}.attention.{n}_length": fields["head_dim"] for n in ("key", "value")}
    if rope["rope_type"] == "yarn":
        found |= {f"{family}.rope.scaling.type": "yarn", f"{family}.rope.scaling.factor": rope["factor"]}
        found[f"{family}.rope.scaling.original_context_length"] = rope["original_max_position_embeddings"]
    return found


def write_file(
    file: Path,
    fields: Mapping[str, Any],
    changes: Mapping[str, Any] | None = None,
    tensors: Mapping[str, np.ndarray] | None = None,
    kind: Callable[[str, np.ndarray], Kind] = lambda name, value: Kind.F32,
    said: Callable[[Mapping[str, Any]], dict[str, Any]] = metadata,
    rename: Callable[[str], str] = renamed,
) -> Path:
    """A GGUF file; `changes` sets metadata keys (the value `...` removes one), `kind` picks each tensor's type.

    `said` and `rename` are the metadata and the names of the family, Qwen's where not given.
    """
    writer = gguf.GGUFWriter(file, fields["model_type"].removesuffix("_text"))
    put = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}
    for key, value in (said(fields) | dict(changes or {})).items():
        if value is not ...:
            (writer.add_array if isinstance(value, list) else put[type(value)])(key, value)
    for name, value in (checkpoints.weights(dict(fields)) if tensors is None else tensors).items():
        chosen = kind(name, value)
        writer.add_tensor(rename(name), gguf.quantize(value, chosen), raw_dtype=chosen)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file
