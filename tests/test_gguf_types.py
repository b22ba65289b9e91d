"""Every quantisation of GGUF against a second dequantisation: one block at a time, from the format's description."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Kind

from models.gguf_file import TYPES, open_file
from tests import checkpoints
from tests.checkpoints import QWEN2
from tests.gguf_files import metadata


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
