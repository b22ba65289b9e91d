"""Writes the committed golden arrays of tests/golden, so that parity is tested where torch is absent.

    python -m tools.make_golden

golden: what `transformers` on torch gives for the tiny checkpoints of tests/checkpoints.py (logits and hidden states,
float32; of tests/gemma_cases.py: the last logits of every row of a ragged batch). tokenizer.json: a small byte-level
BPE with the control tokens of Qwen3. gemma_tokenizer.json: a small BPE with bytes to fall back on and Gemma's marks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from models.gguf_tokenizer import PRE_TOKENIZERS
from tests import checkpoints, gemma_cases

CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MARKS = ("<tool_call>", "</tool_call>", "<think>", "</think>")
SENTENCES = ("the user asks and the assistant answers", "system user assistant", "\n\n", "think of the thing")


def tiny_tokenizer() -> Tokenizer:
    """A byte-level BPE over a handful of sentences: 256 bytes, 20 merges, Qwen3's control tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    rule = pre_tokenizers.Split(Regex(PRE_TOKENIZERS["qwen2"]), behavior="isolated")
    bytes_ = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([rule, bytes_])
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=276, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(SENTENCES * 10, trainer)
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in CONTROL])
    tokenizer.add_tokens([AddedToken(t, special=False, normalized=False) for t in MARKS])
    return tokenizer


GEMMA_CONTROL = (
    *("<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<|tool_response>", "<|think|>"),
    *("<|channel>", "<channel|>", "<|turn>", "<turn|>", "<start_of_turn>", "<end_of_turn>"),
)
GEMMA_MERGES = ("t h", "th e", "▁ the", "u s", "us e", "use r", "m o", "d e", "mo de", "mode l", "n s", "▁ A", "▁ ▁")


def tiny_gemma_tokenizer() -> Tokenizer:
    """BPE over whole text with ▁ for blanks; characters outside the vocabulary become bytes."""
    added = ("\n", "\n\n")
    letters = dict.fromkeys(c for pair in GEMMA_MERGES for part in pair.split(" ") for c in part)
    joined = [pair.replace(" ", "") for pair in GEMMA_MERGES]
    names = [*GEMMA_CONTROL, *added, *(f"<0x{b:02X}>" for b in range(256)), *letters, *joined]
    vocabulary = {name: i for i, name in enumerate(names)}
    merges = [(left, right) for left, right in (pair.split(" ") for pair in GEMMA_MERGES)]
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in GEMMA_CONTROL])
    tokenizer.add_tokens([AddedToken(t, special=False, normalized=False) for t in added])
    return tokenizer


def main() -> None:
    from tests import reference  # torch

    checkpoints.GOLDEN.mkdir(exist_ok=True)
    tiny_tokenizer().save(str(checkpoints.TOKENIZER))
    arrays = {}
    for name, (fields, start) in checkpoints.CASES.items():
        ids = checkpoints.tokens(rows=1)
        positions = start + np.arange(ids.shape[1])[None]
        model = reference.make(fields, checkpoints.weights(fields))
        logits, states = reference.run(model, ids, positions)
        arrays[f"{name}/logits"], arrays[f"{name}/states"] = logits[0], np.stack(states)[:, 0]
    np.savez_compressed(checkpoints.GOLDEN / "qwen.npz", **arrays)
    gemma(reference)
    print(f"{len(checkpoints.CASES)} cases, {(checkpoints.GOLDEN / 'qwen.npz').stat().st_size / 1e3:.0f} kB")


def gemma(reference: Any) -> None:
    """The last logits [4, V] of a ragged batch, for every case."""
    tiny_gemma_tokenizer().save(str(gemma_cases.TOKENIZER))
    arrays: dict[str, Any] = {}
    for name, fields in gemma_cases.CASES.items():
        model = reference.make(fields, gemma_cases.weights(fields))
        rows = zip(gemma_cases.tokens(), gemma_cases.LENGTHS, strict=True)
        arrays[name] = np.stack([reference.run(model, row[None, :n])[0][0, -1] for row, n in rows])
    np.savez_compressed(checkpoints.GOLDEN / "gemma.npz", **arrays)


if __name__ == "__main__":
    main()
