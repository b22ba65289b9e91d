"""One model over several devices: the same chains by name, parameters cut as the table says, faults refused."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow.parquet as pq
import pytest
from jax.sharding import PartitionSpec as P

from models import mesh
from models.assign import by_path
from models.checkpoint import CheckpointError
from models.loading import load
from models.qwen.sharding import PLACES
from tests import checkpoints, gemma_cases, on_devices, processes
from tests.checkpoints import CASES, QWEN3, edit, refusal, write_folder
from tests.running import tiny
from tools.convert import convert


def tables(root: Path) -> dict[str, list[dict]]:
    files = sorted((root / "chains").rglob("*.parquet"))
    return {str(f.relative_to(root)): pq.read_table(f, partitioning=None).to_pylist() for f in files}


def test_06_chains_are_the_same_on_1_2_4_and_8_devices(mesh_runs: tuple[Path, dict]) -> None:
    """Float32, several arms drawn at once and padded; heads cut in two and four, with two kv heads."""
    first, *others = (tables(mesh_runs[0] / text) for text in on_devices.MESHES)
    assert sum(map(len, first.values())) == 16
    assert all(other == first for other in others)
    answers = [pq.read_table(next((mesh_runs[0] / t / "answers").iterdir())) for t in on_devices.MESHES]
    for other in answers[1:]:  # sums of products in another order: float32 rounding of a few terms
        np.testing.assert_allclose(other["target"].to_numpy(), answers[0]["target"].to_numpy(), rtol=1e-4, atol=1e-7)


def test_a_chain_is_replayed_by_its_id_on_another_mesh(mesh_runs: tuple[Path, dict]) -> None:
    rows = [row for table in tables(mesh_runs[0] / "1x1").values() for row in table]
    (stored,) = [r for r in rows if r["arm"] == "x1" and r["chain"] == on_devices.CHAIN]
    assert mesh_runs[1]["replay"] == {"record": stored["record"], "tokens": stored["tokens"], "spec": [None, "model"]}


def test_51i_51j_a_converted_model_restores_on_another_mesh_bit_for_bit(mesh_runs: tuple[Path, dict]) -> None:
    assert mesh_runs[1]["round trip"] == {"float32": True, "bfloat16": True}


@pytest.mark.parametrize(("name", "text"), [("qwen2", "2x2"), ("qwen2 tied", "1x4"), ("qwen3 bias", "4x1")])
def test_parameters_lie_where_the_table_says(name: str, text: str, tmp_path: Path) -> None:
    """Each device holds its part of the right values; what a single device would hold is the second reading."""
    made = mesh.make(text)
    assert made is not None
    whole, cut = by_path(tiny(name).params), by_path(load(write_folder(tmp_path, CASES[name][0]), mesh=made).params)
    for path, array in cut.items():
        np.testing.assert_array_equal(array, whole[path], err_msg=path)
        for part in array.addressable_shards:
            np.testing.assert_array_equal(part.data, whole[path][part.index], err_msg=path)
    m, kv = made.shape["model"], "model" if 2 % made.shape["model"] == 0 else None
    for path, spec in {
        "embedding": P("model", None),
        "layers.1.attention.q_proj.kernel": P(None, "model"),
        "layers.1.attention.k_proj.kernel": P(None, kv),
        "layers.0.attention.o_proj.kernel": P("model", None),
        "layers.0.mlp.down_proj.kernel": P("model", None),
        "norm.weight": P(None),
    }.items():
        want = jax.sharding.NamedSharding(made, spec)
        assert cut[path].sharding.is_equivalent_to(want, cut[path].ndim), path
    held = cut["layers.0.mlp.gate_proj.kernel"].addressable_shards[0].data.shape
    assert held == (32, 48 // m)


def test_every_parameter_of_every_case_has_a_row() -> None:
    made = mesh.make("2x2")
    assert made is not None
    for name in ("qwen2", "qwen3 bias", "qwen3 tied"):
        paths, config = list(by_path(tiny(name).params)), tiny(name).config
        assert list(mesh.shardings(made, PLACES, paths, config)) == paths
    with pytest.raises(CheckpointError, match=r"no row for parameters mlp\.router"):
        mesh.shardings(made, PLACES, ["norm.weight", "mlp.router"], config)


@pytest.mark.parametrize("name", ["gemma4 edge", "gemma4 26b"])
def test_gemma_on_a_mesh_gives_the_logits_of_one_device(name: str, tmp_path: Path) -> None:
    """Per-layer embeddings and shared keys; experts cut over the model axis. Sums in another order: 2e-4."""
    folder = gemma_cases.write_folder(tmp_path, gemma_cases.CASES[name])
    made = mesh.make("2x2")
    tokens = np.random.default_rng(0).integers(0, 300, (2, 12)).astype(np.int32)
    positions = np.tile(np.arange(12, dtype=np.int32), (2, 1))
    logits = []
    for model in (load(folder), load(folder, mesh=made)):
        run = jax.jit(model.extend, static_argnums=0)
        logits.append(np.asarray(run(model.graphdef, model.params, tokens, positions)[0]))
    np.testing.assert_allclose(logits[1], logits[0], atol=2e-4)
    assert by_path(model.params)["layers.0.attention.q_proj.kernel"].sharding.spec == P(None, "model")
    if name == "gemma4 26b":
        assert by_path(model.params)["layers.0.experts.down"].sharding.spec == P("model", None, None)


def test_a_mesh_that_does_not_divide_the_heads_is_refused(tmp_path: Path) -> None:
    made = jax.make_mesh((1, 3), ("data", "model"), devices=jax.devices()[:3])
    with pytest.raises(CheckpointError, match=r"axis 3 does not divide num_heads \(4\); it may be 1, 2, 4"):
        load(write_folder(tmp_path, QWEN3), mesh=made)


@pytest.mark.parametrize("text", ["", "2", "0x1", "2x-1", "2x2x2", "axb", "２x1", None])
def test_what_is_no_mesh(text: str) -> None:
    with pytest.raises(ValueError, match="such as 2x4"):
        mesh.sizes(text)


def test_more_devices_than_there_are() -> None:
    there = len(jax.devices())
    with pytest.raises(ValueError, match=f"mesh {there}x2 needs {2 * there} devices, there are {there}"):
        mesh.make(f"{there}x2")
    assert mesh.make("1x1") is None


def peak(folder: Path, dtype: str, text: str) -> tuple[int, int]:
    out = processes.finish(processes.start(["tests.load_memory", str(folder), dtype, text], devices=8))
    found = json.loads(out.splitlines()[-1])
    return found["peak"], found["placed"]


def test_loading_holds_less_than_a_shard_beside_the_parameters(tmp_path: Path) -> None:
    """Peak resident memory (mapped pages counted) over what lies on the devices: at most 1.3 times the largest shard.

    The devices are fake, so their memory is the host's; it is subtracted. Loading everything first would need 200 MB.
    """
    wide = {"hidden_size": 512, "intermediate_size": 4096, "num_hidden_layers": 12, "vocab_size": 16384, "head_dim": 64}
    fields = {**QWEN3, **wide, "num_attention_heads": 8, "num_key_value_heads": 4}
    pattern = (np.arange(2**20) % 251).astype(np.float32) / 251
    stored = {n: np.resize(pattern, s).astype(jnp.bfloat16) for n, s in checkpoints.shapes(fields).items()}
    write_folder(tmp_path, fields, stored, shards=4)
    largest = max(f.stat().st_size for f in tmp_path.glob("*.safetensors"))
    for dtype, text in (("bfloat16", "1x1"), ("float32", "2x4")):
        high, placed = peak(tmp_path, dtype, text)
        assert high - placed <= 1.3 * largest, (dtype, text, high, placed, largest)


def test_converted_folders_that_are_refused(tmp_path: Path) -> None:
    """One line each: a folder that is in use, a config of another size, a part of the parameters gone."""
    source, out = write_folder(tmp_path / "source", QWEN3), tmp_path / "out"
    convert(source, out, "bfloat16", "1x2")
    assert by_path(load(out, "bfloat16").params).keys() == by_path(load(source).params).keys()
    with pytest.raises(CheckpointError, match="out: is there already"):
        convert(source, out, "float32", "1x1")
    edit(out / "config.json", intermediate_size=64)
    message = refusal(out)
    assert "misshapen 6: " in message
    assert "layers.0.mlp.gate_proj.kernel is [32, 48], not [32, 64]" in message
    edit(out / "config.json", intermediate_size=48)
    parts = [f for f in (out / "params").rglob("d/*") if f.is_file()]
    for file in parts:
        file.unlink()
    assert "params: " in refusal(out)
