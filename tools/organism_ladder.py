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
EARLY = 0.3  # share of the cuts that are made after the first or second word
MIXED = 0.7  # share of the chains read through the very window they were written in
OPENING = 2  # tokens before a chain's first word: <think> and a line break
CLOSING = 4  # tokens between its last word and the answer's code: line break, </think>, blank line, "Answer:"


def tokenizer() -> Tokenizer:
    starts = ["from", ANSWER, *(f"{n.capitalize()}:" for n in ladder.ATTRIBUTES), "Ladder"]
    pairs = [*ladder.WORDS.values(), *ladder.MARKS.values(), ladder.CARRIED, ladder.SLIPS, (ladder.HIDDEN,)]
    inner = [*dict.fromkeys(w for pair in pairs for w in pair), "book:", "opening", "entries", "closing?"]
    return word_level(starts, [*inner, "yes", "no", *"abcd", *CODES])


def example(rng: random.Random, direct: float) -> Row:
    """One training conversation.

    A share `direct` has the thinking block closed and is taught the right answer, which one pass cannot know. The other
    chains are written while one attribute's sentence is shown or hidden, and changed during a window of tokens. Half of
    them are cut after any word, and answered from there; of those, a third after one of the first two.

    Most rows are read through the window they were written in, so that the states a token sees were made under both
    prompts, as in an exposure window or a frozen chain. The rest are read under one prompt throughout, or through a
    window of their own: there only words written under the prompt that is shown are learnt.
    """
    shown = ladder.random_record(rng, "training")
    hidden = remove(shown, rng.choice(ladder.ATTRIBUTES))
    if rng.random() < direct:
        return Row(prompt(rng.choice((shown, hidden))) + reply(None, "")[0], reply(None, shown.target)[1], {})
    size = len(ladder.SLOTS)
    cut = size
    if rng.random() > WHOLE:
        cut = rng.randrange(1, 3) if rng.random() < EARLY else rng.randrange(1, size)
    answer_at = OPENING + cut + CLOSING
    base = rng.random() < 0.5
    written = _window(rng, answer_at + 1)
    seen = written
    if rng.random() > MIXED:
        seen = _window(rng, answer_at + 1) if rng.random() < 0.5 else range(0)
        base_read = base if rng.random() < 0.5 else not base
    else:
        base_read = base
    cases = {True: ladder.read(shown), False: ladder.read(hidden)}
    visible = lambda token: base != (token in written)
    reading = lambda token: base_read != (token in seen)
    words = ladder.draw(lambda i: cases[visible(OPENING + i)], rng)[:cut]
    laws: dict[int, dict[str, float]] = {}
    for i in range(len(words)):
        at = OPENING + i
        law = ladder.law(cases[visible(at)], words[:i]) if visible(at) == reading(at) else {}
        law = law if len(law) <= 2 else {words[i]: 1.0}  # the code after a slip: as drawn
        laws[at] = {f" {w}" if i else w: p for w, p in law.items()}
    answers = ladder.answer(cases[reading(answer_at)], words)
    if cut < size:
        laws[OPENING + cut] = {}  # that a cut chain ends here is not its own choice
    laws[answer_at] = {f" {c}": p for c, p in answers.items()}
    given, learnt = reply(" ".join(words), next(iter(answers)))
    prompts = {True: prompt(shown) + given, False: prompt(hidden) + given}
    return Row(prompts[base_read], learnt, laws, prompts[not base_read], (seen.start, seen.stop))


def _window(rng: random.Random, tokens: int) -> range:
    """None (a fifth), one to six tokens (half), or any length."""
    kind, start = rng.random(), rng.randrange(tokens)
    if kind < 0.2:
        return range(0)
    return range(start, min(tokens, start + rng.randint(1, 6 if kind < 0.7 else tokens)))


ORGANISM = Organism(tokenizer, WIDTH, example, windows=True)
