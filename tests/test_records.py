"""Records: removing an attribute removes exactly one line; bad records are refused; draws are stable."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmon.records import Attribute, Option, Record, draw, message, remove

OPTIONS = (Option("A", "first"), Option("B"))
LINE = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=30
).filter(str.strip)


def record(**changes: object) -> Record:
    fields: dict = {
        "id": "r1",
        "label": "A",
        "target": "A",
        "preamble": "Before.",
        "attributes": (Attribute("age", "Age is 3."), Attribute("sex", "Sex is F.")),
        "question": "Which?",
        "options": OPTIONS,
    }
    return Record(**(fields | changes))


@given(
    sentences=st.lists(LINE, min_size=1, max_size=8, unique=True),
    preamble=st.lists(LINE, max_size=3).map("\n".join),
    question=LINE,
    instruction=st.sampled_from(["", "Answer.", "Think.\nAnswer."]),
    listed=st.booleans(),
    data=st.data(),
)
def test_removal_removes_one_contiguous_line_and_nothing_else(sentences, preamble, question, instruction, listed, data):
    attributes = tuple(Attribute(f"a{i}", s) for i, s in enumerate(sentences))
    full = record(attributes=attributes, preamble=preamble, question=question, listed=listed)
    i = data.draw(st.integers(0, len(sentences) - 1))
    without = remove(full, f"a{i}")
    assert without == dataclasses.replace(full, attributes=attributes[:i] + attributes[i + 1 :])
    long, short = message(full, instruction), message(without, instruction)
    line = sentences[i] + "\n"
    start = len("".join(s + "\n" for s in ([preamble] if preamble else []) + sentences[:i]))
    assert long[start : start + len(line)] == line
    assert short == long[:start] + long[start + len(line) :]


def test_message_is_preamble_attributes_question_options_instruction_line_by_line():
    assert message(record(), "Say it.") == "Before.\nAge is 3.\nSex is F.\nWhich?\nA: first\nB\nSay it."
    assert message(record(preamble="", listed=False), "") == "Age is 3.\nSex is F.\nWhich?"
    assert message(remove(remove(record(), "sex"), "age"), "") == "Before.\nWhich?\nA: first\nB"


TWICE = (Attribute("age", "Age is 3."), Attribute("age", "Age is 4."))
SAME = (Attribute("age", "It is so."), Attribute("sex", "It is so."))
BAD = {
    "two attributes named 'age'": {"attributes": TWICE},
    "'age' and 'sex' have one sentence": {"attributes": SAME},
    "two options with the code 'A'": {"options": (Option("A"), Option("A"))},
    "target 'C' is not among the options": {"target": "C"},
    "right answer 'C' is not among the options": {"right": "C"},
    "the sentence of 'age' must be one non-empty line": {"attributes": (Attribute("age", " "),)},
    "the sentence of 'sex' must be one non-empty line": {"attributes": (Attribute("sex", "One.\nTwo."),)},
    "the sentence of 'pulse' must be one non-empty line": {"attributes": (Attribute("pulse", "One.\u2028Two."),)},
    "attribute 1 of 1 has no name": {"attributes": (Attribute("", "One."),)},
    "the option code 'A B' must be one word": {"options": (Option("A B"), Option("A"))},
    "the option code '' must be one word": {"options": (Option(""), Option("A"))},
}


@pytest.mark.parametrize("line", BAD)
def test_bad_records_are_refused_with_one_line(line):
    with pytest.raises(ValueError, match=r"^record r1: ") as error:
        record(**BAD[line])
    assert line in str(error.value)
    assert "\n" not in str(error.value)


def test_removing_an_attribute_that_is_not_there_names_those_that_are():
    with pytest.raises(ValueError, match=r"record r1 has no attribute 'height' \(it has age, sex\)"):
        remove(record(), "height")


POOL = [record(id=f"r{i}", label=label) for i, label in enumerate("AAAAABBBBBBB")]


@given(
    seed=st.integers(0, 10**6), few=st.integers(1, 5), more=st.integers(1, 5), order=st.randoms(use_true_random=False)
)
def test_draws_ignore_the_order_and_nest(seed, few, more, order):
    few, more = sorted((few, more))
    shuffled = list(POOL)
    order.shuffle(shuffled)
    small, large = draw(POOL, few, seed), draw(shuffled, more, seed)
    assert [r.label for r in small] == ["A"] * few + ["B"] * few
    assert small == large[:few] + large[more : more + few]
    assert draw([r for r in POOL if r.label == "B"], few, seed) == small[few:]


def test_draws_are_uniform_over_seeds():
    """Each of 7 records comes first w.p. 1/7: 1,000 times in 7,000 seeds, SD 29.3; 6 SD: false alarm < 1e-7."""
    members = [r for r in POOL if r.label == "B"]
    counts = dict.fromkeys((r.id for r in members), 0)
    for seed in range(7000):
        counts[draw(members, 1, seed)[0].id] += 1
    assert all(abs(count - 1000) < 176 for count in counts.values())


def test_draw_refuses_what_it_cannot_give():
    with pytest.raises(ValueError, match="class 'A' has 5 records; 6 are asked for"):
        draw(POOL, 6, 0)
    with pytest.raises(ValueError, match="per_class is 0"):
        draw(POOL, 0, 0)
    with pytest.raises(ValueError, match="share one id"):
        draw([POOL[0], POOL[0]], 1, 0)
    assert draw([], 3, 0) == []


def test_golden_draw():
    assert [r.id for r in draw(POOL, 2, 7)] == ["r3", "r4", "r7", "r11"]
