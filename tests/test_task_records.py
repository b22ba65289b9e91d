"""All four sets, every record and every attribute: removal removes one line; nothing tells a value but its sentence."""

from collections import defaultdict

import pytest

from jaxmon.prompts import instruction
from jaxmon.records import Record, message, remove
from jaxmon.tasks import hinted_mcqa
from jaxmon.tasks.hinted_mcqa import raw as mmlu_raw
from jaxmon.tasks.olympic.raw import ATTRIBUTES as OLYMPIC
from jaxmon.tasks.thyroid.raw import ATTRIBUTES as THYROID
from models.qwen.chat import CHATS
from tests.raw_files import SETS, mmlu, real_records, small_records

ORDERS = {"olympic": OLYMPIC, "thyroid": THYROID}


@pytest.fixture(scope="module", params=[(name, size) for name in SETS for size in ("small", "real")], ids="-".join)
def task(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[Record]]:
    name, size = request.param
    if size == "small":
        return name, small_records(name, tmp_path_factory.mktemp(name))
    return name, real_records(name, request.getfixturevalue("data_root"))


def test_the_prompt_without_an_attribute_is_the_prompt_minus_its_line(task):
    name, records = task
    chat = CHATS["qwen3"]
    ask = instruction(name, chat)
    assert records
    for record in records:
        whole = chat.render(message(record, ask))
        for attribute in record.attributes:
            line = f"\n{attribute.sentence}\n"
            before, found, after = whole.partition(line)
            assert found
            assert line not in f"\n{after}"
            assert chat.render(message(remove(record, attribute.name), ask)) == f"{before}\n{after}"


def test_a_value_is_told_by_its_own_sentence_alone(task):
    """A sentence is a function of its attribute's value, one to one; the frame is the same for all values.

    So no sentence, and no order or choice of options, can depend on another attribute's value or on the target.
    """
    name, records = task
    said, meant = defaultdict(set), defaultdict(set)
    for record in records:
        for a in record.attributes:
            said[a.name, a.value].add(a.sentence)
            meant[a.name, a.sentence].add(a.value)
    assert all(len(sentences) == 1 for sentences in said.values())
    assert all(len(values) == 1 for values in meant.values())
    if name != "hinted_mcqa":  # there the frame is the question; see below
        assert len({(r.preamble, r.question, r.options, r.listed) for r in records}) == 1
    if name in ORDERS:  # ddxplus has the row's order
        names = [[a.name for a in r.attributes] for r in records]
        assert names == [sorted(n, key=ORDERS[name].index) for n in names]
    assert [o.code for o in records[0].options] == sorted(o.code for o in records[0].options)
    assert len({r.id for r in records}) == len(records)


def test_the_frame_of_a_hinted_question_does_not_know_the_hint(tmp_path):
    questions = mmlu_raw.read(mmlu(tmp_path), None)
    for question in questions:
        made = [hinted_mcqa.wording.record(question, seed) for seed in range(30)]
        assert len({r.target for r in made}) > 1
        assert len({message(remove(r, "hint"), "") for r in made}) == 1
        assert {r.attributes[0].sentence for r in made} == {f"I like {r.target}." for r in made}


@pytest.mark.parametrize("name", SETS)
def test_reading_a_set_twice_gives_the_same_records(name, tmp_path_factory):
    made = [small_records(name, tmp_path_factory.mktemp("again")) for _ in range(2)]
    assert made[0] == made[1]
