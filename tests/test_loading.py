"""One door for checkpoints: what is accepted, what is refused, and that a refusal names everything in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from models.loading import CheckpointError, load
from models.qwen.config import CHECKED, INERT, LIVE, from_hf
from models.qwen.modeling import Qwen
from tests import checkpoints
from tests.checkpoints import CASES, QWEN2, QWEN3, write_folder


def edit(file: Path, **changes: Any) -> None:
    """Sets fields of a JSON file; the value `...` removes one."""
    fields = json.loads(file.read_text()) | changes
    file.write_text(json.dumps({k: v for k, v in fields.items() if v is not ...}))


def refusal(path: Path, **options: Any) -> str:
    with pytest.raises(CheckpointError) as caught:
        load(path, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


# --- what is accepted


@pytest.mark.parametrize("name", ["qwen2", "qwen2 tied", "qwen3", "qwen3 bias"])
def test_44_every_parameter_is_assigned_its_own_tensor(tmp_path: Path, name: str) -> None:
    """Against a second reading: each stored tensor, transposed where it is a product, is found in its place."""
    fields = CASES[name][0]
    model = load(write_folder(tmp_path, fields))
    network, used = nnx.merge(model.graphdef, model.params), 0
    ours = {"input_layernorm": "input_norm", "post_attention_layernorm": "post_norm", "self_attn": "attention"}
    for key, stored in checkpoints.weights(fields).items():
        place: Any = network
        layer: Any = ...
        words = key.removeprefix("model.").split(".")
        if words[0] == "layers":
            layer, words, place = int(words[1]), words[2:], network.layers
        if key in ("model.embed_tokens.weight", "lm_head.weight"):
            value = {"model": network.embedding, "lm_head": network.head}[key.split(".")[0]][...]
        else:
            for word in words[:-1]:
                place = getattr(place, ours.get(word, word))
            value = (place.bias if words[-1] == "bias" else getattr(place, "kernel", None) or place.weight)[...][layer]
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
    first = load_file(tmp_path / "model-00001-of-00002.safetensors")
    # a shard that also carries a tensor which the index places elsewhere: the index decides
    elsewhere = next(k for k in load_file(tmp_path / "model-00002-of-00002.safetensors"))
    save_file(first | {elsewhere: np.zeros((2, 2), np.float32)}, tmp_path / "model-00001-of-00002.safetensors")
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
    assert len(seen) == 14
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


# --- what is refused: one line that names file and field

CONFIG = "config.json"
FIELDS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (QWEN3, {"model_type": "llama"}, "model_type 'llama' is not supported (have qwen2, qwen3)"),
    (QWEN3, {"model_type": ...}, "model_type None is not supported (have qwen2, qwen3)"),
    (QWEN3, {"logit_scale": 2.0}, "field logit_scale is not understood for qwen3"),
    (QWEN2, {"attention_bias": True}, "field attention_bias is not understood for qwen2"),
    (QWEN3, {"zeta": 1, "alpha": 2}, "field alpha, zeta is not understood"),
    (QWEN3, {"quantization_config": {"bits": 4}}, "field quantization_config is"),
    (QWEN3, {"hidden_act": "gelu"}, "field hidden_act is 'gelu'; only 'silu' is built"),
    (QWEN3, {"use_sliding_window": True}, "field use_sliding_window is True"),
    (QWEN3, {"layer_types": ["full_attention", "sliding_attention"]}, "field layer_types must be 2 times"),
    (QWEN3, {"layer_types": ["full_attention"]}, "field layer_types must be 2 times"),
    (QWEN3, {"architectures": ["Qwen3ForSequenceClassification"]}, "field architectures is"),
    (QWEN3, {"num_key_value_heads": 3}, "num_attention_heads (4) is not a multiple of num_key_value_heads (3)"),
    (QWEN3, {"num_key_value_heads": 8}, "num_attention_heads (4) is not a multiple of num_key_value_heads (8)"),
    (QWEN3, {"head_dim": 7}, "field head_dim (7) is odd"),
    (QWEN3, {"head_dim": ...}, "field head_dim is missing"),
    (QWEN2, {"num_attention_heads": 5, "num_key_value_heads": 5}, "hidden_size (32) is not a multiple of"),
    (QWEN3, {"rms_norm_eps": 0}, "field rms_norm_eps must be a positive number, got 0"),
    (QWEN3, {"rms_norm_eps": "1e-6"}, "field rms_norm_eps must be a positive number"),
    (QWEN3, {"rms_norm_eps": ...}, "field rms_norm_eps is missing"),
    (QWEN3, {"tie_word_embeddings": "yes"}, "field tie_word_embeddings must be true or false"),
    (QWEN3, {"attention_bias": 1}, "field attention_bias must be true or false"),
    (QWEN3, {"rope_parameters": ...}, "field rope_theta is missing"),
    (QWEN3, {"rope_theta": 5e5}, "field rope_theta has two values [10000.0, 500000.0]"),
    (QWEN3, {"rope_parameters": 4}, "field rope_parameters must be an object or null"),
    (QWEN3, {"rope_parameters": {"rope_theta": 1e4, "rope_type": "llama3"}}, "rope type 'llama3' is not supported"),
    (QWEN3, {"rope_parameters": {"rope_theta": 0.5}}, "theta must be > 1"),
    (
        QWEN3,
        {
            "rope_scaling": {"type": "linear", "factor": 2.0},
            "rope_parameters": {"rope_theta": 1e4, "rope_type": "linear", "factor": 4.0},
        },
        "rope_scaling and rope_parameters contradict each other",
    ),
    (QWEN3, {"eos_token_id": "2"}, "field eos_token_id must be a token id or a list of them"),
    (QWEN3, {"eos_token_id": 285}, "eos_token_id 285 is not an id of the tokenizer"),
    (QWEN3, {"vocab_size": 100}, "the tokenizer has 283 ids, config field vocab_size only 100"),
    *(
        (QWEN3, {f: v}, f"field {f} must be a positive")
        for f in ("hidden_size", "num_hidden_layers")
        for v in (0, -1, 1.5)
    ),
    *(
        (QWEN3, {f: ...}, f"field {f} is missing")
        for f in ("vocab_size", "intermediate_size", "num_key_value_heads", "max_position_embeddings")
    ),
]


@pytest.mark.parametrize(("fields", "change", "expected"), FIELDS, ids=lambda v: v if isinstance(v, str) else None)
def test_41_refused_config_fields(
    tmp_path: Path, fields: dict[str, Any], change: dict[str, Any], expected: str
) -> None:
    write_folder(tmp_path, fields)
    edit(tmp_path / CONFIG, **change)
    message = refusal(tmp_path)
    assert expected in message
    assert str(tmp_path) in message


def test_41_every_field_is_live_checked_or_inert_for_one_reason() -> None:
    for family in LIVE.values():
        assert not (family & set(CHECKED)) | (family & set(INERT)) | (set(CHECKED) & set(INERT))
    assert all(reason.strip() for reason in INERT.values())


def test_41_inert_fields_change_nothing() -> None:
    full = {"architectures": ["Qwen3ForCausalLM"], "layer_types": ["full_attention"] * 2}
    changed = (
        QWEN3 | {name: full.get(name, "anything") for name in INERT if name not in ("model_type", "layer_types")} | full
    )
    assert from_hf(changed) == from_hf(QWEN3)


@pytest.mark.parametrize(
    "old",
    [
        {"rope_theta": 1e4, "rope_scaling": None},
        {"rope_theta": 1e4, "rope_scaling": {"type": "default"}},
        {"rope_theta": 10000, "rope_parameters": QWEN3["rope_parameters"], "rope_scaling": {"rope_type": "default"}},
    ],
)
def test_legacy_rope_fields_mean_the_same(old: dict[str, Any]) -> None:
    without = {k: v for k, v in QWEN3.items() if k != "rope_parameters"}
    assert from_hf(without | old) == from_hf(QWEN3)


def test_legacy_yarn_means_the_same() -> None:
    yarn = {"factor": 4.0, "original_max_position_embeddings": 128}
    old = {k: v for k, v in QWEN3.items() if k != "rope_parameters"}
    old |= {"rope_theta": 1e4, "rope_scaling": {"type": "yarn", **yarn}}
    assert from_hf(old) == from_hf(QWEN3 | {"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4, **yarn}})


def real_config(name: str) -> dict[str, Any]:
    file = Path(__file__).parents[2] / "shared" / "models" / "configs" / f"{name}.json"
    if not file.exists():
        pytest.skip("published configs are absent")
    return json.loads(file.read_text())


@pytest.mark.parametrize("size", ["0.6B", "1.7B", "4B", "8B", "14B", "32B"])
def test_published_qwen3_configs_make_the_published_shapes(size: str) -> None:
    """Every tensor of the full-size model, by name and shape, from shapes alone (no memory)."""
    from models.loading import _dotted
    from models.qwen.params import RULES

    fields = real_config(f"Qwen3-{size}")
    shapes_file = Path(__file__).parents[2] / "shared" / "models" / "configs" / "shapes" / f"Qwen3-{size}.text.json"
    published = {k: tuple(v) for k, v in json.loads(shapes_file.read_text()).items()}
    config = from_hf(fields)
    state = nnx.state(nnx.eval_shape(lambda: Qwen(config, jnp.bfloat16, nnx.Rngs(0))))
    shapes = {_dotted(p): v.shape for p, v in jax.tree_util.tree_flatten_with_path(state)[0]}
    made = {}
    for rule in (r for r in RULES if r.path in shapes):
        layers = range(config.num_layers) if "{}" in rule.hf else [None]
        own = shapes[rule.path][1:] if "{}" in rule.hf else shapes[rule.path]
        made |= {rule.hf.format(n): own[::-1] if rule.transposed else own for n in layers}
    assert made == published


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
        "the chat template is none of those known for qwen3",
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
