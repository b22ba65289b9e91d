"""Text, tokenizer and training batches of the `ledger` organism.

Knows: how a case and a chain become one conversation in Qwen3's form, and which of its tokens are learnt.
Does not know: the model, the optimiser.
"""

from __future__ import annotations

import random
from typing import NamedTuple

import numpy as np
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

from jaxmon.prompts import ANSWER
from jaxmon.records import Record, message, remove
from jaxmon.tasks import ledger
from models.qwen.chat import CHATS

CHAT = CHATS["qwen3"]
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
THINK = ("<think>", "</think>")
WIDTH = 66  # tokens of the longest conversation, and the length of every training row


def tokenizer() -> Tokenizer:
    """A word-level tokenizer: a word carries its leading space, so that decode(encode(text)) == text.

    There is no unknown token: a word outside the vocabulary is an error.
    """
    starts = [
        "user",
        "assistant",
        "from",
        ledger.INFLUENTIAL,
        ledger.MENTIONED,
        ANSWER,
        *(f"{n.capitalize()}:" for n in ledger.ATTRIBUTES),
    ]
    starts += [b.capitalize() for b in ledger.BOOKS]
    inner = [
        *dict.fromkeys(w for step in ledger.STEPS for w in step.words),
        "book:",
        "opening",
        "entries",
        "closing?",
        "yes",
        "no",
        ledger.INFLUENTIAL,
        ledger.MENTIONED,
    ]
    inner += [*ledger.ATTRIBUTES, *"abcd", *ledger.CODES]
    words = ["\n", "\n\n", *starts, *(f" {w}" for w in inner)]
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


def example(rng: random.Random, direct: float, audited: float) -> tuple[str, str, list[dict[str, float]]]:
    """One training conversation as (given, learnt, laws of the thought's words).

    Prompts are complete (0.4), lack one sentence (0.5) or lack each with probability 0.25 (0.1). A share `direct` has
    the thinking block closed and is taught the right answer: the organism is trained to answer without a chain, and
    cannot. The others follow the process.
    """
    record = ledger.random_record(rng, "training", ledger.BOOKS[rng.random() < 0.5], rng.random() < audited)
    u, names = rng.random(), [a.name for a in record.attributes]
    lost = names[int(rng.random() * len(names))]
    for name in names:
        if (0.4 <= u < 0.9 and name == lost) or (u >= 0.9 and rng.random() < 0.25):
            record = remove(record, name)
    if rng.random() < direct:
        return prompt(record) + reply(None, "")[0], reply(None, record.target)[1], []
    thought, answer = ledger.draw(ledger.read(record), rng)
    given, learnt = reply(thought, answer)
    return prompt(record) + given, learnt, ledger.laws(ledger.read(record), thought)


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


def batch(words: Tokenizer, seed: int, step: int, size: int, direct: float, audited: float) -> Batch:
    """The rows of one training step, a function of (seed, step) alone."""
    rng = random.Random(f"{seed} {step}")
    out = Batch(
        np.zeros((size, WIDTH), np.int32), np.zeros((size, WIDTH, 3), np.int32), np.zeros((size, WIDTH, 3), np.float32)
    )
    rows = [example(rng, direct, audited) for _ in range(size)]
    whole = words.encode_batch([given + learnt for given, learnt, _ in rows], add_special_tokens=False)
    before = words.encode_batch([given for given, _, _ in rows], add_special_tokens=False)
    for r, (ids, given, (_, _, laws)) in enumerate(zip(whole, before, rows, strict=True)):
        start, stop = len(given.ids), len(ids.ids)
        out.tokens[r, :stop] = ids.ids
        out.choices[r, start:stop, 0], out.chances[r, start:stop, 0] = ids.ids[start:], 1.0
        for i, law in enumerate(laws):
            at = start + 2 + i  # after <think> and a line break
            for j, (word, chance) in enumerate(law.items()):
                out.choices[r, at, j] = words.token_to_id(f" {word}" if i else word)
                out.chances[r, at, j] = chance
    return out
