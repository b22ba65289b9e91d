"""Words and training rows of the `ladder` organism: its process (`jaxmon.tasks.ladder`) as conversations."""

from __future__ import annotations

import random

from tokenizers import Tokenizer

from jaxmon.prompts import ANSWER
from jaxmon.records import remove
from jaxmon.tasks import ladder
from jaxmon.tasks.ledger import CODES
from tools.organism_data import Organism, Row, prompt, reply, word_level

WIDTH = 55  # tokens of the longest conversation, and the length of every training row
WHOLE = 0.5  # share of the chains that are not cut


def tokenizer() -> Tokenizer:
    starts = ["from", ANSWER, *(f"{n.capitalize()}:" for n in ladder.ATTRIBUTES), "Ladder"]
    pairs = [*ladder.WORDS.values(), *ladder.MARKS.values(), ladder.CARRIED, ladder.SLIPS, (ladder.HIDDEN,)]
    inner = [*dict.fromkeys(w for pair in pairs for w in pair), "book:", "opening", "entries", "closing?"]
    return word_level(starts, [*inner, "yes", "no", *"abcd", *CODES])


def example(rng: random.Random, direct: float) -> Row:
    """One training conversation.

    A share `direct` has the thinking block closed and is taught the right answer, which one pass cannot know. The other
    chains are written while one attribute's sentence is shown and hidden: always shown, always hidden, or changed
    during a window of words (half of the rows). The prompt of the row shows one of the two states, and only words
    written in that state are learnt. Half of the chains are cut after any word, and answered from there.
    """
    shown = ladder.random_record(rng, "training")
    hidden = remove(shown, rng.choice(ladder.ATTRIBUTES))
    if rng.random() < direct:
        return Row(prompt(rng.choice((shown, hidden))) + reply(None, "")[0], reply(None, shown.target)[1], {})
    size = len(ladder.SLOTS)
    base = rng.random() < 0.5
    start = rng.randrange(size + 1)
    window = range(start, start + rng.randint(1, size + 1)) if rng.random() < 0.5 else range(0)
    visible = [base != (i in window) for i in range(size + 1)]
    cases = {True: ladder.read(shown), False: ladder.read(hidden)}
    words = ladder.draw(lambda i: cases[visible[i]], rng)
    if rng.random() > WHOLE:
        words = words[: rng.randrange(1, size)]
    state = base if rng.random() < 0.5 else not base
    if not window and rng.random() < 0.7:
        state = base  # mostly the prompt that the chain was written under
    laws: dict[int, dict[str, float]] = {}
    for i in range(len(words)):
        law = ladder.law(cases[state], words[:i]) if visible[i] == state else {}
        law = law if len(law) <= 2 else {words[i]: 1.0}  # the code after a slip: as drawn
        laws[2 + i] = {f" {w}" if i else w: p for w, p in law.items()}
    answers = ladder.answer(cases[state], words)
    at = 2 + len(words)  # the line break after the thought; then </think>, a blank line, "Answer:", the code
    if len(words) < size:
        laws[at] = {}  # that a cut chain ends here is not its own choice
    laws[at + 4] = {f" {c}": p for c, p in answers.items()}
    given, learnt = reply(" ".join(words), next(iter(answers)))
    return Row(prompt(shown if state else hidden) + given, learnt, laws)


ORGANISM = Organism(tokenizer, WIDTH, example)
