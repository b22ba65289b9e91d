"""Tiny checkpoints on disk for tests: a table of configs, random weights by Hugging Face name, folders.

Weights are drawn with NumPy, so the same checkpoint exists with and without torch. Names and shapes are written out
here once more, independently of the name table under test.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from models.loading import CheckpointError, load

GOLDEN = Path(__file__).parent / "golden"
TOKENIZER = GOLDEN / "tokenizer.json"
VOCABULARY = 288  # rows of the tiny models' embedding; the tiny tokenizer has fewer ids

_COMMON: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "hidden_act": "silu",
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
}
QWEN2: dict[str, Any] = {**_COMMON, "model_type": "qwen2"}
QWEN3: dict[str, Any] = {**_COMMON, "model_type": "qwen3", "head_dim": 8, "attention_bias": False}


def _rope(kind: str, theta: float = 1e4, **fields: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_type": kind, "rope_theta": theta, **fields}}


# name -> (config.json, first position): every live field away from its usual value in at least one case
CASES: dict[str, tuple[dict[str, Any], int]] = {
    "qwen2": (QWEN2, 0),
    "qwen2 tied": ({**QWEN2, "tie_word_embeddings": True}, 0),
    "qwen2 ratio 1": ({**QWEN2, "num_key_value_heads": 4}, 0),
    "qwen2 ratio 4": ({**QWEN2, "num_key_value_heads": 1}, 0),
    "qwen2 head_dim": ({**QWEN2, "head_dim": 12}, 0),
    "qwen2 theta": ({**QWEN2, **_rope("default", 1e6)}, 4000),
    "qwen2 linear": ({**QWEN2, **_rope("linear", factor=8.0)}, 4000),
    "qwen2 yarn": ({**QWEN2, **_rope("yarn", factor=4.0, original_max_position_embeddings=128)}, 0),
    "qwen3": (QWEN3, 0),
    "qwen3 tied": ({**QWEN3, "tie_word_embeddings": True}, 0),
    "qwen3 bias": ({**QWEN3, "attention_bias": True}, 0),
    "qwen3 head_dim": ({**QWEN3, "head_dim": 12}, 0),
    "qwen3 ratio 1": ({**QWEN3, "num_key_value_heads": 4}, 0),
    "qwen3 ratio 4": ({**QWEN3, "num_key_value_heads": 1}, 0),
    "qwen3 eps": ({**QWEN3, "rms_norm_eps": 0.1}, 0),
    "qwen3 one layer": ({**QWEN3, "num_hidden_layers": 1}, 0),
    "qwen3 yarn": ({**QWEN3, **_rope("yarn", 1e6, factor=4.0, original_max_position_embeddings=64)}, 4000),
    "qwen3 yarn inferred": ({**QWEN3, **_rope("yarn", factor=2.0)}, 0),
    "qwen3 yarn all": (
        {
            **QWEN3,
            **_rope(
                "yarn",
                factor=8.0,
                original_max_position_embeddings=256,
                attention_factor=1.3,
                beta_fast=16.0,
                beta_slow=2.0,
                truncate=False,
            ),
        },
        100,
    ),
    "qwen3 yarn mscale": (
        {**QWEN3, **_rope("yarn", factor=8.0, original_max_position_embeddings=64, mscale=0.7, mscale_all_dim=0.3)},
        0,
    ),
}


def shapes(fields: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Hugging Face names and shapes ([out, in]) of a config."""
    c = fields
    d, i, n, k = (c[f] for f in ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads"))
    h = c.get("head_dim") or d // n
    qwen3, bias = c["model_type"] == "qwen3", c.get("attention_bias", False)
    named: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (c["vocab_size"], d), "model.norm.weight": (d,)}
    if not c["tie_word_embeddings"]:
        named["lm_head.weight"] = (c["vocab_size"], d)
    for layer in range(c["num_hidden_layers"]):
        at = f"model.layers.{layer}"
        named |= {f"{at}.{n}_layernorm.weight": (d,) for n in ("input", "post_attention")}
        rows = {"q": (n * h, d), "k": (k * h, d), "v": (k * h, d), "o": (d, n * h)}
        for name, shape in rows.items():
            named[f"{at}.self_attn.{name}_proj.weight"] = shape
            if bias or (not qwen3 and name != "o"):
                named[f"{at}.self_attn.{name}_proj.bias"] = shape[:1]
        if qwen3:
            named |= {f"{at}.self_attn.{n}_norm.weight": (h,) for n in "qk"}
        named |= {f"{at}.mlp.{n}_proj.weight": (i, d) for n in ("gate", "up")}
        named[f"{at}.mlp.down_proj.weight"] = (d, i)
    return named


def weights(fields: dict[str, Any], seed: int = 0) -> dict[str, np.ndarray]:
    """Random float32 weights: norms around 1, biases around 0, nothing at its neutral value."""
    rng = np.random.default_rng(seed)
    drawn = {}
    for name, shape in shapes(fields).items():
        noise = rng.standard_normal(shape)
        if "norm" in name:
            drawn[name] = 1 + 0.3 * noise
        elif name.endswith("bias"):
            drawn[name] = 0.5 * noise
        else:
            drawn[name] = noise if "embed" in name else noise * shape[-1] ** -0.5
    return {name: value.astype(np.float32) for name, value in drawn.items()}


def tokens(rows: int = 2, length: int = 12, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (rows, length)).astype(np.int32)


def write_folder(
    folder: Path,
    fields: dict[str, Any],
    tensors: dict[str, np.ndarray] | None = None,
    shards: int = 0,
    tokenizer: Path = TOKENIZER,
) -> Path:
    """A model folder in Hugging Face layout: one file, or `shards` files with an index."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = weights(fields) if tensors is None else tensors
    (folder / "config.json").write_text(json.dumps(fields))
    shutil.copy(tokenizer, folder / "tokenizer.json")
    if not shards:
        save_file(tensors, folder / "model.safetensors")
        return folder
    place = {name: f"model-{i % shards + 1:05}-of-{shards:05}.safetensors" for i, name in enumerate(tensors)}
    for shard in sorted(set(place.values())):
        save_file({n: t for n, t in tensors.items() if place[n] == shard}, folder / shard)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": place}))
    return folder


def edit(file: Path, **changes: Any) -> None:
    """Sets fields of a JSON file; the value `...` removes one."""
    fields = json.loads(file.read_text()) | changes
    file.write_text(json.dumps({k: v for k, v in fields.items() if v is not ...}))


def refusal(path: Path, **options: Any) -> str:
    """What `load` says of a checkpoint it refuses: always one line that names the place."""
    with pytest.raises(CheckpointError) as caught:
        load(path, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert options or str(path) in message
    return message
