"""GGUF files of Gemma 3: the same model as from a folder, its tokenizer by scores, and what is refused."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from tokenizers import Tokenizer

from models.checkpoint import CheckpointError
from models.gguf_file import config_from
from models.loading import Model, load
from tests import gemma_cases, gguf_files, published
from tests.checkpoints import GOLDEN, refusal
from tests.gemma_cases import GEMMA3, TOKENIZER
from tests.gguf_files import write_file
from tools.fetch_weights import SOURCES
from tools.parity import PROMPTS, greedy

FIELDS = {k: v for k, v in GEMMA3.items() if k not in ("layer_types", "rope_parameters", "final_logit_softcapping")}
FIELDS |= {"num_hidden_layers": 6, "rope_theta": 1e6, "rope_local_base_freq": 1e4}
NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "model.layers": "blk",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
    "self_attn.o_proj": "attn_output",
    **{f"self_attn.{n}_proj": f"attn_{n}" for n in "qkv"},
    **{f"self_attn.{n}_norm": f"attn_{n}_norm" for n in "qk"},
    **{f"mlp.{n}_proj": f"ffn_{n}" for n in ("gate", "up", "down")},
}


def metadata(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What a converter writes: no pattern, no query scale, a vocabulary with scores in place of merges."""
    tokenizer, stored = Tokenizer.from_file(str(TOKENIZER)), json.loads(TOKENIZER.read_text())
    words = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().__getitem__)
    added = tokenizer.get_added_tokens_decoder()
    kind = lambda i, t: (3 if added[i].special else 4) if i in added else 6 if t.startswith("<0x") else 1
    ranks = {"".join(pair): rank for rank, pair in enumerate(stored["model"]["merges"])}
    keys = {
        "block_count": fields["num_hidden_layers"],
        "context_length": fields["max_position_embeddings"],
        "embedding_length": fields["hidden_size"],
        "feed_forward_length": fields["intermediate_size"],
        "attention.head_count": fields["num_attention_heads"],
        "attention.head_count_kv": fields["num_key_value_heads"],
        "attention.key_length": fields["head_dim"],
        "attention.value_length": fields["head_dim"],
        "attention.layer_norm_rms_epsilon": fields["rms_norm_eps"],
        "attention.sliding_window": fields["sliding_window"],
        "rope.freq_base": fields["rope_theta"],
    }
    return {f"gemma3.{k}": v for k, v in keys.items()} | {
        "gemma3.vocab_size": fields["vocab_size"],
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.tokens": words,
        "tokenizer.ggml.token_type": [kind(i, t) for i, t in enumerate(words)],
        "tokenizer.ggml.scores": [-float(ranks[t]) if t in ranks else -1000.0 for t in words],
        "tokenizer.ggml.eos_token_id": tokenizer.token_to_id("<eos>"),
        "tokenizer.ggml.unknown_token_id": tokenizer.token_to_id("<unk>"),
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.ggml.add_space_prefix": False,
    }


def write(file: Path, **changes: Any) -> Path:
    weights = gemma_cases.weights({**FIELDS, "layer_types": ["sliding_attention"] * 6})
    shifted = {n: v + 1 if "norm" in n else v for n, v in weights.items()}  # llama.cpp stores 1 + w
    given = {k.replace("__", "."): v for k, v in changes.items()}
    return write_file(
        file, FIELDS, given, shifted, said=metadata, rename=functools.partial(gguf_files.renamed, names=NAMES)
    )


def test_38_the_same_model_as_from_a_folder(tmp_path: Path) -> None:
    """Norms lose the 1 that GGUF adds; config, tokenizer and turns agree."""
    weights = gemma_cases.weights({**FIELDS, "layer_types": ["sliding_attention"] * 6})
    a, b = load(gemma_cases.write_folder(tmp_path / "folder", FIELDS, weights)), load(write(tmp_path / "m.gguf"))
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=2e-7, rtol=0), a.params, b.params)
    assert b.config.norm_eps == pytest.approx(a.config.norm_eps, rel=1e-7)  # GGUF keeps it in float32
    assert a.config == type(a.config)(**(vars(b.config) | {"norm_eps": a.config.norm_eps}))
    assert b.config.windows == (8,) * 5 + (None,)
    assert (a.family, a.stop_ids, a.sampling, a.chat) == (b.family, b.stop_ids, b.sampling, b.chat)
    for text in ("the user's model\n\nhas  two", "Äther <end_of_turn>", "", "日本", a.chat.render("Hi")):
        assert a.tokenizer.encode(text).ids == b.tokenizer.encode(text).ids
        assert b.tokenizer.decode(b.tokenizer.encode(text).ids, skip_special_tokens=False) == text


