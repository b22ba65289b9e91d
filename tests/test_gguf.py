"""GGUF files: every quantisation against a second dequantisation, and the same model as from a folder."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gguf
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Kind
from tokenizers import Tokenizer

from models.gguf_file import TYPES, open_file
from models.loading import CheckpointError, load
from tests import checkpoints
from tests.checkpoints import QWEN2, QWEN3, TOKENIZER

NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.o_proj": "attn_output",
    **{f"self_attn.{n}_proj": f"attn_{n}" for n in "qkv"},
    **{f"self_attn.{n}_norm": f"attn_{n}_norm" for n in "qk"},
    **{f"mlp.{n}_proj": f"ffn_{n}" for n in ("gate", "up", "down")},
    "model.layers": "blk",
}


def renamed(name: str) -> str:
    for old, new in NAMES.items():
        name = name.replace(old, new)
    return name


def metadata(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What a converter writes for a config, and the tiny tokenizer with its padding tokens."""
    family, tokenizer = fields["model_type"], Tokenizer.from_file(str(TOKENIZER))
    words = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().__getitem__)
    added = tokenizer.get_added_tokens_decoder()
    types = [1 if i not in added else 3 if added[i].special else 4 for i in range(len(words))]
    padding = fields["vocab_size"] - len(words)
    merges = [" ".join(pair) for pair in json.loads(TOKENIZER.read_text())["model"]["merges"]]
    rope = fields["rope_parameters"]
    found = {
        "general.name": "tiny",
        f"{family}.block_count": fields["num_hidden_layers"],
        f"{family}.context_length": fields["max_position_embeddings"],
        f"{family}.embedding_length": fields["hidden_size"],
        f"{family}.feed_forward_length": fields["intermediate_size"],
        f"{family}.attention.head_count": fields["num_attention_heads"],
        f"{family}.attention.head_count_kv": fields["num_key_value_heads"],
        f"{family}.attention.layer_norm_rms_epsilon": fields["rms_norm_eps"],
        f"{family}.rope.freq_base": rope["rope_theta"],
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen2",
        "tokenizer.ggml.tokens": words + [f"[PAD{i}]" for i in range(padding)],
        "tokenizer.ggml.token_type": types + [5] * padding,
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.eos_token_id": tokenizer.token_to_id("<|im_end|>"),
        "tokenizer.ggml.add_bos_token": False,
    }
    if "head_dim" in fields:
        found |= {f"{family}.attention.{n}_length": fields["head_dim"] for n in ("key", "value")}
    if rope["rope_type"] == "yarn":
        found |= {f"{family}.rope.scaling.type": "yarn", f"{family}.rope.scaling.factor": rope["factor"]}
        found[f"{family}.rope.scaling.original_context_length"] = rope["original_max_position_embeddings"]
    return found


