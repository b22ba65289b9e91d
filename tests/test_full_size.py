"""Full-size models without weights: our parameters against the tensors of the published checkpoints.

For every model each tensor is used exactly once or on a written list of ignored ones, each parameter is fed, every
shape fits. The facts are tests/golden/shapes.json (towers of images and sound: one name of a kind); where the published
lists are at hand, they are compared as they are.
"""

from __future__ import annotations

import functools
import json
import math
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from models.assign import by_path, spread, stored_shape
from models.families import FAMILIES, abstract, family_of
from models.loading import load
from tests import checkpoints, gemma_cases, published, shape_facts
from tests.checkpoints import edit, refusal
from tests.gemma_cases import CASES
from tests.running import extend, places, tiny_gemma
from tools.make_shapes import rows

FACTS = shape_facts.facts()
ROOT = Path(__file__).resolve().parent.parent
PUBLISHED = published.MODELS / "configs"
# Layers, of which own keys and values, and see everything; parameters of the text model in billions.
SIZES = {
    "Qwen3-0.6B text": (28, 28, 28, 0.596),
    "Qwen3-1.7B text": (28, 28, 28, 1.721),
    "Qwen3-4B text": (36, 36, 36, 4.022),
    "Qwen3-8B text": (36, 36, 36, 8.191),
    "Qwen3-14B text": (40, 40, 40, 14.768),
    "Qwen3-32B text": (64, 64, 64, 32.762),
    "gemma-4-E2B-it full": (35, 15, 7, 4.628),
    "gemma-4-E4B-it full": (42, 24, 7, 7.463),
    "gemma-4-26B-A4B-it full": (30, 30, 5, 25.233),
    "gemma-4-31B-it full": (60, 60, 10, 30.697),
}


def full_size(name: str) -> tuple[Any, dict[str, jax.ShapeDtypeStruct]]:
    """A full-size model's config and the shapes of its parameters; no memory."""
    fields = FACTS[name]["config"]
    family = family_of(fields)
    config = FAMILIES[family].read(fields)
    return config, shapes_of(family, config)


@functools.cache
def shapes_of(family: str, config: Any) -> dict[str, jax.ShapeDtypeStruct]:
    """The text config and the one inside the multimodal config are the same, and made once."""
    return by_path(abstract(FAMILIES[family], config, jnp.bfloat16)[1])


def audit(name: str, tensors: dict[str, tuple[int, ...]]) -> tuple[list[str], list[str]]:
    """(names that feed a parameter, names that are ignored); every parameter is fed by a tensor of its shape."""
    family = FAMILIES[family_of(FACTS[name]["config"])]
    config, shapes = full_size(name)
    used = []
    for rule in spread(family.rules(config, tensors), config.num_layers):
        if rule.path in shapes:
            assert tensors[rule.hf] == stored_shape(shapes[rule.path].shape, rule), rule.hf
            used.append(rule.hf)
    assert len(used) == len(shapes)  # every parameter, each once
    patterns = family.ignored(config, tensors)
    spare = set(tensors) - set(used) - set(family.twins(config, tensors))
    return used, [n for n in spare if any(fnmatchcase(n, p) for p in patterns)]


@pytest.mark.parametrize("name", FACTS)
def test_44_every_tensor_is_used_once_or_ignored(name: str) -> None:
    tensors = FACTS[name]["tensors"]
    used, ignored = audit(name, tensors)
    assert len(set(used)) == len(used)
    assert set(used) | set(ignored) == set(tensors)
    if name.endswith("text"):
        assert not ignored
    else:
        assert {n.split(".")[1] for n in ignored} <= {"vision_tower", "audio_tower", "embed_vision", "embed_audio"}


@pytest.mark.parametrize("name", SIZES)
def test_full_sizes(name: str) -> None:
    """Parameters by the shapes, and what a segment holds of each model."""
    config, shapes = full_size(name)
    layers, owners, full, billions = SIZES[name]
    assert (config.num_layers, len(config.ropes), config.windows.count(None)) == (layers, owners, full)
    assert sum(math.prod(s.shape) for s in shapes.values()) / 1e9 == pytest.approx(billions, abs=1e-3)


def test_which_layers_the_last_ones_read() -> None:
    """E4B: sliding layers read 22, full ones 23; E2B: 13 and 14. In 31B no layer reads another's."""
    sources = {n: {s.source for s in full_size(n)[0].layers if not s.owns} for n in SIZES if "gemma" in n}
    assert list(sources.values()) == [{13, 14}, {22, 23}, set(), set()]


