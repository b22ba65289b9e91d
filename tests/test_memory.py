"""What a device must hold: counted shapes against closed forms and published lists; refusals say what would fit."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import pytest

from experiments import draws, study
from models import memory
from models.loading import load
from tests.checkpoints import QWEN3, refusal, write_folder
from tests.conftest import ROOT
from tests.running import tiny
from tests.test_bad_input import config, said
from tools import memory_table

SHAPES = ROOT.parent / "shared" / "models" / "configs" / "shapes"


def test_a_token_and_the_weights_of_a_model() -> None:
    """Two layers, two kv heads of 8, keys and values, four bytes; weights as they lie in memory."""
    model = tiny("qwen3")
    made = memory.states(model.extend, model.graphdef, model.params)
    assert [memory.token(made, axis) for axis in (1, 2, 4)] == [256, 128, 256]
    assert memory.token(made) == 2 * 2 * 2 * 8 * 4
    assert memory.weights(model.params) == sum(a.nbytes for a in jax.tree.leaves(model.params))


def test_how_many_chains_fit() -> None:
    """The largest whole number of chains beside the weights with a tenth to spare; never below none."""
    each = memory.chain(100, length=7, vocabulary=75)
    assert each == 1000
    assert memory.fit(100_000, 10_000, each) == 80
    assert memory.fit(100_000, 10_001, each) == 79
    assert memory.fit(100_000, 95_000, each) == 0


def test_the_table_of_full_size_models() -> None:
    """Qwen3-0.6B by hand: 28 layers, 8 kv heads of 128; its rows in the README are what the tool makes today."""
    one, two, *_ = memory_table.qwen3("Qwen3-0.6B")
    assert (one.weights, one.token) == (2 * 596_049_920, 2 * 2 * 28 * 8 * 128)
    assert (two.axis, two.token) == (2, one.token // 2)
    norms = 2 * (28 * (2 * 1024 + 2 * 128) + 1024)  # every device holds them whole
    assert two.weights == (one.weights - norms) // 2 + norms
    committed = memory_table.README.read_text()
    assert f"| Qwen3-0.6B | bfloat16 | {one.weights / 2**30:.1f} | {2_048_000 * one.token / 2**30:.1f} |" in committed
    assert memory_table.cell([one, two], memory_table.QWEN3_VOCABULARY, 80e9) in committed.split("Qwen3-0.6B | bf")[1]


@pytest.mark.parametrize("name", [*memory_table.QWEN3, *memory_table.GEMMA4])
def test_parameters_against_the_published_tensor_lists(name: str) -> None:
    suffix = "-it" if name in memory_table.GEMMA4 else ""
    file = SHAPES / f"{name.replace('Gemma', 'gemma')}{suffix}.text.json"
    if not file.exists():
        pytest.skip("no published tensor lists here")
    counted = sum(math.prod(shape) for shape in json.loads(file.read_text()).values())
    if name in memory_table.GEMMA4:
        assert memory_table.GEMMA4[name][0] == counted
    else:
        layers, d, i, n, k, tied = memory_table.QWEN3[name]
        layer = 2 * 128 * d * (n + k) + 3 * d * i + 2 * d + 2 * 128
        assert layers * layer + d + (1 if tied else 2) * memory_table.QWEN3_VOCABULARY * d == counted


def test_weights_that_do_not_fit_say_what_would(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = memory.weights(tiny("qwen3").params)
    write_folder(tmp_path, QWEN3)
    monkeypatch.setattr(memory, "limit", lambda device: held - 1)
    message = refusal(tmp_path)
    assert "float32 with a model axis of 2" in message
    assert "or bfloat16 with a model axis of 1" in message
    monkeypatch.setattr(memory, "limit", lambda device: 10)
    assert "would fit" not in refusal(tmp_path)
    monkeypatch.setattr(memory, "limit", lambda device: held)
    load(tmp_path)


Break = Callable[[pytest.MonkeyPatch], Any]


def full(patch: pytest.MonkeyPatch) -> None:
    """A device that runs out in the middle, for a reason the estimate does not know."""

    def fail(*_: Any) -> None:
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 12345 bytes.")

    patch.setattr(draws, "_draw", fail)


@pytest.mark.parametrize(
    ("changes", "damage", "expected"),
    [
        ({"slots": 10**12}, None, ("config: slots = 1000000000000 chains of 32 tokens take", "should fit")),
        ({}, full, ("out of memory: RESOURCE_EXHAUSTED", "allocating 12345 bytes", "should fit", "--config.slots")),
        ({"mesh": "3x5"}, None, ("mesh 3x5 needs 15 devices, there are 4 (cpu)",)),
        ({"mesh": "1x3"}, None, ("a mesh with model axis 3 does not divide num_heads (4), intermediate_size (256)",)),
    ],
)
def test_devices_that_do_not_do(
    changes: dict, damage: Break | None, expected: tuple[str, ...], tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    if damage:
        damage(monkeypatch)
    made = config(**({"slots": 15} | changes if changes.get("mesh") == "3x5" else changes))
    message = said(capsys, lambda: study.run(made, tmp_path / "run"))
    assert all(part in message for part in expected), message
    assert not list((tmp_path / "run").rglob("chains/*/*"))


@pytest.mark.parametrize("mesh", ["2by4", "0x2", 4])
def test_configs_that_are_no_mesh(mesh: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="mesh"):
        config(mesh=mesh)


def test_slots_are_dealt_out_evenly() -> None:
    with pytest.raises(ValueError, match="slots must be a multiple of the data axis of mesh 3x1, got 8"):
        config(mesh="3x1")
