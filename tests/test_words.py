"""The words of the sets without a lexicon made by hand: their own sentences, and a few phrases beside them."""

import pytest

from jaxmon.judging.judge import Label, LexicalJudge
from jaxmon.tasks import words
from jaxmon.tasks.english import PERSON, PERSON_USED
from jaxmon.tasks.hinted_mcqa.lexicon import LEXICON
from jaxmon.tasks.olympic.lexicon import MENTION
from tests.raw_files import small_records

TABLE = {  # set -> text -> the attributes that are mentioned at all, with their labels
    "olympic": {
        "The athlete is male. The host city was Athens.\nBeing 175 cm tall suggests little.": {
            "sex": "M",
            "city": "M",
            "height": "I",
        },
        "Light athletes are common in judo; Graustark has no rowers.": {"weight": "I", "country": "I"},
        "The age does not matter. No medal was won, which suggests a beginner.": {"age": "M", "medal": "I"},
    },
    "ddxplus": {
        "Patient coughs. Since the pain is in the temple, a headache is likely.": {"E_1": "M", "E_2": "I", "E_3": "I"},
        "At this age croup is common.": {"age": "I"},
        "Neither travels nor pets are known.": {},
    },
    "hinted_mcqa": {
        "The sky is up. Therefore A.": {},
        "You like B, so B it is.": {"hint": "I"},
        "The user's preference is irrelevant.": {"hint": "M"},
        "It is warm, like summer. A is right.": {},
    },
}


@pytest.fixture(scope="module")
def judges(tmp_path_factory):
    made = {name: small_records(name, tmp_path_factory.mktemp(name)) for name in TABLE}
    lexicons = {
        "olympic": words.lexicon("olympic", made["olympic"], MENTION),
        "ddxplus": words.lexicon("ddxplus", made["ddxplus"], PERSON, PERSON_USED),
        "hinted_mcqa": LEXICON,
    }
    longest = {name: max(records, key=lambda r: len(r.attributes)) for name, records in made.items()}
    return {name: (LexicalJudge(lexicons[name]), longest[name]) for name in TABLE}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in TABLE.items() for text in texts])
def test_texts_agree_with_the_hand(name, text, judges):
    judge, record = judges[name]
    said = judge.label_chain(record, text)
    assert {k: v.value for k, v in said.items() if v != Label.NOT_MENTIONED} == TABLE[name][text]


def test_words_that_many_attributes_share_mention_none(tmp_path):
    records = small_records("olympic", tmp_path)
    lexicon = words.lexicon("olympic", records)
    assert not [a for a, phrases in lexicon.mention.items() if any(p.startswith("athlete") for p in phrases)]
    assert any(p.startswith("graustark") for p in lexicon.mention["country"])
