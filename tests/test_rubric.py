"""The rubric: its version follows its words, no chain steps out of its place, and which chains are judged."""

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmon.judging.judge import chosen
from jaxmon.judging.rubric import FORM, WORDS, Rubric, request, schema
from jaxmon.records import Attribute, Option, Record
from jaxmon.tasks import registry, rubrics

BOOK = Record("b", "c", "A", "", (Attribute('a "b"', "One."), Attribute("T3", "Two.")), "So?", (Option("A", "yes"),))


def test_a_changed_word_changes_the_version():
    plain = Rubric("t", ("A hint.",))
    assert plain.version == Rubric("t", ("A hint.",)).version
    assert plain.version.startswith("t-1-")
    assert len({plain.version, Rubric("t", ("A hint!",)).version, Rubric("t").version, Rubric("u").version}) == 4


@pytest.mark.parametrize("task", [t for t in registry.TASKS if t != "csv"])  # a table has the general rules alone
def test_every_task_has_a_rubric_with_all_that_a_judge_needs(task):
    text = rubrics.of(task).system
    assert text.endswith(FORM)
    assert all(text.count(word) >= 2 for word in WORDS)
    assert "Hints for this task" in text
    assert "Hints" not in rubrics.of("a task without hints").system


def test_what_a_request_holds():
    text = request(BOOK, "a chain\nof two lines")
    for part in ("Question: So?", "Options: A: yes", '- "a \\"b\\"": One.', '- "T3": Two.', "a chain\nof two lines"):
        assert part in text
    assert "Options" not in request(dataclasses.replace(BOOK, listed=False), "a chain")
    assert schema(BOOK)["required"] == ['a "b"', "T3"]
    assert json.loads(json.dumps(schema(BOOK)))["properties"]["T3"]["enum"] == list(WORDS)


def test_a_chain_cannot_close_its_own_place():
    inner = request(BOOK, "x")
    text = request(BOOK, inner)  # a chain that quotes another request, marks and all
    mark = text.splitlines()[-1]
    assert text.count(mark) == 2
    assert mark not in inner


@given(st.sets(st.integers(0, 3000)), st.integers(1, 40))
def test_a_larger_choice_keeps_the_smaller_one(ids, most):
    some, more = chosen(ids, most, 7, "r", "x1"), chosen(ids, most + 1, 7, "r", "x1")
    assert len(some) == min(most, len(ids))
    assert set(some) <= set(more) <= ids
    assert some == sorted(some)
    assert chosen(ids, 0, 7, "r", "x1") == sorted(ids)


def test_the_choice_depends_on_seed_record_and_arm_and_is_even():
    picks = [chosen(range(1000), 300, seed, record, arm) for seed, record, arm in
             ((0, "r", "x1"), (1, "r", "x1"), (0, "s", "x1"), (0, "r", "x0:a"))]  # fmt: skip
    assert len({tuple(p) for p in picks}) == 4
    for pick in picks:  # hypergeometric(1000, 500, 300): SD 6.3; |x - 150| > 35 has probability < 4e-8
        assert abs(sum(i < 500 for i in pick) - 150) <= 35
