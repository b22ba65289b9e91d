"""What is refused at the door: one line that names file and field, and all faults of a kind together."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import checkpoints
from tests.checkpoints import QWEN2, QWEN3, edit, refusal, write_folder

Break = Callable[[Path], object]
BREAKS: dict[str, tuple[Break, str]] = {
    "no config": (lambda d: (d / "config.json").unlink(), "config.json: no such file"),
    "torn config": (lambda d: (d / "config.json").write_text("{"), "config.json: not readable as JSON"),
    "list for config": (lambda d: (d / "config.json").write_text("[]"), "config.json: holds list, not an object"),
    "no tokenizer": (lambda d: (d / "tokenizer.json").unlink(), "tokenizer.json: no such file"),
    "torn tokenizer": (lambda d: (d / "tokenizer.json").write_text("{}"), "tokenizer.json: not a tokenizer"),
    "no weights": (lambda d: (d / "model.safetensors").unlink(), "no weights (model.safetensors or"),
    "pickled weights": (
        lambda d: (d / "model.safetensors").rename(d / "pytorch_model.bin"),
        "only pickled weights (pytorch_model.bin), which could run code",
    ),
    "shards without index": (
        lambda d: (d / "model.safetensors").rename(d / "model-00001-of-00001.safetensors"),
        "has model-00001-of-00001.safetensors but neither",
    ),
    "other added token": (
        lambda d: (d / "tokenizer_config.json").write_text(
            json.dumps({"added_tokens_decoder": {"5": {"content": "<think>"}}})
        ),
        "added token '<think>' has id 5, tokenizer.json disagrees",
    ),
    "unknown eos token": (
        lambda d: (d / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<end>"})),
        "eos_token '<end>' is not in tokenizer.json",
    ),
    "foreign template": (
        lambda d: (d / "chat_template.jinja").write_text("{{ bos_token }}[INST]"),
        "the chat template is none of those known (qwen3)",
    ),
    "temperature below zero": (
        lambda d: (d / "generation_config.json").write_text('{"temperature": -1}'),
        "generation_config.json: field temperature is out of range, got -1",
    ),
    "top_p of zero": (
        lambda d: (d / "generation_config.json").write_text('{"top_p": 0}'),
        "generation_config.json: field top_p is out of range, got 0",
    ),
}


@pytest.mark.parametrize("name", BREAKS)
def test_refused_folders(tmp_path: Path, name: str) -> None:
    write_folder(tmp_path, QWEN3)
    damage, expected = BREAKS[name]
    damage(tmp_path)
    message = refusal(tmp_path)
    assert expected in message
    assert str(tmp_path) in message


def test_refused_paths_and_dtypes(tmp_path: Path) -> None:
    assert "no such file or folder" in refusal(tmp_path / "absent")
    assert "dtype 'float16' is not one of float32, bfloat16" in refusal(tmp_path, dtype="float16")


def test_44_missing_unknown_and_misshapen_are_named_together(tmp_path: Path) -> None:
    tensors = checkpoints.weights(QWEN3)
    del tensors["model.norm.weight"], tensors["model.layers.1.mlp.up_proj.weight"]
    tensors["model.layers.0.mlp.down_proj.weight"] = np.zeros((48, 32), np.float32)
    tensors["model.layers.7.mlp.up_proj.weight"] = np.zeros((1,), np.float32)
    message = refusal(write_folder(tmp_path, QWEN3, tensors))
    assert "missing 2: model.layers.1.mlp.up_proj.weight, model.norm.weight" in message
    assert "unknown 1: model.layers.7.mlp.up_proj.weight" in message
    assert "misshapen 1: model.layers.0.mlp.down_proj.weight is [48, 32], not [32, 48]" in message


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_44_any_lost_or_renamed_tensor_is_named(tmp_path: Path, data: st.DataObject) -> None:
    tensors = checkpoints.weights(QWEN2)
    names = sorted(tensors)
    lost = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True))
    renamed = data.draw(st.sampled_from([n for n in names if n not in lost]))
    kept = {f"{n}.x" if n == renamed else n: t for n, t in tensors.items() if n not in lost}
    message = refusal(write_folder(tmp_path, QWEN2, kept))
    assert all(name in message for name in (*lost, renamed, f"{renamed}.x"))
    assert f"missing {len(lost) + 1}: " in message


def test_44_an_untied_model_without_head_is_refused(tmp_path: Path) -> None:
    tensors = checkpoints.weights(QWEN3)
    del tensors["lm_head.weight"]
    assert "missing 1: lm_head.weight" in refusal(write_folder(tmp_path, QWEN3, tensors))


@pytest.mark.parametrize("keep", [0, 5, 200, -1])
def test_truncated_safetensors(tmp_path: Path, keep: int) -> None:
    file = write_folder(tmp_path, QWEN3) / "model.safetensors"
    file.write_bytes(file.read_bytes()[:keep])
    assert f"{file}: broken or truncated safetensors file" in refusal(tmp_path)


def test_44_missing_shard_and_lying_index(tmp_path: Path) -> None:
    write_folder(tmp_path, QWEN3, shards=3)
    index = tmp_path / "model.safetensors.index.json"
    places = json.loads(index.read_text())["weight_map"]
    edit(index, weight_map=places | {"model.norm.weight": "model-00001-of-00003.safetensors", "lm_head.weight": "../x"})
    assert "shard '../x' is not a plain file name" in refusal(tmp_path)
    wrong = next(s for s in set(places.values()) if s != places["model.norm.weight"])
    edit(index, weight_map=places | {"model.norm.weight": wrong})
    assert f"{wrong}: lacks tensors the index places there: model.norm.weight" in refusal(tmp_path)
    edit(index, weight_map=places)
    (tmp_path / "model-00002-of-00003.safetensors").unlink()
    assert "names shards that are not there: model-00002-of-00003.safetensors" in refusal(tmp_path)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_nan_weights_are_refused(tmp_path: Path, value: float, dtype: str) -> None:
    tensors = {k: v.astype(jnp.dtype(dtype)) for k, v in checkpoints.weights(QWEN3).items()}
    tensors["model.layers.1.mlp.up_proj.weight"][3, 4] = value
    message = refusal(write_folder(tmp_path, QWEN3, tensors))
    assert "tensor model.layers.1.mlp.up_proj.weight holds NaN or infinity" in message


def test_integer_tensors_are_refused(tmp_path: Path) -> None:
    tensors = checkpoints.weights(QWEN3) | {"model.norm.weight": np.ones(32, np.int32)}
    assert "tensor model.norm.weight is I32, not one of F32, F16, BF16" in refusal(
        write_folder(tmp_path, QWEN3, tensors)
    )
