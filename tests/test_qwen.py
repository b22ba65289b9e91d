"""Every parameter of the network is used, and every live config field changes what it computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from models.assign import by_path
from models.loading import load
from tests import checkpoints
from tests.checkpoints import CASES, QWEN2, QWEN3
from tests.running import extend, places, tiny


def every(paths: set[str]) -> set[str]:
    """The paths of a model of two layers."""
    return {p if p in ENDS else f"layers.{i}.{p}" for p in paths for i in range(2)}


LAYER = {f"mlp.{n}_proj.kernel" for n in ("gate", "up", "down")} | {"input_norm.weight"}
LAYER |= {"post_norm.weight"} | {f"attention.{n}_proj.kernel" for n in "qkvo"}
ENDS = {"embedding", "head", "norm.weight"}
BIASES = {f"attention.{n}_proj.bias" for n in "qkv"}
HEAD_NORMS = {f"attention.{n}_norm.weight" for n in "qk"}
PATHS = {
    "qwen2": LAYER | ENDS | BIASES,
    "qwen2 tied": (LAYER | ENDS | BIASES) - {"head"},
    "qwen3": LAYER | ENDS | HEAD_NORMS,
    "qwen3 tied": (LAYER | ENDS | HEAD_NORMS) - {"head"},
    "qwen3 bias": LAYER | ENDS | HEAD_NORMS | BIASES | {"attention.o_proj.bias"},
}


@pytest.mark.parametrize("name", PATHS)
def test_o3_the_table_of_parameter_paths(name: str) -> None:
    assert set(by_path(tiny(name).params)) == every(PATHS[name])


@pytest.mark.parametrize("name", ["qwen2", "qwen3 bias"])
def test_o3_every_parameter_is_used(name: str) -> None:
    """Each parameter, in each layer, moves the logits."""
    model, tokens = tiny(name), checkpoints.tokens()
    where = jnp.asarray(places(tokens))
    weights = jax.random.normal(jax.random.key(0), (*tokens.shape, checkpoints.VOCABULARY))

    def total(params: Any) -> jax.Array:
        return (model.extend(model.graphdef, params, jnp.asarray(tokens), where)[0] * weights).sum()

    slopes = by_path(jax.jit(jax.grad(total))(model.params))
    assert set(slopes) == every(PATHS[name])
    for path, slope in slopes.items():
        assert np.abs(slope).max() > 1e-3, f"{path} does nothing"


# field -> another value that leaves every tensor's shape as it is; the logits must change
FLIPS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "num_attention_heads, num_key_value_heads, head_dim": (
        QWEN2 | {"head_dim": 8},
        {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16},
    ),
    "rms_norm_eps": (QWEN3, {"rms_norm_eps": 1e-2}),
    "rope_parameters.rope_theta": (QWEN3, {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}),
    "rope_parameters.rope_type": (
        QWEN3,
        {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 2.0}},
    ),
    "max_position_embeddings": (CASES["qwen3 yarn inferred"][0], {"max_position_embeddings": 4096}),
}
YARN = CASES["qwen3 yarn all"][0]
for _field, _value in (
    ("factor", 4.0),
    ("original_max_position_embeddings", 64),
    ("attention_factor", 1.0),
    ("beta_fast", 32.0),
    ("beta_slow", 1.0),
    ("truncate", True),
):
    FLIPS[f"yarn {_field}"] = (YARN, {"rope_parameters": YARN["rope_parameters"] | {_field: _value}})
_MSCALE = CASES["qwen3 yarn mscale"][0]
for _field in ("mscale", "mscale_all_dim"):
    FLIPS[f"yarn {_field}"] = (_MSCALE, {"rope_parameters": _MSCALE["rope_parameters"] | {_field: 1.5}})


@pytest.mark.parametrize("field", FLIPS)
def test_41_each_config_field_is_live(tmp_path: Path, field: str) -> None:
    before, change = FLIPS[field]
    tensors, tokens = checkpoints.weights(before), checkpoints.tokens()
    outputs = []
    for number, fields in enumerate((before, before | change)):
        model = load(checkpoints.write_folder(tmp_path / str(number), fields, tensors))
        outputs.append(np.asarray(extend(model, tokens, places(tokens))[0]))
    assert np.abs(outputs[0] - outputs[1]).max() > 1e-3
