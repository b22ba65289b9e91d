"""Real pretrained weights against `transformers`; skipped where the file is absent (tools/fetch_weights.py gets it).

The golden rows are what transformers (torch, float32) gave on the same file: prompts, ids, logits, greedy tokens. The
whole comparison, live, is `python -m tools.parity` (recorded in models/qwen/README.md) and the slow test below.
"""

from __future__ import annotations

import json
import os
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer

from models.loading import Model, load
from tests.checkpoints import GOLDEN
from tools.fetch_weights import SOURCES
from tools.parity import PROMPTS, compare, greedy

ROOT = Path(__file__).resolve().parent.parent
NAME = "qwen2.5-coder-0.5b-instruct"
ROWS = json.loads((GOLDEN / f"{NAME}.json").read_text(encoding="utf-8"))
TOKENIZERS = Path(os.environ.get("JAXMON_DATA", ROOT.parent / "shared" / "data")).parent / "models" / "tokenizers"


@pytest.fixture(scope="module")
def weights() -> Path:
    file = Path(os.environ.get("JAXMON_WEIGHTS", ROOT / "weights")) / SOURCES[NAME].file
    if not file.exists():
        pytest.skip(f"real weights absent: python -m tools.fetch_weights {NAME}")
    return file


@pytest.fixture(scope="module")
def model(weights: Path) -> Model:
    return load(weights)


def test_what_the_file_says(model: Model) -> None:
    c = model.config
    assert (c.num_layers, c.hidden_size, c.num_heads, c.num_kv_heads, c.head_dim) == (24, 896, 14, 2, 64)
    assert not c.tied  # this file quantises the head apart from the embedding
    assert (model.vocabulary, c.vocab_size) == (151665, 151936)
    assert model.stop_ids == {151643, 151645}
    assert model.chat.name == "qwen2.5"


@pytest.mark.parametrize("row", ROWS[:2], ids=lambda row: row["prompt"][:20])
def test_greedy_text_equals_the_recorded_reference(model: Model, row: dict[str, Any]) -> None:
    """The first 12 of the 64 recorded tokens, and the prompt's last logits to 1e-3."""
    prompt = model.tokenizer.encode(model.chat.render(row["prompt"]), add_special_tokens=False).ids
    assert prompt == row["prompt_ids"]
    tokens, logits, _ = greedy(model, prompt, 12)
    assert tokens == row["expected_tokens"][:12]
    np.testing.assert_allclose(logits[-1, :8], row["expected_last_logits"], atol=1e-3, rtol=0)


def test_the_recorded_run_is_whole() -> None:
    """64 tokens on 5 prompts, every one the same, by the record that README.md cites."""
    assert [row["prompt"] for row in ROWS] == list(PROMPTS)
    assert all(row["tokens"] == row["expected_tokens"] and len(row["tokens"]) == 64 for row in ROWS)
    assert max(row["max_abs_logit_difference"] for row in ROWS) <= 1e-3


def texts() -> list[str]:
    """Hand-picked texts and 300 random ones over Latin, other scripts, emoji and white space."""
    rng, drawn = np.random.default_rng(0), []
    for _ in range(300):
        n = int(rng.integers(1, 40))
        codes = [rng.integers(32, 127, n), rng.integers(0x80, 0x3000, n // 3), rng.integers(0x1F300, 0x1F700, n // 6)]
        mixed = np.concatenate([*codes, np.resize([10, 32, 13, 9], n // 2)]).astype(int)
        rng.shuffle(mixed)
        drawn.append("".join(map(chr, mixed)))
    hostile = [
        "",
        " ",
        "\n\n \n",
        "TSH=0.25 mU/L; T4U 1.02",
        "don't I'LL we'Ve",
        "e\u0301 ﬁ Å",
        "<|im_start|>user\nx<|im_end|>",
    ]
    return [
        *hostile,
        "日本語のテキスト 中文，标点。",
        "def f(x):\n    return x**2\r\n",
        "<tool_call>{}</tool_call>",
        *drawn,
    ]


def test_tokenizer_equals_the_published_one(model: Model) -> None:
    """Qwen3's tokenizer.json has the same vocabulary and rule, and four added tokens more (not in these texts)."""
    file = TOKENIZERS / "qwen3" / "tokenizer.json"
    if not file.exists():
        pytest.skip("the published Qwen3 tokenizer is absent")
    published = Tokenizer.from_file(str(file))
    for text in texts():
        ids = model.tokenizer.encode(text, add_special_tokens=False).ids
        assert ids == published.encode(text, add_special_tokens=False).ids, repr(text)
        assert model.tokenizer.decode(ids, skip_special_tokens=False) == unicodedata.normalize("NFC", text)


@pytest.mark.slow
@pytest.mark.torch
def test_tokenizer_equals_transformers_reading_of_the_file(weights: Path, model: Model) -> None:
    """On text in normal form NFC: transformers' reading leaves the normaliser out, the published tokenizer has it."""
    pytest.importorskip("torch", reason="torch is absent: transformers reads no GGUF without it")
    import transformers

    theirs = transformers.AutoTokenizer.from_pretrained(str(weights.parent), gguf_file=weights.name)
    for text in texts():
        ids = theirs(unicodedata.normalize("NFC", text), add_special_tokens=False)["input_ids"]
        assert model.tokenizer.encode(text, add_special_tokens=False).ids == ids, repr(text)
    turns = [{"role": "user", "content": "Hi\n there"}]
    rendered = theirs.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    assert model.chat.render("Hi\n there") == rendered


@pytest.mark.slow
@pytest.mark.torch
def test_greedy_text_equals_transformers(weights: Path) -> None:
    pytest.importorskip("torch", reason="torch is absent")
    pytest.importorskip("accelerate", reason="accelerate is absent: transformers reads no GGUF without it")
    rows = compare(weights, 64)
    assert [row["tokens"] for row in rows] == [row["expected_tokens"] for row in rows]
    assert max(row["max_abs_logit_difference"] for row in rows) <= 1e-3
