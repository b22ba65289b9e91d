"""Bad input through a program's own door: one line that says what and where, code 1, and a run that can go on."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Kind

from experiments import cli, opening, rundir, study
from experiments.configs import base
from jaxmon.records import Attribute
from jaxmon.tasks import ledger, registry
from models import loading
from tests import checkpoints, gguf_files
from tests.conftest import ROOT

ORGANISM = ROOT / "models/organisms/ledger"
SMALL = {"n": 4, "stage1": 4, "per_label": 1, "labels": ("retail",), "slots": 8, "shard": 4, "replicates": 10}


def config(**changes: Any) -> dict[str, Any]:
    made = base.base()
    made.update(SMALL | {"model": str(ORGANISM)} | changes)
    return base.check(made)


def said(capsys: pytest.CaptureFixture[str], call: Callable[[], Any]) -> str:
    """The one line a program ends with when `call` is its main."""
    with pytest.raises(SystemExit) as ended:
        cli.guarded(lambda argv: call())(["program"])
    assert ended.value.code == 1
    message = capsys.readouterr().err.strip().splitlines()[-1]  # progress bars come before it
    assert message.startswith("error: ")
    assert "Traceback" not in message
    return message


def organism(folder: Path, **changes: Any) -> Path:
    shutil.copytree(ORGANISM, folder)
    checkpoints.edit(folder / "config.json", **changes)
    return folder


def truncated(folder: Path) -> Path:
    file = organism(folder) / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1000])
    return folder


def quantised(folder: Path) -> Path:
    wide = checkpoints.QWEN3 | {"hidden_size": 256}
    kind = lambda name, value: Kind.TQ1_0 if "up_proj" in name else Kind.F32
    return gguf_files.write_file(folder.with_suffix(".gguf"), wide, kind=kind)


MODELS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "unknown type": (lambda d: organism(d, model_type="mamba"), "mamba"),
    "field out of range": (lambda d: organism(d, num_attention_heads=-4), "num_attention_heads"),
    "misshapen": (lambda d: organism(d, intermediate_size=128), "misshapen 6"),
    "truncated": (truncated, "broken or truncated safetensors file"),
    "GGUF of an unknown quantisation": (quantised, "quantisation TQ1_0 is not supported"),
    "not there": (lambda d: d, "no such file or folder"),
}


@pytest.mark.parametrize("name", MODELS)
def test_models(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever is wrong with a model, the directory is not bound to the faulty config."""
    make, expected = MODELS[name]
    path, root = make(tmp_path / "model"), tmp_path / "run"
    message = said(capsys, lambda: study.run(config(model=str(path)), root))
    assert expected in message
    assert str(path) in message
    with rundir.open_run(root, config()), opening.reopened(config(), root) as opened:
        assert opening.prepare(opened).model.name == "ledger"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"length": 250}, "do not fit into the 256 positions of ledger"),
        ({"attributes": ("fee", "colour")}, "no record has the attribute 'colour'"),
        ({"labels": ("wholesale",)}, "no class 'wholesale' (it has audited, retail, trade)"),
        ({"task": "chess"}, "no task 'chess'"),
    ],
)
def test_configs(changes: dict[str, Any], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert expected in said(capsys, lambda: study.run(config(**changes), tmp_path / "run"))


def test_two_attributes_with_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    record = ledger.records(0, 1)[0]
    doubled = (*record.attributes, Attribute("copy", record.attributes[0].sentence))
    message = said(capsys, lambda: dataclasses.replace(record, attributes=doubled))
    assert f"record {record.id}: {record.attributes[0].name!r} and 'copy' have one sentence" in message
    assert record.attributes[0].sentence not in message


def test_logits_that_are_nan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that breaks down while it runs: record and arm are named, and nothing of it is stored."""
    whole = loading.load(ORGANISM)
    broken = dataclasses.replace(whole, params=jax.tree.map(lambda a: a * np.float32(np.nan), whole.params))
    monkeypatch.setattr(opening, "load", lambda *_: broken)
    message = said(capsys, lambda: study.run(config(), tmp_path / "run"))
    assert "NaN" in message
    assert registry.load("ledger", ("retail",), registry.Request("", 1, 0)).records[0].id in message
    assert not list((tmp_path / "run").rglob("*.parquet"))


@pytest.mark.parametrize(
    "error", [jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 8 bytes."), MemoryError()]
)
def test_a_lack_of_memory_says_what_needs_less(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise error

    assert "--config.slots" in said(capsys, fail)


def test_a_bug_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError):
        cli.guarded(lambda argv: print(1 // 0))([])


def test_an_interrupt_ends_quietly(capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(argv: list[str]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as ended:
        cli.guarded(interrupted)([])
    assert (ended.value.code, capsys.readouterr().err) == (130, "interrupted\n")
