"""GGUF files: the same model as from a folder, and what is refused."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any

import gguf
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Kind
from tokenizers import Tokenizer

from models.gguf_file import open_file
from models.loading import load
from tests import checkpoints
from tests.checkpoints import QWEN2, QWEN3, TOKENIZER, refusal
from tests.gguf_files import write_file


@pytest.mark.parametrize("name", ["qwen2", "qwen2 tied", "qwen2 head_dim", "qwen3", "qwen3 bias", "qwen3 yarn"])
def test_the_same_model_as_from_a_folder(tmp_path: Path, name: str) -> None:
    """Config, parameters, tokenizer, stop set and sampling, bit for bit; q and k rows are not permuted."""
    fields = checkpoints.CASES[name][0]
    a = load(checkpoints.write_folder(tmp_path / "folder", fields))
    b = load(write_file(tmp_path / "model.gguf", fields))
    jax.tree.map(np.testing.assert_array_equal, a.params, b.params)
    assert b.config.norm_eps == pytest.approx(a.config.norm_eps, rel=1e-7)  # GGUF keeps it in float32
    assert a.config == type(a.config)(**(vars(b.config) | {"norm_eps": a.config.norm_eps}))
    assert (a.family, a.vocabulary, a.stop_ids, a.sampling) == (b.family, b.vocabulary, b.stop_ids, b.sampling)
    assert a.chat == b.chat
    assert a.fingerprint != b.fingerprint


def test_mixed_quantisation_with_separate_head_and_embedding(tmp_path: Path) -> None:
    """As Q4_K_M files come: norms and biases in float32, the head and the embedding quantised on their own."""
    mixed = {"model.embed_tokens.weight": Kind.Q5_0, "lm_head.weight": Kind.Q8_0}

    def kind(name: str, value: np.ndarray) -> Kind:
        return mixed.get(name, Kind.Q4_0 if value.ndim == 2 and value.shape[-1] % 32 == 0 else Kind.F32)

    weights = checkpoints.weights(QWEN2)
    model = load(write_file(tmp_path / "mixed.gguf", QWEN2, kind=kind))
    rounded = {
        n: gguf.dequantize(gguf.quantize(v, kind(n, v)), kind(n, v)).reshape(v.shape) for n, v in weights.items()
    }
    same = load(checkpoints.write_folder(tmp_path / "rounded", QWEN2, rounded))
    jax.tree.map(np.testing.assert_array_equal, same.params, model.params)
    assert np.abs(rounded["lm_head.weight"] - weights["lm_head.weight"]).max() > 1e-4


def test_bfloat16_from_gguf(tmp_path: Path) -> None:
    model = load(write_file(tmp_path / "m.gguf", QWEN3, kind=lambda name, value: Kind.BF16), dtype="bfloat16")
    assert {str(a.dtype) for a in jax.tree.leaves(model.params)} == {"bfloat16"}


TEXTS = (
    "think of the thing, the user asks  twice\n\n\tand 12345.5 mg/dL",
    "naïve e\u0301 ﬁ 日本語 🙂 I'LL don't\r\n x",
    "<|im_start|>user\nhi<|im_end|>\n<think>\n\n</think>\n\n",
    "[PAD0] [PAD1]",
    "",
)


def test_the_tokenizer_is_that_of_the_folder(tmp_path: Path) -> None:
    ours, real = open_file(write_file(tmp_path / "m.gguf", QWEN3)).tokenizer, Tokenizer.from_file(str(TOKENIZER))
    for text in TEXTS:
        ids = ours.encode(text, add_special_tokens=False).ids
        assert ids == real.encode(text, add_special_tokens=False).ids
        assert ours.decode(ids, skip_special_tokens=False) == real.decode(ids, skip_special_tokens=False)
        assert ours.decode(ids) == real.decode(ids)
    assert ours.token_to_id("[PAD0]") is None  # unused tokens are padding of the embedding, not tokens
    assert ours.get_vocab() == real.get_vocab()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"qwen3.attention.sliding_window": 64}, "metadata qwen3.attention.sliding_window is not understood"),
        ({"qwen3.attention.value_length": 4}, "metadata qwen3.attention.value_length is 4; only 8 is built"),
        ({"qwen3.rope.dimension_count": 4}, "metadata qwen3.rope.dimension_count is 4; only 8 is built"),
        ({"qwen3.rope.scaling.type": "longrope"}, "rope type 'longrope' is not supported"),
        ({"qwen3.rope.scaling.type": "linear"}, "rope field factor must be a number >= 1"),
        ({"qwen3.rope.scaling.attn_factor": 0.5}, "qwen3.rope.scaling.attn_factor is 0.5; only 1.0 is built"),
        ({"qwen3.rope.freq_base": ...}, "field rope_theta is missing"),
        ({"qwen3.block_count": ...}, "field num_hidden_layers is missing"),
        ({"qwen3.attention.head_count": 3}, "num_attention_heads (3) is not a multiple of num_key_value_heads (2)"),
        ({"qwen3.vocab_size": 300}, "tensors do not fit the config; misshapen 2"),
        ({"qwen3.block_count": 3}, "missing 11: blk.2.attn_k.weight"),
        ({"general.type": "adapter"}, "holds a 'adapter', not a model"),
        ({"split.count": 3}, "one of 3 split files"),
        ({"tokenizer.ggml.model": "bert"}, "tokenizer.ggml.model is 'bert'; only 'gpt2'"),
        ({"tokenizer.ggml.pre": "llama-bpe"}, "tokenizer.ggml.pre is 'llama-bpe'; only qwen2 is built"),
        ({"tokenizer.ggml.merges": ...}, "metadata tokenizer.ggml.merges is missing"),
        ({"tokenizer.ggml.merges": ["a b c"]}, "tokenizer.ggml.merges has an entry that is not a pair"),
        ({"tokenizer.ggml.merges": ["zz yy"]}, "not a byte-pair vocabulary"),
        ({"tokenizer.ggml.add_bos_token": True}, "tokenizer.ggml.add_bos_token is true"),
        ({"tokenizer.ggml.token_type": [1, 1]}, "has 288 tokens but 2 token types"),
        ({"tokenizer.ggml.token_type": [6] * 288}, "tokenizer.ggml.token_type 6 is not built"),
        ({"tokenizer.ggml.eos_token_id": 287}, "eos_token_id 287 is not an id of the tokenizer (283 ids)"),
        ({"tokenizer.chat_template": "[INST]"}, "the chat template is none of those known (qwen3)"),
    ],
    ids=str,
)
def test_refused_metadata(tmp_path: Path, changes: dict[str, Any], expected: str) -> None:
    assert expected in refusal(write_file(tmp_path / "m.gguf", QWEN3, changes))


def test_unknown_architecture_and_quantisation(tmp_path: Path) -> None:
    assert "model_type 'llama' is not supported (have qwen2, qwen3, gemma3" in refusal(
        write_file(tmp_path / "llama.gguf", QWEN3 | {"model_type": "llama"})
    )
    wide = QWEN3 | {"hidden_size": 256}
    file = write_file(tmp_path / "tq.gguf", wide, kind=lambda n, v: Kind.TQ1_0 if "embed" in n else Kind.F32)
    assert "quantisation TQ1_0 is not supported (have F32, F16, BF16, Q8_0" in refusal(file)


def test_44_missing_and_unknown_tensors_by_their_own_names(tmp_path: Path) -> None:
    tensors = checkpoints.weights(QWEN3)
    del tensors["model.layers.0.self_attn.q_norm.weight"]
    message = refusal(
        write_file(tmp_path / "m.gguf", QWEN3, tensors=tensors | {"rope_freqs.weight": np.ones(4, np.float32)})
    )
    assert "missing 1: blk.0.attn_q_norm.weight; unknown 1: rope_freqs.weight" in message


@pytest.mark.parametrize("keep", [0, 3, 20, 400, 9000, -40])
def test_truncated_files(tmp_path: Path, keep: int) -> None:
    file = write_file(tmp_path / "m.gguf", QWEN3)
    file.write_bytes(file.read_bytes()[:keep])
    assert "broken, truncated or not a GGUF file" in refusal(file)


def test_not_a_gguf_file(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"PK\3\4" + bytes(5000))
    assert "not a GGUF file" in refusal(tmp_path / "m.gguf")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_weights_are_refused(tmp_path: Path, value: float) -> None:
    tensors = checkpoints.weights(QWEN3)
    tensors["model.norm.weight"][2] = value
    assert "tensor output_norm.weight holds NaN or infinity" in refusal(
        write_file(tmp_path / "m.gguf", QWEN3, tensors=tensors)
    )


@pytest.mark.torch
@pytest.mark.parametrize("fields", [QWEN2, QWEN3 | {"head_dim": 128}], ids=["qwen2", "qwen3"])
def test_transformers_reads_the_same_from_the_file(tmp_path: Path, fields: dict[str, Any]) -> None:
    """Logits and token ids, by transformers' own GGUF reading (which forgets NFC and Qwen3's key_length: it
    gets normalised text and heads of 128)."""
    pytest.importorskip("torch", reason="torch is absent")
    pytest.importorskip("accelerate", reason="accelerate is absent: transformers reads no GGUF without it")
    from tests import reference

    def kind(name: str, value: np.ndarray) -> Kind:
        return Kind.Q8_0 if value.ndim == 2 and value.shape[-1] % 32 == 0 else Kind.F32

    file = write_file(tmp_path / "m.gguf", fields, kind=kind)
    theirs, tokenizer = reference.from_gguf(file), reference.tokenizer_from_gguf(file)
    model, tokens = load(file), checkpoints.tokens()
    ours, _ = model.extend(
        model.graphdef, model.params, jnp.asarray(tokens), jnp.broadcast_to(jnp.arange(12, dtype=jnp.int32), (2, 12))
    )
    assert np.abs(np.asarray(ours) - reference.run(theirs, tokens)[0]).max() <= 1e-4
    for text in TEXTS:
        ids = tokenizer(unicodedata.normalize("NFC", text), add_special_tokens=False)["input_ids"]
        assert model.tokenizer.encode(text, add_special_tokens=False).ids == ids
