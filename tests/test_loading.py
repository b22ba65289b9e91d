"""One door for checkpoints: what is accepted, what is refused, and that a refusal names everything in one line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from safetensors.numpy import load_file, save_file

from models.loading import load
from models.qwen.modeling import Qwen
from tests import checkpoints
from tests.checkpoints import CASES, QWEN2, QWEN3, edit, refusal, write_folder


@pytest.mark.parametrize("name", ["qwen2", "qwen2 tied", "qwen3", "qwen3 bias"])
def test_44_every_parameter_is_assigned_its_own_tensor(tmp_path: Path, name: str) -> None:
    """Against a second reading: each stored tensor, transposed where it is a product, is found in its place."""
    fields = CASES[name][0]
    model = load(write_folder(tmp_path, fields))
    network, used = nnx.merge(model.graphdef, model.params), 0
    ours = {"input_layernorm": "input_norm", "post_attention_layernorm": "post_norm", "self_attn": "attention"}
    for key, stored in checkpoints.weights(fields).items():
        place: Any = network
        words = key.removeprefix("model.").split(".")
        if words[0] == "layers":
            place, words = network.layers[int(words[1])], words[2:]
        if key in ("model.embed_tokens.weight", "lm_head.weight"):
            value = {"model": network.embedding, "lm_head": network.head}[key.split(".")[0]][...]
        else:
            for word in words[:-1]:
                place = getattr(place, ours.get(word, word))
            value = (place.bias if words[-1] == "bias" else getattr(place, "kernel", None) or place.weight)[...]
        np.testing.assert_array_equal(value, stored.T if "proj.weight" in key else stored, err_msg=key)
        used += stored.size
    assert used == sum(a.size for a in jax.tree.leaves(model.params))


def test_shards_and_one_file_give_the_same_model(tmp_path: Path) -> None:
    one, three = load(write_folder(tmp_path / "one", QWEN3)), load(write_folder(tmp_path / "three", QWEN3, shards=3))
    jax.tree.map(np.testing.assert_array_equal, one.params, three.params)
    assert one.fingerprint != three.fingerprint


def test_44_the_index_wins_over_stray_files(tmp_path: Path) -> None:
    write_folder(tmp_path, QWEN3, shards=2)
    clean = load(tmp_path)
    other = checkpoints.weights(QWEN3, seed=9)
    save_file(other, tmp_path / "model.safetensors")
    save_file({"surprise": np.ones(3, np.float32)}, tmp_path / "model-00003-of-00003.safetensors")
    jax.tree.map(np.testing.assert_array_equal, load(tmp_path).params, clean.params)
    # shards that also carry a tensor which the index places elsewhere: the index decides, whatever the order
    files = [tmp_path / f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
    held = [load_file(file) for file in files]
    for file, own, other in zip(files, held, held[::-1], strict=True):
        name = next(iter(other))
        save_file(own | {name: np.zeros_like(other[name])}, file)
    jax.tree.map(np.testing.assert_array_equal, load(tmp_path).params, clean.params)


@pytest.mark.parametrize("stored", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("wanted", ["float32", "bfloat16"])
def test_dtypes_are_read_and_made_as_asked(tmp_path: Path, stored: str, wanted: str) -> None:
    tensors = {k: v.astype(jnp.dtype(stored)) for k, v in checkpoints.weights(QWEN3).items()}
    model = load(write_folder(tmp_path, QWEN3, tensors), dtype=wanted)
    assert {a.dtype for a in jax.tree.leaves(model.params)} == {jnp.dtype(wanted)}
    embedding = nnx.merge(model.graphdef, model.params).embedding[...]
    np.testing.assert_array_equal(embedding, tensors["model.embed_tokens.weight"].astype(jnp.dtype(wanted)))


def test_parameters_are_made_abstractly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No random parameters are drawn and thrown away: everything the network makes of itself is a shape."""
    seen = []
    inner = Qwen.__init__

    def spy(self: Qwen, *args: Any) -> None:
        inner(self, *args)
        seen.extend(jax.tree.leaves(nnx.state(self)))

    monkeypatch.setattr(Qwen, "__init__", spy)
    load(write_folder(tmp_path, QWEN3))
    assert len(seen) == 3 + 2 * 11  # embedding, head, norm; per layer seven matrices and four norms
    assert all(isinstance(leaf, jax.core.Tracer) for leaf in seen)


