"""A tokenizer from GGUF metadata: byte-level BPE with Qwen2's splitting rule, or Gemma's BPE with scores.

Knows: token lists, merges and token types as GGUF stores them. Does not know: tensors, configs, chats.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from models.checkpoint import CheckpointError

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6  # GGUF's token types
KINDS = {"gpt2": {NORMAL, CONTROL, USER_DEFINED, UNUSED}, "llama": {NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE}}

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
      fields: metadata by GGUF name: tokenizer.ggml.{model, pre, tokens, token_type, merges or scores, add_bos_token}.

    Raises:
      CheckpointError: a field that is missing or of a kind that is not built.
    """
    kind = _field(fields, "model")
    if kind not in KINDS:
        raise CheckpointError(
            f"tokenizer.ggml.model is {kind!r}; only 'gpt2' (byte-level BPE) and 'llama' (BPE by scores) are built"
        )
    tokens, types = _field(fields, "tokens"), _field(fields, "token_type")
    if len(tokens) != len(types):
        raise CheckpointError(f"tokenizer.ggml has {len(tokens)} tokens but {len(types)} token types")
    if strange := sorted(set(types) - KINDS[kind]):
        raise CheckpointError(f"tokenizer.ggml.token_type {strange[0]} is not built")
    vocabulary = {t: i for i, (t, kind) in enumerate(zip(tokens, types, strict=True)) if kind != UNUSED}
    if len(vocabulary) != len(tokens) - types.count(UNUSED):
        raise CheckpointError("tokenizer.ggml.tokens lists a token twice")
    tokenizer = (_byte_level if kind == "gpt2" else _by_scores)(fields, vocabulary)
    for kind, special in ((CONTROL, True), (USER_DEFINED, False)):
        added = [
            AddedToken(t, special=special, normalized=False) for t, k in zip(tokens, types, strict=True) if k == kind
        ]
        tokenizer.add_special_tokens(added) if special else tokenizer.add_tokens(added)
    return tokenizer


def _byte_level(fields: Mapping[str, Any], vocabulary: dict[str, int]) -> Tokenizer:
    """Bytes as characters, split by a rule, merged by a list."""
    pre, merges = _field(fields, "pre"), _field(fields, "merges")
    if pre not in PRE_TOKENIZERS:
        raise CheckpointError(f"tokenizer.ggml.pre is {pre!r}; only {', '.join(PRE_TOKENIZERS)} is built")
    if fields.get("tokenizer.ggml.add_bos_token"):
        raise CheckpointError("tokenizer.ggml.add_bos_token is true; Qwen prompts begin without such a token")
    tokenizer = Tokenizer(_bpe(vocabulary, merges))
    tokenizer.normalizer = normalizers.NFC()
    split = pre_tokenizers.Split(Regex(PRE_TOKENIZERS[pre]), behavior="isolated")
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _by_scores(fields: Mapping[str, Any], vocabulary: dict[str, int]) -> Tokenizer:
    """Whole text with ▁ for blanks; the pair that makes the token of the highest score is merged first."""
    if fields.get("tokenizer.ggml.add_space_prefix", True):
        raise CheckpointError("tokenizer.ggml.add_space_prefix is true; Gemma puts no blank before a text")
    scores = _field(fields, "scores")
    if len(scores) != len(_field(fields, "tokens")):
        raise CheckpointError(f"tokenizer.ggml has {len(scores)} scores but {len(_field(fields, 'tokens'))} tokens")
    ranked = []
    for token, number in vocabulary.items():
        for cut in range(1, len(token)):
            left, right = token[:cut], token[cut:]
            if left in vocabulary and right in vocabulary:
                ranked.append((-scores[number], number, cut, (left, right)))
    ranked.sort()
    unknown = _field(fields, "tokens")[_field(fields, "unknown_token_id")]
    bpe = models.BPE(vocabulary, [pair for *_, pair in ranked], unk_token=unknown, fuse_unk=True, byte_fallback=True)
    tokenizer = Tokenizer(bpe)
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
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
