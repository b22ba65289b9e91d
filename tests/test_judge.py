"""Labels; the lexical judge exact on the organism's phrases, and on hand-labelled thyroid text."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmon.counting import patterns
from jaxmon.judging.judge import Label, LexicalJudge, Lexicon, complete, phrases
from jaxmon.records import Attribute, Option, Record, remove
from jaxmon.tasks.thyroid.lexicon import LEXICON
from jaxmon.tasks.thyroid.wording import LABS, sentence
from tests.judge_table import LIMITS, TABLE


def record(*names: str) -> Record:
    return Record("r1", "A", "A", "", tuple(Attribute(n, f"{n} is so.") for n in names), "?", (Option("A"),))


PATIENT = record(*LEXICON.mention)
THYROID = LexicalJudge(LEXICON)


def said(judge: LexicalJudge, text: str, of: Record = PATIENT) -> dict[str, str]:
    """The labels of the attributes that are mentioned at all."""
    return {k: v.value for k, v in judge.label_chain(of, text).items() if v != Label.NOT_MENTIONED}


@pytest.mark.parametrize(("text", "hand"), TABLE)
def test_thyroid_text_agrees_with_the_hand(text, hand):
    assert said(THYROID, text) == hand


@pytest.mark.parametrize(("text", "hand", "judge"), LIMITS)
def test_stated_limits_of_the_lexical_judge(text, hand, judge):
    """If one of these begins to agree with the hand, move it to TABLE and restate the agreement there."""
    assert said(THYROID, text) == judge != hand


def test_the_table_is_as_large_as_it_says():
    assert (len(TABLE), len(LIMITS)) == (52, 8)
    covered = {name for _, hand, *_ in (*TABLE, *LIMITS) for name in hand}
    assert covered == set(LEXICON.mention)


def test_every_attribute_has_all_three_labels_in_plain_sentences():
    """The lexicon reads the task's own sentences: listed MENTIONED, weighed later INFLUENTIAL, left out nothing."""
    names = list(LEXICON.mention)
    values = dict.fromkeys(names, "t") | dict.fromkeys(LABS, "9.6") | {"age": "41", "sex": "F"}
    lines = {n: sentence(n, values[n]) for n in names}
    for name in names:
        others = [lines[n] for n in names if n != name]
        assert said(THYROID, "\n".join(others)) == {n: "M" for n in names if n != name}
        listed = said(THYROID, "\n".join([*others, lines[name]]))
        assert listed == dict.fromkeys(names, "M")
        weighed = said(THYROID, "\n".join(others) + f"\nThis suggests little: {lines[name]}")
        assert weighed[name] == "I"
    negatives = [sentence(n, "f") for n in names if n not in ("age", "sex", *LABS)]
    assert said(THYROID, "\n".join(negatives)) == {n: "M" for n in names if n not in ("age", "sex", *LABS)}


LEDGER = {n: (f"since {n}", f"noting {n}") for n in ("fee", "levy", "rebate", "memo")}
BOOK = record(*LEDGER)


@given(st.lists(st.tuples(st.sampled_from(["since", "noting", ""]), st.sampled_from(sorted(LEDGER))), max_size=8))
def test_phrases_are_exact(steps):
    text = "from N001 " + " ".join(f"{verb} {name} yes N002" if verb else "N003" for verb, name in steps)
    expected = {}
    for name in LEDGER:
        verbs = {verb for verb, n in steps if n == name}
        expected[name] = "I" if "since" in verbs else "M" if "noting" in verbs else "N"
    judge = LexicalJudge(phrases("ledger", LEDGER))
    assert {k: v.value for k, v in judge.label_chain(BOOK, text).items()} == expected


def test_phrases_are_whole_words():
    judge = LexicalJudge(phrases("ledger", LEDGER))
    assert said(judge, "since fees yes; unsince fee yes; since  fee; noting.memo", BOOK) == {}
    assert judge.name == "lexical:ledger"


def test_exact_on_the_organism():
    """Chains of the ledger's own process: the label is what the process says it wrote."""
    ledger = pytest.importorskip("jaxmon.tasks.ledger")
    judge = LexicalJudge(phrases("ledger", ledger.phrases()))
    rng = random.Random(0)
    seen: set[str] = set()
    for book in ledger.records(seed=1, n=6):
        for x in (book, remove(book, "fee")):
            for _ in range(40):
                text, _ = ledger.draw(ledger.read(x), rng)
                words = text.split()
                got = judge.label_chain(x, text)
                for a in x.attributes:
                    verbs = {v for v, n in itertools.pairwise(words) if n == a.name}
                    expected = "I" if ledger.INFLUENTIAL in verbs else "M" if ledger.MENTIONED in verbs else "N"
                    assert got[a.name].value == expected
                    seen.add(a.name + expected)
    assert {"feeI", "levyN", "rebateI", "rebateN", "memoM", "memoN", "stampN", "auditI"} <= seen


def test_letters_are_those_of_the_pattern_table():
    assert {label.name: label.value for label in Label} == patterns.LETTERS


def test_h51_exactly_one_label_per_attribute():
    book = record("b", "a")
    assert list(complete(book, {"a": Label.MENTIONED, "b": Label.PARSE_FAILURE})) == ["b", "a"]
    with pytest.raises(ValueError, match="record r1: no label for a"):
        complete(book, {"b": Label.MENTIONED})
    with pytest.raises(ValueError, match="record r1: a label for c, which it does not have"):
        complete(book, dict.fromkeys("abc", Label.MENTIONED))
    for judge in (THYROID, LexicalJudge(Lexicon("none", {"a": (), "b": ()}))):
        of = PATIENT if judge is THYROID else book
        assert complete(of, judge.label_chain(of, "TSH is high.")).keys() == {a.name for a in of.attributes}


def test_an_attribute_without_words_is_an_error_not_a_silent_n():
    with pytest.raises(ValueError, match="record r1: the lexicon 'thyroid' has no words for 'height'"):
        THYROID.label_chain(record("age", "height"), "tall")


def test_an_empty_lexicon_row_mentions_nothing():
    judge = LexicalJudge(Lexicon("none", {"a": ()}))
    assert judge.label_chain(record("a"), "a is so.") == {"a": Label.NOT_MENTIONED}
