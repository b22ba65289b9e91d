"""A tokenizer from GGUF metadata: byte-level BPE with Qwen2's splitting rule.

Knows: token lists, merges and token types as GGUF stores them. Does not know: tensors, configs, chats.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from models.checkpoint import CheckpointError

NORMAL, CONTROL, USER_DEFINED, UNUSED = 1, 3, 4, 5  # GGUF's token types; unknown (2) and byte (6) do not occur here

# The published splitting rule of the Qwen2 to Qwen3 tokenizers (tokenizer.json, pre_tokenizer), by GGUF's name for it:
# contractions, letters with one leading mark, single digits, punctuation, line breaks, blanks.
PRE_TOKENIZERS = {
    "qwen2": (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
        r"|\s+(?!\S)|\s+"
    ),
}


def tokenizer_from(fields: Mapping[str, Any]) -> Tokenizer:
    """Builds the tokenizer; unused tokens (padding of the embedding) are left out.

    Args:
      fields: metadata by GGUF name: tokenizer.ggml.{model, pre, tokens, token_type, merges, add_bos_token}.

    Raises:
      CheckpointError: a field that is missing or of a kind that is not built.
    """
    kind, pre = _field(fields, "model"), _field(fields, "pre")
    if kind != "gpt2":
        raise CheckpointError(f"tokenizer.ggml.model is {kind!r}; only 'gpt2' (byte-level BPE) is built")
    if pre not in PRE_TOKENIZERS:
        raise CheckpointError(f"tokenizer.ggml.pre is {pre!r}; only {', '.join(PRE_TOKENIZERS)} is built")
    if fields.get("tokenizer.ggml.add_bos_token"):
        raise CheckpointError("tokenizer.ggml.add_bos_token is true; Qwen prompts begin without such a token")
    tokens, types, merges = _field(fields, "tokens"), _field(fields, "token_type"), _field(fields, "merges")
    if len(tokens) != len(types):
        raise CheckpointError(f"tokenizer.ggml has {len(tokens)} tokens but {len(types)} token types")
    if strange := sorted(set(types) - {NORMAL, CONTROL, USER_DEFINED, UNUSED}):
        raise CheckpointError(f"tokenizer.ggml.token_type {strange[0]} is not built")
    vocabulary = {t: i for i, (t, kind) in enumerate(zip(tokens, types, strict=True)) if kind != UNUSED}
    if len(vocabulary) != len(tokens) - types.count(UNUSED):
        raise CheckpointError("tokenizer.ggml.tokens lists a token twice")
    tokenizer = Tokenizer(_bpe(vocabulary, merges))
    tokenizer.normalizer = normalizers.NFC()
    split = pre_tokenizers.Split(Regex(PRE_TOKENIZERS[pre]), behavior="isolated")
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level])
    tokenizer.decoder = decoders.ByteLevel()
    for kind, special in ((CONTROL, True), (USER_DEFINED, False)):
        added = [
            AddedToken(t, special=special, normalized=False) for t, k in zip(tokens, types, strict=True) if k == kind
        ]
        tokenizer.add_special_tokens(added) if special else tokenizer.add_tokens(added)
    return tokenizer


def _bpe(vocabulary: dict[str, int], merges: list[str]) -> models.BPE:
    if broken := next((m for m in merges if m.count(" ") != 1), None):
        raise CheckpointError(f"tokenizer.ggml.merges has an entry that is not a pair: {broken!r}")
    pairs = [(left, right) for left, right in (m.split(" ") for m in merges)]
    try:
        return models.BPE(vocab=vocabulary, merges=pairs)
    except Exception as error:  # the tokenizers library raises bare Exception, e.g. for a merge outside the vocabulary
        raise CheckpointError(f"tokenizer.ggml: not a byte-pair vocabulary ({error})") from None


def _field(fields: Mapping[str, Any], name: str) -> Any:
    if f"tokenizer.ggml.{name}" not in fields:
        raise CheckpointError(f"metadata tokenizer.ggml.{name} is missing")
    return fields[f"tokenizer.ggml.{name}"]
