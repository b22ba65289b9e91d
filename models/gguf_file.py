"""Reads a GGUF file through the `gguf` package: metadata in the terms of config.json, tensors dequantised on demand.

Knows: GGUF's metadata keys and tensor types. Does not know: any family's network or names (the family's name table
has a GGUF column). Qwen's and Gemma's q and k rows are stored in the checkpoint's own order, so nothing is permuted.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from models.checkpoint import Checkpoint, CheckpointError, Tensor
from models.gguf_tokenizer import tokenizer_from

# Q5_0 stands in for Q4_K wherever a row is not a multiple of 256 (every Q4_K_M file of a model with D = 896).
TYPES = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K")

# Metadata key (after the architecture's name) -> field of config.json.
CONFIG_KEYS = {
    "context_length": "max_position_embeddings",
    "block_count": "num_hidden_layers",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "rope.freq_base": "rope_theta",
    "vocab_size": "vocab_size",
}
# What only some architectures have. Without a name it would be inert for the others.
OWN_KEYS: Mapping[str, Mapping[str, str]] = {
    "gemma3": {
        "attention.sliding_window": "sliding_window",
        "rope.freq_base_swa": "rope_local_base_freq",
        "final_logit_softcapping": "final_logit_softcapping",
    }
}
SCALING_KEYS = {
    "rope.scaling.type": "rope_type",
    "rope.scaling.factor": "factor",
    "rope.scaling.original_context_length": "original_max_position_embeddings",
    "rope.scaling.yarn_beta_fast": "beta_fast",
    "rope.scaling.yarn_beta_slow": "beta_slow",
}
# These must say what the rest of the file says, or nothing new: key -> the config field it must equal, or a constant.
SAME_KEYS: Mapping[str, str | float] = {
    "attention.value_length": "head_dim",
    "rope.dimension_count": "head_dim",
    "rope.scaling.attn_factor": 1.0,
}
INERT_KEYS = ("rope.scaling.finetuned",)  # how the file came about


def open_file(file: Path) -> Checkpoint:
    """Reads everything but the tensors' data, which stay on disk until each is asked for.

    Raises:
      CheckpointError: not a GGUF file, truncated, or with a tensor type or metadata key that is not understood.
    """
    try:
        reader = gguf.GGUFReader(file)
        fields = {k: f.contents() for k, f in reader.fields.items()}
    except Exception as error:  # the reader has no error type of its own: a bad file ends in whichever NumPy raises
        raise CheckpointError(f"{file}: broken, truncated or not a GGUF file ({error})") from None
    try:
        if fields.get("split.count", 1) > 1:
            raise CheckpointError(f"one of {fields['split.count']} split files; join them into one first")
        if fields.get("general.type", "model") != "model":
            raise CheckpointError(f"holds a {fields['general.type']!r}, not a model")
        strange = sorted({t.tensor_type.name for t in reader.tensors} - set(TYPES))
        if strange:
            raise CheckpointError(f"quantisation {', '.join(strange)} is not supported (have {', '.join(TYPES)})")
        tokenizer = tokenizer_from(fields)
        tensors = {
            t.name: Tensor(tuple(int(n) for n in reversed(t.shape)), _reader(t), str(file)) for t in reader.tensors
        }
        return Checkpoint(
            naming="gguf",
            config=config_from(fields, tensors),
            tensors=tensors,
            tokenizer=tokenizer,
            eos=frozenset(fields[k] for n in ("eos", "eot", "eom") if (k := f"tokenizer.ggml.{n}_token_id") in fields),
            generation={},
            chat_template=fields.get("tokenizer.chat_template"),
            files=(file,),
        )
    except CheckpointError as error:
        raise CheckpointError(f"{file}: {error}") from None


def _reader(tensor: gguf.ReaderTensor) -> Any:
    shape = tuple(int(n) for n in reversed(tensor.shape))
    return lambda: np.asarray(gguf.dequantize(tensor.data, tensor.tensor_type), np.float32).reshape(shape)


def config_from(fields: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """The metadata of the file's architecture as fields of config.json.

    Raises:
      CheckpointError: a key of the architecture that is not understood, or that contradicts another.
    """
    architecture = fields.get("general.architecture")
    if not isinstance(architecture, str):
        raise CheckpointError("metadata general.architecture is missing")
    own = {k.removeprefix(f"{architecture}."): v for k, v in fields.items() if k.startswith(f"{architecture}.")}
    keys = {**CONFIG_KEYS, **OWN_KEYS.get(architecture, {})}
    known = {*keys, *SCALING_KEYS, *SAME_KEYS, *INERT_KEYS}
    if unknown := sorted(set(own) - known):
        raise CheckpointError(f"metadata {architecture}.{unknown[0]} is not understood; it may change the model")
    config: dict[str, Any] = {"num_key_value_heads": None, "vocab_size": len(fields["tokenizer.ggml.tokens"])}
    config |= {keys[k]: v for k, v in own.items() if k in keys}
    scaling = {SCALING_KEYS[k]: v for k, v in own.items() if k in SCALING_KEYS}
    if scaling.get("rope_type", "none") != "none":
        config["rope_scaling"] = scaling
    if config.get("head_dim") is None and config.get("num_attention_heads"):
        config["head_dim"] = config.get("hidden_size", 0) // config["num_attention_heads"]
    for key, same in SAME_KEYS.items():
        want = config.get(same) if isinstance(same, str) else same
        if key in own and own[key] != want:
            raise CheckpointError(f"metadata {architecture}.{key} is {own[key]}; only {want} is built")
    config |= {"model_type": architecture, "tie_word_embeddings": "output.weight" not in tensors}
    if architecture == "qwen3":
        config["attention_bias"] = "blk.0.attn_q.bias" in tensors
    if architecture == "gemma3" and {"head_dim", "hidden_size", "num_attention_heads"} <= set(config):
        # GGUF has no key for the scale of the queries; of all sizes 27B alone (62 layers) does not take the head's size
        wide = config.get("num_hidden_layers") == 62
        heads = config["num_attention_heads"]
        config["query_pre_attn_scalar"] = config["hidden_size"] // heads if wide else config["head_dim"]
    return config
