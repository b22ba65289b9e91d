"""Writes the committed golden arrays of tests/golden, so that parity is tested where torch is absent.

    python -m tools.make_golden

golden: what `transformers` on torch gives for the tiny checkpoints of tests/checkpoints.py (logits and hidden states,
float32). tokenizer.json: a small byte-level BPE with the control tokens of Qwen3.
"""

from __future__ import annotations

import numpy as np
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from models.gguf_tokenizer import PRE_TOKENIZERS
from tests import checkpoints

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
    print(f"{len(checkpoints.CASES)} cases, {(checkpoints.GOLDEN / 'qwen.npz').stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