def test_a_tied_head_may_be_stored_twice_but_not_differ(tmp_path: Path) -> None:
    fields = {**QWEN3, "tie_word_embeddings": True}
    tensors = checkpoints.weights(fields)
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].copy()
    assert "head" not in str(jax.tree.structure(load(write_folder(tmp_path, fields, tensors)).params))
    tensors["lm_head.weight"][5, 5] += 1
    write_folder(tmp_path, fields, tensors)
    assert "lm_head.weight differs from model.embed_tokens.weight" in refusal(tmp_path)


def test_derived_tables_of_old_checkpoints_are_ignored(tmp_path: Path) -> None:
    extra = {"model.layers.0.self_attn.rotary_emb.inv_freq": np.ones(4, np.float32)}
    load(write_folder(tmp_path, QWEN2, checkpoints.weights(QWEN2) | extra))


def test_what_a_model_carries(tmp_path: Path) -> None:
    model = load(write_folder(tmp_path / "tiny-model", QWEN3))
    assert (model.name, model.family, model.vocabulary) == ("tiny-model", "qwen3", 283)
    assert model.config.vocab_size == 288  # rows 283 to 287 are padding, masked when sampling
    ids = {t: model.tokenizer.token_to_id(t) for t in ("<|im_end|>", "<|endoftext|>")}
    assert model.stop_ids == frozenset(ids.values())
    assert model.sampling == {"temperature": 0.6, "top_k": 20, "top_p": 0.95, "min_p": 0.0}
    assert load(tmp_path / "tiny-model").fingerprint == model.fingerprint
    assert load(tmp_path / "tiny-model", dtype="bfloat16").fingerprint != model.fingerprint


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "model.safetensors", "generation_config.json"])
def test_the_fingerprint_covers_every_file(tmp_path: Path, file: str) -> None:
    write_folder(tmp_path, QWEN3)
    (tmp_path / "generation_config.json").write_text("{}")
    (tmp_path / "notes.txt").write_text("not part of the model")
    before = load(tmp_path).fingerprint
    (tmp_path / "notes.txt").write_text("still not")
    assert load(tmp_path).fingerprint == before
    if file == "model.safetensors":
        save_file(checkpoints.weights(QWEN3, seed=1), tmp_path / file)
    else:
        (tmp_path / file).write_text((tmp_path / file).read_text() + " ")
    assert load(tmp_path).fingerprint != before


def test_49_stop_ids_are_the_union_of_all_sources(tmp_path: Path) -> None:
    write_folder(tmp_path, QWEN3)
    edit(tmp_path / "config.json", eos_token_id=7)
    (tmp_path / "generation_config.json").write_text(
        json.dumps({"eos_token_id": [8, 9], "temperature": 0.2, "top_k": 0})
    )
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"eos_token": {"content": "<think>"}}))
    model = load(tmp_path)
    named = {model.tokenizer.token_to_id(t) for t in ("<|im_end|>", "<|endoftext|>", "<think>")}
    assert model.stop_ids == {7, 8, 9} | named
    assert model.sampling == {"temperature": 0.2, "top_k": 0, "top_p": 0.95, "min_p": 0.0}


def test_the_product_loads_without_torch_or_transformers(tmp_path: Path) -> None:
    write_folder(tmp_path, QWEN3)
    code = (
        "import sys; sys.modules['torch'] = sys.modules['transformers'] = None; "
        f"from models.loading import load; print(load({str(tmp_path)!r}).family)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "qwen3", done.stderr
