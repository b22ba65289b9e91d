"""Published tokenizers and configs beside the real data; a test that asks for an absent one is skipped."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tokenizers import Tokenizer

ROOT = Path(__file__).resolve().parent.parent
MODELS = Path(os.environ.get("JAXMON_DATA", ROOT.parent / "shared" / "data")).parent / "models"


def folder(name: str) -> Path:
    """Of the tokenizer qwen3 or gemma4."""
    found = MODELS / "tokenizers" / name
    if not found.is_dir():
        pytest.skip(f"the published {name} tokenizer is absent")
    return found


def tokenizer(name: str) -> Tokenizer:
    return Tokenizer.from_file(str(folder(name) / "tokenizer.json"))


def ids(words: Tokenizer, text: str) -> list[int]:
    return words.encode(text, add_special_tokens=False).ids
