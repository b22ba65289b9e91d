"""Words and training rows of the `ledger` organism: its process (`jaxmon.tasks.ledger`) as conversations."""

from __future__ import annotations

import random

from tokenizers import Tokenizer

from jaxmon.prompts import ANSWER
from jaxmon.records import remove
from jaxmon.tasks import ledger
from tools.organism_data import Organism, Row, prompt, reply, word_level

AUDITED = 0.4  # share of the rows with an audit
WIDTH = 66  # tokens of the longest conversation, and the length of every training row


def tokenizer() -> Tokenizer:
    starts = ["from", ledger.INFLUENTIAL, ledger.MENTIONED, ANSWER, *(f"{n.capitalize()}:" for n in ledger.ATTRIBUTES)]
    inner = [*dict.fromkeys(w for step in ledger.STEPS for w in step.words), "book:", "opening", "entries", "closing?"]
    inner += ["yes", "no", ledger.INFLUENTIAL, ledger.MENTIONED, *ledger.ATTRIBUTES, *"abcd", *ledger.CODES]
    return word_level([*starts, *(b.capitalize() for b in ledger.BOOKS)], inner)


def example(rng: random.Random, direct: float, audited: float = AUDITED) -> Row:
    """One training conversation.

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
        return Row(prompt(record) + reply(None, "")[0], reply(None, record.target)[1], {})
    thought, answer = ledger.draw(ledger.read(record), rng)
    given, learnt = reply(thought, answer)
    laws = enumerate(ledger.laws(ledger.read(record), thought))
    targets = {2 + i: {f" {w}" if i else w: p for w, p in law.items()} for i, law in laws}  # after <think>, line break
    return Row(prompt(record) + given, learnt, targets)


ORGANISM = Organism(tokenizer, WIDTH, example)