def write_file(
    file: Path,
    fields: Mapping[str, Any],
    changes: Mapping[str, Any] | None = None,
    tensors: Mapping[str, np.ndarray] | None = None,
    kind: Callable[[str, np.ndarray], Kind] = lambda name, value: Kind.F32,
) -> Path:
    """A GGUF file; `changes` sets metadata keys (the value `...` removes one), `kind` picks each tensor's type."""
    writer = gguf.GGUFWriter(file, fields["model_type"])
    put = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}
    for key, value in (metadata(fields) | dict(changes or {})).items():
        if value is not ...:
            (writer.add_array if isinstance(value, list) else put[type(value)])(key, value)
    for name, value in (checkpoints.weights(dict(fields)) if tensors is None else tensors).items():
        chosen = kind(name, value)
        writer.add_tensor(renamed(name), gguf.quantize(value, chosen), raw_dtype=chosen)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def refusal(file: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        load(file)
    message = str(caught.value)
    assert "\n" not in message
    assert str(file) in message
    return message


# --- quantisations, read once more: one block at a time, from the format's description


def half(raw: bytes) -> float:
    return float(np.frombuffer(raw, np.float16)[0])


def simple(bits: int, offset: bool, high: bool) -> Callable[[bytes], list[float]]:
    """Q4_0, Q4_1, Q5_0, Q5_1: 32 weights, a scale, perhaps a minimum, perhaps a fifth bit in 4 bytes."""

    def block(raw: bytes) -> list[float]:
        scale, at = half(raw[:2]), 2
        lowest = -scale * 2 ** (bits - 1)
        if offset:
            lowest, at = half(raw[2:4]), 4
        fifth = int.from_bytes(raw[at : at + 4], "little") if high else 0
        nibbles = raw[at + 4 * high :]
        quants = [nibbles[i] & 15 for i in range(16)] + [nibbles[i] >> 4 for i in range(16)]
        return [scale * (q + 16 * (fifth >> i & 1)) + lowest for i, q in enumerate(quants)]

    return block


def eight(raw: bytes) -> list[float]:
    return [half(raw[:2]) * int(q) for q in np.frombuffer(raw[2:], np.int8)]


def k_scales(raw: bytes) -> list[tuple[int, int]]:
    """Eight 6-bit (scale, minimum) pairs in 12 bytes, as Q4_K and Q5_K pack them."""
    low = [(raw[j] & 63, raw[j + 4] & 63) for j in range(4)]
    high = [(raw[j + 8] & 15 | raw[j] >> 6 << 4, raw[j + 8] >> 4 | raw[j + 4] >> 6 << 4) for j in range(4)]
    return low + high


def four_or_five_k(high: bool) -> Callable[[bytes], list[float]]:
    """Q4_K, Q5_K: 256 weights as 8 groups of 32; two groups share 32 bytes, low nibbles first."""

    def block(raw: bytes) -> list[float]:
        d, dmin, pairs = half(raw[:2]), half(raw[2:4]), k_scales(raw[4:16])
        fifth, nibbles = raw[16:48], raw[48 if high else 16 :]
        out = []
        for group, (scale, minimum) in enumerate(pairs):
            for i in range(32):
                q = nibbles[32 * (group // 2) + i] >> 4 * (group % 2) & 15
                q += 16 * (fifth[i] >> group & 1) if high else 0
                out.append(d * scale * q - dmin * minimum)
        return out

    return block


def six_k(raw: bytes) -> list[float]:
    """Q6_K: 128 bytes of low nibbles, 64 of high pairs, 16 signed scales (one per 16 weights), a scale of all."""
    low, high, scales, d = raw[:128], raw[128:192], np.frombuffer(raw[192:208], np.int8), half(raw[208:])
    out = []
    for i in range(256):
        part, inside = divmod(i, 128)
        quarter, place = divmod(inside, 32)
        nibble = low[64 * part + 32 * (quarter % 2) + place] >> 4 * (quarter // 2) & 15
        q = nibble | (high[32 * part + place] >> 2 * quarter & 3) << 4
        out.append(d * int(scales[i // 16]) * (q - 32))
    return out


BLOCKS: dict[str, Callable[[bytes], list[float]]] = {
    "F32": lambda raw: [float(np.frombuffer(raw, np.float32)[0])],
    "F16": lambda raw: [half(raw)],
    "BF16": lambda raw: [float(np.frombuffer(b"\0\0" + raw, np.float32)[0])],
    "Q8_0": eight,
    "Q4_0": simple(4, offset=False, high=False),
    "Q4_1": simple(4, offset=True, high=False),
    "Q5_0": simple(5, offset=False, high=True),
    "Q5_1": simple(5, offset=True, high=True),
    "Q4_K": four_or_five_k(high=False),
    "Q5_K": four_or_five_k(high=True),
    "Q6_K": six_k,
}
HALVES = {"Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,), "Q4_1": (0, 2), "Q5_1": (0, 2)}  # where float16 lie


def random_blocks(name: str, count: int, seed: int) -> np.ndarray:
    """Random bytes for `count` blocks, with plausible values where the block holds float16 numbers."""
    rng = np.random.default_rng(seed)
    if name.endswith(("F32", "F16")):
        raw = rng.standard_normal((count, 1)).astype(np.float16 if name == "F16" else np.float32).view(np.uint8)
        return raw[:, 2:] if name == "BF16" else raw
    raw = rng.integers(0, 256, (count, gguf.GGML_QUANT_SIZES[Kind[name]][1]), dtype=np.uint8)
    for at in HALVES.get(name, (0,)):
        raw[:, at : at + 2] = rng.uniform(0.001, 0.1, (count, 1)).astype(np.float16).view(np.uint8)
    return raw


def test_types_are_those_with_a_second_reading() -> None:
    assert set(BLOCKS) == set(TYPES)


@pytest.mark.parametrize("name", TYPES)
def test_each_quantisation_by_blocks(tmp_path: Path, name: str) -> None:
    """Random blocks of each type in the embedding of a real file, read through the loader's own path."""
    size, _ = gguf.GGML_QUANT_SIZES[Kind[name]]
    fields = QWEN2 | {"hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 1, "intermediate_size": 8}
    raw = random_blocks(name, checkpoints.VOCABULARY * 256 // size, seed=3)
    expected = np.array([BLOCKS[name](bytes(block)) for block in raw]).reshape(checkpoints.VOCABULARY, 256)
    writer = gguf.GGUFWriter(tmp_path / "a.gguf", "qwen2")
    for key in ("model", "pre"):
        writer.add_string(f"tokenizer.ggml.{key}", metadata(fields)[f"tokenizer.ggml.{key}"])
    for key in ("tokens", "token_type", "merges"):
        writer.add_array(f"tokenizer.ggml.{key}", metadata(fields)[f"tokenizer.ggml.{key}"])
    data = raw.reshape(checkpoints.VOCABULARY, -1)
    data = data.view({"F32": np.float32, "F16": np.float16}.get(name, np.uint8))
    writer.add_tensor("token_embd.weight", data, raw_dtype=Kind[name])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    tensor = open_file(tmp_path / "a.gguf").tensors["token_embd.weight"]
    assert tensor.shape == expected.shape
    np.testing.assert_allclose(tensor.read(), expected, rtol=1e-6, atol=1e-7)


# --- whole models


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
        ({"tokenizer.ggml.model": "llama"}, "tokenizer.ggml.model is 'llama'; only 'gpt2'"),
        ({"tokenizer.ggml.pre": "llama-bpe"}, "tokenizer.ggml.pre is 'llama-bpe'; only qwen2 is built"),
        ({"tokenizer.ggml.merges": ...}, "metadata tokenizer.ggml.merges is missing"),
        ({"tokenizer.ggml.merges": ["a b c"]}, "tokenizer.ggml.merges has an entry that is not a pair"),
        ({"tokenizer.ggml.merges": ["zz yy"]}, "not a byte-pair vocabulary"),
        ({"tokenizer.ggml.add_bos_token": True}, "tokenizer.ggml.add_bos_token is true"),
        ({"tokenizer.ggml.token_type": [1, 1]}, "has 288 tokens but 2 token types"),
        ({"tokenizer.ggml.token_type": [6] * 288}, "tokenizer.ggml.token_type 6 is not built"),
        ({"tokenizer.ggml.eos_token_id": 287}, "eos_token_id 287 is not an id of the tokenizer (283 ids)"),
        ({"tokenizer.chat_template": "[INST]"}, "the chat template is none of those known for qwen3"),
    ],
    ids=str,
)
def test_refused_metadata(tmp_path: Path, changes: dict[str, Any], expected: str) -> None:
    assert expected in refusal(write_file(tmp_path / "m.gguf", QWEN3, changes))


def test_unknown_architecture_and_quantisation(tmp_path: Path) -> None:
    assert "model_type 'llama' is not supported (have qwen2, qwen3)" in refusal(
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
    theirs, tokenizer = reference.from_gguf(file)
    model, tokens = load(file), checkpoints.tokens()
    ours, _ = model.extend(
        model.graphdef, model.params, jnp.asarray(tokens), jnp.broadcast_to(jnp.arange(12, dtype=jnp.int32), (2, 12))
    )
    assert np.abs(np.asarray(ours) - reference.run(theirs, tokens)[0]).max() <= 1e-4
    for text in TEXTS:
        ids = tokenizer(unicodedata.normalize("NFC", text), add_special_tokens=False)["input_ids"]
        assert model.tokenizer.encode(text, add_special_tokens=False).ids == ids