def test_the_scale_of_27b_is_not_the_heads_size() -> None:
    """62 layers: hidden_size / heads = 168, as published."""
    fields = {"general.architecture": "gemma3", "tokenizer.ggml.tokens": ["a"], "gemma3.embedding_length": 5376}
    fields |= {"gemma3.attention.head_count": 32, "gemma3.attention.key_length": 128, "gemma3.block_count": 62}
    assert config_from(fields, {})["query_pre_attn_scalar"] == 168
    assert config_from(fields | {"gemma3.block_count": 48}, {})["query_pre_attn_scalar"] == 128
    with pytest.raises(CheckpointError, match=r"gemma3\.surprise is not understood"):
        config_from(fields | {"gemma3.surprise": 1}, {})


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"tokenizer__ggml__add_space_prefix": True}, "add_space_prefix is true"),
        ({"tokenizer__ggml__scores": ...}, "metadata tokenizer.ggml.scores is missing"),
        ({"tokenizer__ggml__scores": [0.0]}, "has 1 scores but"),
        ({"tokenizer__ggml__model": "t5"}, "tokenizer.ggml.model is 't5'; only 'gpt2'"),
    ],
)
def test_refused_tokenizers(tmp_path: Path, changes: dict[str, Any], expected: str) -> None:
    assert expected in refusal(write(tmp_path / "m.gguf", **changes))


# Real weights. The golden rows are what transformers (torch, float32) gave on the same file; live: tools/parity.py.
NAME = "gemma-3-270m"
RECORD = GOLDEN / f"{NAME}.json"
ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def real() -> Model:
    file = Path(os.environ.get("JAXMON_WEIGHTS", ROOT / "weights")) / SOURCES[NAME].file
    if not file.exists():
        pytest.skip(f"real weights absent: python -m tools.fetch_weights {NAME}")
    return load(file)


def test_the_recorded_run_is_whole() -> None:
    """64 tokens on 5 prompts, every one the same, by the record that models/gemma/README.md cites."""
    rows = json.loads(RECORD.read_text(encoding="utf-8"))
    assert [row["prompt"] for row in rows] == list(PROMPTS)
    assert all(row["tokens"] == row["expected_tokens"] and len(row["tokens"]) == 64 for row in rows)
    assert max(row["max_abs_logit_difference"] for row in rows) <= 1e-3


@pytest.mark.slow
def test_greedy_text_equals_the_recorded_reference(real: Model) -> None:
    """The first 12 of the recorded tokens of the first prompt, and its last logits to 1e-3."""
    row = json.loads(RECORD.read_text(encoding="utf-8"))[0]
    tokens, logits, _ = greedy(real, row["prompt_ids"], 12)
    assert tokens == row["expected_tokens"][:12]
    np.testing.assert_allclose(logits[-1, :8], row["expected_last_logits"], atol=1e-3, rtol=0)
    assert real.tokenizer.encode(real.chat.render(row["prompt"]), add_special_tokens=False).ids == row["prompt_ids"]


@pytest.mark.slow
def test_tokenizer_equals_the_published_one(real: Model) -> None:
    """Gemma 4's tokenizer.json has the same vocabulary but for control tokens (not in these texts)."""
    from tests.test_real_weights import texts

    theirs = published.tokenizer("gemma4")
    for text in texts():
        ids = real.tokenizer.encode(text, add_special_tokens=False).ids
        assert ids == theirs.encode(text, add_special_tokens=False).ids, repr(text)
        assert real.tokenizer.decode(ids, skip_special_tokens=False) == text
