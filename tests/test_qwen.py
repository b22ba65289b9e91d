"""Qwen2 and Qwen3 against `transformers`: live where torch is installed, else from the committed golden arrays."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from models.attention import visible
from models.context import Segment, empty, write
from models.loading import Model, load
from models.qwen.modeling import GROUP
from tests import checkpoints
from tests.checkpoints import CASES, QWEN2, QWEN3

BOUND = 1e-4  # largest absolute difference in float32, of logits and of every hidden state
STEP = jax.jit(lambda e, g, p, *a: e(g, p, *a), static_argnums=(0, 1))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@functools.cache
def cached(folder: Path, name: str) -> Model:
    return load(checkpoints.write_folder(folder / name, CASES[name][0]))


def extend(model: Model, tokens: Any, positions: Any, *rest: Any) -> tuple[jax.Array, Segment]:
    return STEP(model.extend, model.graphdef, model.params, jnp.asarray(tokens), jnp.asarray(positions), *rest)


def places(tokens: np.ndarray, start: int = 0) -> np.ndarray:
    return np.broadcast_to(start + np.arange(tokens.shape[1], dtype=np.int32), tokens.shape)


def take(segment: Segment, start: int, stop: int) -> Segment:
    """The slots [start, stop): the state of a part of a run, without recomputation."""
    return jax.tree.map(lambda a: jax.lax.slice_in_dim(a, start, stop, axis=2 if a.ndim == 5 else 1), segment)


def hidden_states(model: Model, tokens: np.ndarray, positions: np.ndarray) -> list[np.ndarray]:
    """The embedding and the output of each layer, the layers run one by one outside the scan."""
    states = _one_by_one(
        model.graphdef, model.config.num_layers, model.params, jnp.asarray(tokens), jnp.asarray(positions)
    )
    return [np.asarray(s) for s in states]


@functools.partial(jax.jit, static_argnums=(0, 1))
def _one_by_one(graphdef: Any, layers: int, params: Any, tokens: jax.Array, positions: jax.Array) -> list[jax.Array]:
    network = nnx.merge(graphdef, params)
    graph, stacked = nnx.split(network.layers)
    masks = (visible(positions, positions, jnp.ones(tokens.shape, bool)),)
    states = [network.embedding[...][tokens]]
    for i in range(layers):
        layer = nnx.merge(graph, jax.tree.map(lambda a, i=i: a[i], stacked))
        states.append(layer(states[-1], positions, (), masks)[0])
    return states


def compare(model: Model, tokens: np.ndarray, start: int, logits: np.ndarray, states: np.ndarray) -> None:
    positions = places(tokens, start)
    for depth, (ours, theirs) in enumerate(zip(hidden_states(model, tokens, positions), states, strict=True)):
        assert np.abs(ours - theirs).max() <= BOUND, f"after layer {depth}"
    ours = np.asarray(extend(model, tokens, positions)[0])
    assert ours.dtype == np.float32
    assert np.abs(ours - logits).max() <= BOUND
    assert np.abs(logits).max() > 0.5  # a model that says nothing would pass everything


@pytest.mark.parametrize("name", CASES)
def test_golden_parity(folder: Path, name: str) -> None:
    golden = np.load(checkpoints.GOLDEN / "qwen.npz")
    tokens = checkpoints.tokens(rows=1)
    states = golden[f"{name}/states"][:, None]
    compare(cached(folder, name), tokens, CASES[name][1], golden[f"{name}/logits"][None], states)


@pytest.mark.torch
@pytest.mark.parametrize("name", CASES)
def test_live_parity(folder: Path, name: str) -> None:
    pytest.importorskip("torch", reason="torch is absent: parity runs on golden arrays only")
    from tests import reference

    fields, start = CASES[name]
    tokens = checkpoints.tokens(rows=1, seed=2)
    logits, states = reference.run(
        reference.make(fields, checkpoints.weights(fields)), tokens, places(tokens, start).astype(np.int64)
    )
    compare(cached(folder, name), tokens, start, logits, np.stack(states))


@pytest.mark.torch
@pytest.mark.parametrize("name", ["qwen2", "qwen3"])
def test_golden_is_what_torch_says_now(name: str) -> None:
    pytest.importorskip("torch", reason="torch is absent")
    from tests import reference

    fields, start = CASES[name]
    tokens = checkpoints.tokens(rows=1)
    logits, _ = reference.run(reference.make(fields, checkpoints.weights(fields)), tokens, places(tokens, start))
    golden = np.load(checkpoints.GOLDEN / "qwen.npz")[f"{name}/logits"]
    assert np.abs(logits[0] - golden).max() <= 1e-5


@pytest.mark.torch
@pytest.mark.parametrize("name", ["qwen2", "qwen3"])
def test_39_outlier_channel(tmp_path: Path, name: str) -> None:
    """One channel of the stream at 1e3: the norms must reduce in float32."""
    pytest.importorskip("torch", reason="torch is absent")
    from tests import reference

    fields = CASES[name][0]
    weights = checkpoints.weights(fields)
    weights["model.embed_tokens.weight"][:, 3] = 1e3
    tokens = checkpoints.tokens()
    logits, states = reference.run(reference.make(fields, weights), tokens)
    compare_relative = [
        np.abs(a - b).max() / np.abs(b).max()
        for a, b in zip(
            hidden_states(load(checkpoints.write_folder(tmp_path, fields, weights)), tokens, places(tokens)),
            states,
            strict=True,
        )
    ]
    assert max(compare_relative) <= 1e-6
    ours = np.asarray(extend(load(tmp_path), tokens, places(tokens))[0])
    assert np.abs(ours - logits).max() <= BOUND


def test_39_outlier_norm_in_bfloat16() -> None:
    """A sum of squares in bfloat16 would lose the 1,023 small channels beside one of 1e3."""
    from models.qwen.modeling import RMSNorm

    x = np.full((1, 1, 1024), 10.0, np.float32)
    x[..., 0] = 1e3
    got = RMSNorm(1024, 1e-6, jnp.bfloat16)(jnp.asarray(x, jnp.bfloat16))
    want = x / np.sqrt((x.astype(np.float64) ** 2).mean())
    assert np.abs(np.asarray(got, np.float32) / want - 1).max() <= 2.0**-8  # one rounding to bfloat16


FAMILIES = ["qwen2", "qwen3 yarn"]


@pytest.mark.parametrize("name", FAMILIES)
def test_20_extend_at_every_split(folder: Path, name: str) -> None:
    """extend(a + b) = extend(extend(a), b), and slices of one cached run serve as well (idea 1)."""
    model, tokens = cached(folder, name), checkpoints.tokens(length=5)
    positions = places(tokens, 50)
    whole, segment = extend(model, tokens, positions)
    for cut in range(1, 5):
        _, first = extend(model, tokens[:, :cut], positions[:, :cut])
        for before in (first, take(segment, 0, cut)):
            rest, second = extend(model, tokens[:, cut:], positions[:, cut:], (before,))
            np.testing.assert_allclose(rest, whole[:, cut:], atol=2e-5, rtol=0)
            np.testing.assert_allclose(second.keys[GROUP], segment.keys[GROUP][:, :, cut:], atol=2e-5, rtol=0)
    none, _ = extend(model, tokens, positions, (take(segment, 0, 0),))  # a cut at 0: a segment of no slots
    np.testing.assert_allclose(none, whole, atol=2e-5, rtol=0)


@pytest.mark.parametrize("name", FAMILIES)
def test_32_cached_decode_equals_full_pass(folder: Path, name: str) -> None:
    """A shared prompt (batch 1), then token by token into a buffer of B rows, against one pass over everything."""
    model = cached(folder, name)
    prompt, chains = checkpoints.tokens(rows=1, length=5), checkpoints.tokens(rows=3, length=7, seed=3)
    whole = np.concatenate([np.repeat(prompt, 3, 0), chains], axis=1)
    expected, _ = extend(model, whole, places(whole))
    _, shared = extend(model, prompt, places(prompt))
    buffer = empty(shared, 3, 8)
    for i in range(7):
        token, where = chains[:, i : i + 1], np.full((3, 1), 5 + i, np.int32)
        logits, new = extend(model, token, where, (shared, buffer))
        np.testing.assert_allclose(logits[:, 0], expected[:, 5 + i], atol=2e-5, rtol=0)
        buffer = write(buffer, new, jnp.full(3, i, jnp.int32), jnp.ones(3, bool))


@pytest.mark.parametrize("name", FAMILIES)
def test_24_26_27_ragged_rows(folder: Path, name: str) -> None:
    """Right padding is seen by nobody: every row equals the same row alone, at prefill and eight steps later."""
    model, lengths = cached(folder, name), (12, 7, 1)
    tokens = checkpoints.tokens(rows=3, length=12)
    valid = np.arange(12)[None] < np.array(lengths)[:, None]
    last = jnp.asarray([[n - 1] for n in lengths], jnp.int32)
    logits, prompts = extend(model, np.where(valid, tokens, 0), places(tokens), (), jnp.asarray(valid), last)
    follow = checkpoints.tokens(rows=3, length=8, seed=5)
    where = np.array(lengths, np.int32)[:, None] + np.arange(8, dtype=np.int32)
    after, _ = extend(model, follow, where, (prompts,))
    for row, n in enumerate(lengths):
        alone = np.concatenate([tokens[row : row + 1, :n], follow[row : row + 1]], axis=1)
        expected, _ = extend(model, alone, places(alone))
        np.testing.assert_allclose(logits[row, 0], expected[0, n - 1], atol=2e-5, rtol=0)
        np.testing.assert_allclose(after[row], expected[0, n:], atol=2e-5, rtol=0)


@pytest.mark.parametrize("name", FAMILIES)
def test_16_17_rows_do_not_see_their_neighbours(folder: Path, name: str) -> None:
    model, tokens = cached(folder, name), checkpoints.tokens(rows=4)
    together, _ = extend(model, tokens, places(tokens))
    other = np.concatenate([tokens[:1], tokens[:0:-1]])
    np.testing.assert_array_equal(extend(model, other, places(other))[0][0], together[0])
    np.testing.assert_allclose(extend(model, tokens[:1], places(tokens[:1]))[0][0], together[0], atol=2e-5, rtol=0)


@pytest.mark.parametrize("name", ["qwen2", "qwen3", "qwen2 linear", "qwen3 yarn"])
def test_29_30_positions_are_honoured(folder: Path, name: str) -> None:
    """Rotary embeddings are relative: one offset changes nothing, a gap in the middle changes what follows it."""
    model, tokens = cached(folder, name), checkpoints.tokens()
    plain, _ = extend(model, tokens, places(tokens))
    moved, _ = extend(model, tokens, places(tokens, 37))
    np.testing.assert_allclose(moved, plain, atol=5e-5, rtol=0)
    gap = places(tokens) + np.where(np.arange(12) >= 6, 20, 0).astype(np.int32)
    apart, _ = extend(model, tokens, gap)
    np.testing.assert_allclose(apart[:, :6], plain[:, :6], atol=2e-5, rtol=0)
    assert np.abs(np.asarray(apart - plain)[:, 6:]).max() > 1e-2


def test_29_storage_order_is_not_position(folder: Path) -> None:
    """Slots may be stored in any order and in any number of segments; only their positions count."""
    model, tokens = cached(folder, "qwen3"), checkpoints.tokens(length=10)
    expected, whole = extend(model, tokens, places(tokens))
    a, b = take(whole, 0, 4), take(whole, 4, 9)
    for context in ((a, b), (b, a), (take(whole, 2, 9), take(whole, 0, 2))):
        got, _ = extend(model, tokens[:, 9:], places(tokens)[:, 9:], context)
        np.testing.assert_allclose(got[:, 0], expected[:, 9], atol=2e-5, rtol=0)
    flipped = jax.tree.map(lambda x: jnp.flip(x, 2 if x.ndim == 5 else 1), take(whole, 0, 9))
    got, _ = extend(model, tokens[:, 9:], places(tokens)[:, 9:], (flipped,))
    np.testing.assert_allclose(got[:, 0], expected[:, 9], atol=2e-5, rtol=0)


def test_at_picks_logits(folder: Path) -> None:
    model, tokens = cached(folder, "qwen3"), checkpoints.tokens()
    every, _ = extend(model, tokens, places(tokens))
    at = jnp.asarray([[3, 0, 11], [5, 5, 2]], jnp.int32)
    picked, _ = extend(model, tokens, places(tokens), (), None, at)
    np.testing.assert_allclose(picked, np.take_along_axis(np.asarray(every), np.asarray(at)[:, :, None], 1), atol=1e-5)


def test_positions_are_required(folder: Path) -> None:
    model = cached(folder, "qwen3")
    with pytest.raises(TypeError, match="positions"):
        model.extend(model.graphdef, model.params, jnp.asarray(checkpoints.tokens()))


def dotted(tree: Any) -> dict[str, jax.Array]:
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {".".join(str(k.key) for k in p if isinstance(k, jax.tree_util.DictKey)): v for p, v in leaves}


LAYER = {f"layers.mlp.{n}_proj.kernel" for n in ("gate", "up", "down")} | {"layers.input_norm.weight"}
LAYER |= {"layers.post_norm.weight"} | {f"layers.attention.{n}_proj.kernel" for n in "qkvo"}
ENDS = {"embedding", "head", "norm.weight"}
BIASES = {f"layers.attention.{n}_proj.bias" for n in "qkv"}
HEAD_NORMS = {f"layers.attention.{n}_norm.weight" for n in "qk"}
PATHS = {
    "qwen2": LAYER | ENDS | BIASES,
    "qwen2 tied": (LAYER | ENDS | BIASES) - {"head"},
    "qwen3": LAYER | ENDS | HEAD_NORMS,
    "qwen3 tied": (LAYER | ENDS | HEAD_NORMS) - {"head"},
    "qwen3 bias": LAYER | ENDS | HEAD_NORMS | BIASES | {"layers.attention.o_proj.bias"},
}


@pytest.mark.parametrize("name", PATHS)
def test_o3_the_table_of_parameter_paths(folder: Path, name: str) -> None:
    assert set(dotted(cached(folder, name).params)) == PATHS[name]


@pytest.mark.parametrize("name", ["qwen2", "qwen3 bias"])
def test_o3_every_parameter_is_used(folder: Path, name: str) -> None:
    """Each parameter, in each layer, moves the logits."""
    model, tokens = cached(folder, name), checkpoints.tokens()
    where = jnp.asarray(places(tokens))
    weights = jax.random.normal(jax.random.key(0), (*tokens.shape, checkpoints.VOCABULARY))

    def total(params: Any) -> jax.Array:
        return (model.extend(model.graphdef, params, jnp.asarray(tokens), where)[0] * weights).sum()

    slopes = dotted(jax.jit(jax.grad(total))(model.params))
    assert set(slopes) == PATHS[name]
    for path, slope in slopes.items():
        rows = slope if path.startswith("layers") else slope[None]
        assert len(rows) == (2 if path.startswith("layers") else 1)
        for layer, row in enumerate(rows):
            assert np.abs(row).max() > 1e-3, f"{path} of layer {layer} does nothing"


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


@pytest.mark.parametrize("name", ["qwen2", "qwen3"])
def test_17_bfloat16_error_and_flips(folder: Path, name: str) -> None:
    """bfloat16 weights and activations: the error relative to float32 is bounded, near ties may flip, others not."""
    exact = cached(folder, name)
    rough = load(folder / name, dtype="bfloat16")
    assert {a.dtype for a in jax.tree.leaves(rough.params)} == {jnp.dtype(jnp.bfloat16)}
    tokens = checkpoints.tokens(rows=8, length=32, seed=7)
    a, b = (np.asarray(extend(m, tokens, places(tokens))[0]) for m in (exact, rough))
    error = np.sqrt(((a - b) ** 2).mean()) / a.std()
    flips = (a.argmax(-1) != b.argmax(-1)).mean()
    top = np.sort(a, -1)
    clear = top[..., -1] - top[..., -2] > 2 * np.abs(a - b).max(-1)
    print(f"{name}: bfloat16 relative error {error:.4f}, argmax flips {flips:.3f}")
    assert error <= 0.05
    assert flips <= 0.1
    assert not (a.argmax(-1) != b.argmax(-1))[clear].any()


def test_45_product_precision_is_pinned() -> None:
    """Parity in float32 means float32 products: conftest pins the precision, and a compiled product carries it."""
    assert jax.config.jax_default_matmul_precision == "highest"
    ones = jnp.ones((2, 2))
    assert "HIGHEST" in str(jax.make_jaxpr(lambda a: jnp.einsum("ij,jk->ik", a, a))(ones))
