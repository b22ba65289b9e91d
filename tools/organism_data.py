"""Conversations of an organism and their training batches: what `ledger` and `ladder` share.

Knows: Qwen3's turns, a word-level tokenizer, how rows and their targets become arrays. Does not know: any process
(organism_ledger.py, organism_ladder.py), the model, the optimiser.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

from jaxmon.prompts import ANSWER
from jaxmon.records import Record, message
from models.qwen.chat import CHATS

CHAT = CHATS["qwen3"]
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
THINK = ("<think>", "</think>")
CHOICES = 3  # a target is a law over at most so many tokens


class Row(NamedTuple):
    """One conversation: what is given, what is learnt, and the targets that are not simply the token itself.

    `laws`: index of a token of `learnt` -> the law of that token's text; {} where nothing is learnt.
    """

    given: str
    learnt: str
    laws: Mapping[int, Mapping[str, float]]


Example = Callable[[random.Random], Row]


class Organism(NamedTuple):
    """What training needs of an organism: its words, the longest row in tokens, rows with a share without chains."""

    tokenizer: Callable[[], Tokenizer]
    width: int
    example: Callable[[random.Random, float], Row]


def word_level(starts: Iterable[str], inner: Iterable[str]) -> Tokenizer:
    """A word-level tokenizer: a word carries its leading space, so that decode(encode(text)) == text.

    There is no unknown token: a word outside the vocabulary is an error.

    Args:
      starts: words as they stand at the beginning of a line.
      inner: words that follow a space.
    """
    words = ["\n", "\n\n", "user", "assistant", *starts, *(f" {w}" for w in inner)]
    special = [*SPECIAL, *THINK]
    t = Tokenizer(models.WordLevel({w: i for i, w in enumerate([*special, *words])}, unk_token="<unk>"))
    t.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in SPECIAL])
    t.add_tokens([AddedToken(s, special=False, normalized=False) for s in THINK])
    t.pre_tokenizer = pre_tokenizers.Split(Regex(r"\n\n|\n| ?[^ \n]+| "), "isolated")
    t.decoder = decoders.Fuse()
    return t


def prompt(record: Record) -> str:
    """The conversation up to and including the assistant's turn opening; the message has no instruction."""
    return CHAT.render(message(record, ""))


def reply(thought: str | None, answer: str) -> tuple[str, str]:
    """The assistant's turn as (given, learnt); without a thought the closed thinking block is given."""
    end = f"{ANSWER} {answer}{CHAT.turn_close}"
    if thought is None:
        return CHAT.closed_think or "", end
    return "", f"{CHAT.think_open}\n{thought}\n{CHAT.think_close}\n\n{end}"


class Batch(NamedTuple):
    """Rows of one training step, padded on the right.

    A target is a law over at most three tokens: where the process chooses a word, the process's own probabilities take
    the place of the word drawn. So chances are learnt without the noise of draws.
    """

    tokens: np.ndarray  # int32 [B, T]
    choices: np.ndarray  # int32 [B, T, 3], tokens that may stand here
    chances: (
        np.ndarray
    )  # float32 [B, T, 3], their probabilities: they sum to 1 where the token is learnt, and to 0 else


def batch(words: Tokenizer, example: Example, width: int, seed: int, step: int, size: int) -> Batch:
    """The rows of one training step, a function of (seed, step) alone."""
    rng = random.Random(f"{seed} {step}")
    shape = (size, width, CHOICES)
    out = Batch(np.zeros(shape[:2], np.int32), np.zeros(shape, np.int32), np.zeros(shape, np.float32))
    rows = [example(rng) for _ in range(size)]
    whole = words.encode_batch([row.given + row.learnt for row in rows], add_special_tokens=False)
    before = words.encode_batch([row.given for row in rows], add_special_tokens=False)
    for r, (ids, given, row) in enumerate(zip(whole, before, rows, strict=True)):
        start, stop = len(given.ids), len(ids.ids)
        out.tokens[r, :stop] = ids.ids
        out.choices[r, start:stop, 0], out.chances[r, start:stop, 0] = ids.ids[start:], 1.0
        for at, law in row.laws.items():
            out.chances[r, start + at] = 0.0
            for j, (text, chance) in enumerate(law.items()):
                out.choices[r, start + at, j] = words.token_to_id(text)
                out.chances[r, start + at, j] = chance
    return out
