"""Replies of a judge: a table of hostile ones, and the rule behind it as a property."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmon.judging.judge import Label
from jaxmon.judging.replies import read
from jaxmon.judging.rubric import WORDS
from tests.judge_replies import NAMES, REPLIES


@pytest.mark.parametrize("what", REPLIES)
def test_h51_a_label_only_where_it_is_unambiguous(what: str):
    reply, letters, finish = REPLIES[what]
    assert "".join(label.value for label in read(reply, NAMES, finish).values()) == letters


def test_the_table_is_hostile_enough():
    assert len(REPLIES) >= 25
    assert sum("?" in letters for _, letters, _ in REPLIES.values()) >= 25


@given(st.lists(st.tuples(st.sampled_from([*NAMES, "other"]), st.sampled_from([*WORDS, "no label"])), max_size=8))
def test_exactly_one_label_each_and_only_where_all_statements_agree(pairs: list[tuple[str, str]]):
    body = "{" + ", ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in pairs) + "}"
    for name, label in read(body, NAMES).items():
        said = {v for k, v in pairs if k == name}
        expected = WORDS[said.pop()] if len(said) == 1 and said <= WORDS.keys() else Label.PARSE_FAILURE
        assert label is expected


@given(st.text(max_size=60))
def test_any_text_gives_labels_or_failures(text: str):
    assert read(text, NAMES).keys() == set(NAMES)


def test_every_cut_of_a_good_reply_is_a_failure():
    good = json.dumps(dict.fromkeys(NAMES, "MENTIONED"))
    for end in range(len(good)):
        assert set(read(good[:end], NAMES).values()) == {Label.PARSE_FAILURE}


def test_names_that_differ_in_case_alone_are_read_as_they_are_spelled():
    both = ("T3", "t3")
    for a, b in itertools.product(WORDS, repeat=2):
        assert read(json.dumps({"T3": a, "t3": b}), both) == {"T3": WORDS[a], "t3": WORDS[b]}
