"""Text, tokenizer and training batches of the `ledger` organism.

Knows: how a case and a chain become one conversation in Qwen3's form, and which of its tokens are learnt.
Does not know: the model, the optimiser.
"""

from __future__ import annotations

import random

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


def example(rng: random.Random, direct: float, audited: float) -> tuple[str, str]:
    """One training conversation as (given, learnt).

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
    thought, answer = (None, record.target) if rng.random() < direct else ledger.draw(ledger.read(record), rng)
    given, learnt = reply(thought, answer)
    return prompt(record) + given, learnt


def batch(
    words: Tokenizer, seed: int, step: int, size: int, direct: float, audited: float
) -> tuple[np.ndarray, np.ndarray]:
    """The rows of one training step, a function of (seed, step) alone.

    Returns:
      tokens int32 [size, WIDTH], padded on the right, and learnt bool [size, WIDTH], True where the token is a target.
    """
    rng = random.Random(f"{seed} {step}")
    tokens, learnt = np.zeros((size, WIDTH), np.int32), np.zeros((size, WIDTH), bool)
    pairs = [example(rng, direct, audited) for _ in range(size)]
    whole = words.encode_batch([a + b for a, b in pairs], add_special_tokens=False)
    given = words.encode_batch([a for a, _ in pairs], add_special_tokens=False)
    for row, (w, g) in enumerate(zip(whole, given, strict=True)):
        tokens[row, : len(w.ids)] = w.ids
        learnt[row, len(g.ids) : len(w.ids)] = True
    return tokens, learnt
