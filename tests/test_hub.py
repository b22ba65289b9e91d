"""Names on the hub: which they are, what is fetched, and one line where it cannot be had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from models import hub, loading
from models.checkpoint import CheckpointError
from tests.checkpoints import QWEN3, refusal, write_folder


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("google/gemma-4-E4B-it", True),
        ("Qwen/Qwen3-8B@main", True),
        ("Qwen/Qwen3-8B@refs/pr/3", True),
        ("models/organisms", False),  # a folder of that kind is here
        ("nowhere/weights.gguf", False),
        ("organism", False),
        ("a/b/c", False),
        ("/absolute/path", False),
        ("../up/name", False),
    ],
)
def test_what_reads_as_a_name(path: str, name: bool) -> None:
    assert hub.is_name(path) == name


def test_a_name_loads_what_the_hub_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def download(repository: str, **options: Any) -> str:
        asked.append((repository, options))
        return str(write_folder(tmp_path / "f00d", QWEN3))

    monkeypatch.setattr(loading, "fetch", lambda name: hub.fetch(name, download))
    model = loading.load("owner/tiny@v1")
    assert model.name == "tiny"
    assert asked == [("owner/tiny", {"revision": "v1", "allow_patterns": ["*.json", "*.jinja", "*.safetensors"]})]


@pytest.mark.parametrize("error", [ConnectionError("no route\nto host"), FileNotFoundError("not cached"), KeyError()])
def test_no_network_is_one_clear_line(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def download(*_: Any, **__: Any) -> str:
        raise error

    monkeypatch.setattr(loading, "fetch", lambda name: hub.fetch(name, download))
    message = refusal(Path("owner/tiny"))
    assert "owner/tiny: no such folder here, and the Hugging Face hub did not give it" in message
    assert "hf download owner/tiny --local-dir DIR" in message


def test_a_missing_path_is_not_asked_for(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no such file or folder"):
        loading.load(tmp_path / "absent")