@pytest.mark.parametrize("name", ["gemma-4-E2B-it full", "gemma-4-E4B-it full"])
def test_43_unused_tensors_of_shared_layers_are_ignored(name: str) -> None:
    """Checkpoints still carry keys and values for layers that read others'; not for those that own them."""
    tensors, config = dict(FACTS[name]["tensors"]), full_size(name)[0]
    first = len(config.stored)
    extra = {f"model.language_model.layers.{i}.self_attn.k_proj.weight" for i in range(first, config.num_layers)}
    _, ignored = audit(name, tensors | dict.fromkeys(extra, (1,)))
    assert extra <= set(ignored)
    surprise = f"model.language_model.layers.{first - 1}.self_attn.k_bias"
    assert surprise not in audit(name, tensors | {surprise: (1,)})[1]


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published tensor lists are absent")
def test_the_facts_are_those_of_the_published_lists() -> None:
    assert rows(PUBLISHED) == json.loads(shape_facts.FILE.read_text())
    for file in sorted((PUBLISHED / "shapes").glob("*.full.json")):
        tensors = {k: tuple(v) for k, v in json.loads(file.read_text()).items()}
        used, ignored = audit(file.name.replace(".full.json", " full"), tensors)
        assert sorted(used + ignored) == sorted(tensors)


def multimodal(fields: dict[str, Any], tensors: dict[str, np.ndarray]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The same text model inside a multimodal checkpoint, with what else lies there."""
    outer = {"model_type": "gemma4", "text_config": fields, "vision_config": {}, "tie_word_embeddings": True}
    moved = {k.replace("model.", "model.language_model.", 1): v for k, v in tensors.items()}
    others = {f"model.{n}.layers.0.weight": np.ones(2, np.float32) for n in ("vision_tower", "embed_audio")}
    shared = range(fields["num_hidden_layers"] - fields["num_kv_shared_layers"], fields["num_hidden_layers"])
    spare = {
        f"model.language_model.layers.{i}.self_attn.{n}.weight": np.ones(3, np.float32)
        for i in shared
        for n in ("k_proj", "v_proj", "k_norm")
    }
    return outer, moved | others | spare


@pytest.mark.parametrize("name", ["gemma4 edge", "gemma4 26b"])
def test_a_multimodal_checkpoint_in_shards_is_the_text_model(tmp_path: Path, name: str) -> None:
    """Right names, small shapes, three shards: loads end to end and says what the text checkpoint says."""
    fields, tensors = multimodal(CASES[name], gemma_cases.weights(CASES[name]))
    model = load(gemma_cases.write_folder(tmp_path, fields, tensors, shards=3))
    assert (model.family, model.chat.name) == ("gemma4", "gemma4 edge" if "edge" in name else "gemma4")
    tokens = gemma_cases.tokens()
    jax.tree.map(np.testing.assert_array_equal, model.params, tiny_gemma(name).params)
    np.testing.assert_array_equal(*(extend(m, tokens, places(tokens))[0] for m in (model, tiny_gemma(name))))


@pytest.mark.parametrize("name", ["gemma-4-E2B-it full", "gemma-4-26B-A4B-it full", "Qwen3-8B text"])
def test_a_checkpoint_of_all_names_and_small_shapes_loads(tmp_path: Path, name: str) -> None:
    """The published names in four shards, every size cut down."""
    small = {"hidden_size": 8, "intermediate_size": 12, "head_dim": 4, "global_head_dim": 8, "vocab_size": 320}
    small |= {"hidden_size_per_layer_input": 4, "vocab_size_per_layer_input": 320, "moe_intermediate_size": 6}
    small |= {"num_experts": 8, "num_attention_heads": 4, "num_key_value_heads": 2, "num_global_key_value_heads": 1}
    fields = json.loads(json.dumps(FACTS[name]["config"]))
    inner = fields.get("text_config", fields)
    inner |= {k: v for k, v in small.items() if inner.get(k)} | {"eos_token_id": None}
    family = FAMILIES[family_of(fields)]
    config = family.read(fields)
    shapes = shapes_of(family_of(fields), config)
    rules = spread(family.rules(config, FACTS[name]["tensors"]), config.num_layers)
    wanted = {r.hf: stored_shape(shapes[r.path].shape, r) for r in rules if r.path in shapes}
    rng = np.random.default_rng(0)
    tensors = {n: rng.standard_normal(wanted.get(n, (1,))).astype(np.float32) for n in FACTS[name]["tensors"]}
    tokenizer = gemma_cases.TOKENIZER if "gemma" in name else checkpoints.TOKENIZER
    checkpoints.write_folder(tmp_path, fields, tensors, 4, tokenizer)
    model = load(tmp_path)
    assert sum(a.size for a in jax.tree.leaves(model.params)) == sum(math.prod(s) for s in wanted.values())


def test_44_a_checkpoint_of_another_size_is_refused(tmp_path: Path) -> None:
    """Missing, unknown and misshapen names together, in one line."""
    fields = CASES["gemma4 edge"]
    gemma_cases.write_folder(tmp_path, fields)
    edit(tmp_path / "config.json", hidden_size=64, num_kv_shared_layers=2)
    message = refusal(tmp_path)
    assert "missing 3: model.layers.2.self_attn.k_norm.weight" in message
    assert "model.layers.1.input_layernorm.weight is [32], not [64]" in message
