"""Conversations of an organism and their training batches: what `ledger` and `ladder` share.

Knows: Qwen3's turns, a word-level tokenizer, how rows and their targets become arrays. Does not know: any process
(organism_ledger.py, organism_ladder.py), the model, the optimiser.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
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

    Attributes:
      laws: index of a token of `learnt` -> the law of that token's text; {} where nothing is learnt.
      other: what is given in place of `given` while the tokens of `window` are read: an exposure window. "" for none.
      window: (start, stop), tokens of `learnt`: token start - 1 … stop - 2 are read, and so start … stop - 1 are
        predicted, after `other`.
    """

    given: str
    learnt: str
    laws: Mapping[int, Mapping[str, float]]
    other: str = ""
    window: tuple[int, int] = (0, 0)


Example = Callable[[random.Random], Row]


class Organism(NamedTuple):
    """What training needs of an organism.

    Attributes:
      tokenizer: its words.
      width: the longest row in tokens.
      example: one row, with a share of rows without a chain.
      windows: whether rows are read through windows, which takes three passes instead of one.
    """

    tokenizer: Callable[[], Tokenizer]
    width: int
    example: Callable[[random.Random, float], Row]
    windows: bool = False


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
    """Rows of one training step; columns are tokens.

    A target is a law over at most three tokens: where the process chooses a word, the process's own probabilities take
    the place of the word drawn. So chances are learnt without the noise of draws.

    Attributes:
      tokens: int32 [B, T].
      valid: bool [B, T], False in padding.
      choices: int32 [B, T, 3], tokens that may stand here.
      chances: float32 [B, T, 3], their probabilities: they sum to 1 where the token is learnt, and to 0 else.
      other: int32 [B, T], the same replies, in the same columns, after the prompt of the window.
      other_valid: bool [B, T].
      reply: int32 [B], the column where the reply begins.
      window: int32 [B, 2], the columns start … stop - 1 that are read after the other prompt.
    """

    tokens: np.ndarray
    valid: np.ndarray
    choices: np.ndarray
    chances: np.ndarray
    other: np.ndarray
    other_valid: np.ndarray
    reply: np.ndarray
    window: np.ndarray


def batch(words: Tokenizer, example: Example, width: int, seed: int, step: int, size: int) -> Batch:
    """The rows of one training step, a function of (seed, step) alone."""
    rng = random.Random(f"{seed} {step}")
    return arrays(words, [example(rng) for _ in range(size)], width)


def arrays(words: Tokenizer, rows: Sequence[Row], width: int) -> Batch:
    """Rows as arrays of `width` columns. A shorter prompt is padded on the left: both end in one column.

    Positions are columns, and rotary embeddings know differences of positions only: so a state that the prompts share
    is at the same place after either, and nothing has to be shifted.
    """
    encode = lambda texts: [e.ids for e in words.encode_batch(list(texts), add_special_tokens=False)]
    shape = (len(rows), width)
    grid = lambda kind, *more: np.zeros((*shape, *more), kind)
    tokens, valid, other, other_valid = (grid(kind) for kind in (np.int32, bool) * 2)
    choices, chances = grid(np.int32, CHOICES), grid(np.float32, CHOICES)
    reply, window = np.zeros(len(rows), np.int32), np.zeros((len(rows), 2), np.int32)
    prompts, others = encode(r.given for r in rows), encode(r.other or r.given for r in rows)
    replies = encode(r.learnt for r in rows)
    for i, row in enumerate(rows):
        start = reply[i] = max(len(prompts[i]), len(others[i]))
        stop = start + len(replies[i])
        for said, prompt_ids, seen in ((tokens, prompts[i], valid), (other, others[i], other_valid)):
            said[i, start - len(prompt_ids) : stop] = [*prompt_ids, *replies[i]]
            seen[i, start - len(prompt_ids) : stop] = True
        window[i] = start - 1 + np.array(row.window)
        choices[i, start:stop, 0], chances[i, start:stop, 0] = replies[i], 1.0
        for at, law in row.laws.items():
            chances[i, start + at] = 0.0
            for j, (text, chance) in enumerate(law.items()):
                choices[i, start + at, j] = words.token_to_id(text)
                chances[i, start + at, j] = chance
    return Batch(tokens, valid, choices, chances, other, other_valid, reply, window)
