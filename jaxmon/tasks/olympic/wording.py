"""Olympic athletes in plain English: one sentence per attribute, the question, the sports as lettered options.

Knows: the words. Does not know: files.
"""

from __future__ import annotations

import string
from collections.abc import Sequence

from jaxmon.records import Attribute, Option, Record
from jaxmon.tasks.olympic.raw import ATTRIBUTES, Athlete

PREAMBLE = "What is known of an athlete at the Olympic Games:"
QUESTION = "In which of these sports did the athlete compete?"

WORDS = {  # values that are not written as the file has them
    "sex": {"F": "female", "M": "male"},
    "season": {"Summer": "Summer", "Winter": "Winter"},
    "city": {
        "Athina": "Athens",
        "Roma": "Rome",
        "Moskva": "Moscow",
        "Torino": "Turin",
        "Antwerpen": "Antwerp",
        "Sankt Moritz": "St. Moritz",
    },
    "medal": {"Gold": "a gold medal", "Silver": "a silver medal", "Bronze": "a bronze medal", "NA": "no medal"},
}
SENTENCES = {
    "sex": "The athlete is {}.",
    "age": "The athlete is {} years old.",
    "height": "The athlete is {} cm tall.",
    "weight": "The athlete weighs {} kg.",
    "country": "The athlete's country is {}.",
    "season": "The Games were {} Games.",
    "city": "The host city was {}.",
    "medal": "The athlete won {}.",
}


def sentence(name: str, value: str) -> str:
    """An attribute's sentence; `name` is one of raw.ATTRIBUTES."""
    return SENTENCES[name].format(WORDS.get(name, {}).get(value, value))


def options(sports: Sequence[str]) -> tuple[Option, ...]:
    """The sports in alphabetical order with the letters A, B, ...; one letter each, so that no code is longer.

    Raises:
      ValueError: more sports than letters.
    """
    if len(sports) > len(string.ascii_uppercase):
        raise ValueError(f"olympic: {len(sports)} sports, at most {len(string.ascii_uppercase)} have a letter")
    return tuple(Option(letter, sport) for letter, sport in zip(string.ascii_uppercase, sorted(sports), strict=False))


def record(athlete: Athlete, menu: tuple[Option, ...]) -> Record:
    """An athlete as a record: the label is the sport, the target y* its letter."""
    known = [n for n in ATTRIBUTES if n in athlete.values]
    return Record(
        id=f"olympic-{athlete.id}",
        label=athlete.sport,
        target=next(o.code for o in menu if o.meaning == athlete.sport),
        preamble=PREAMBLE,
        attributes=tuple(Attribute(n, sentence(n, athlete.values[n]), athlete.values[n]) for n in known),
        question=QUESTION,
        options=menu,
    )


def records(athletes: Sequence[Athlete]) -> list[Record]:
    """Selected athletes as records; the menu is the sports that occur among them."""
    menu = options(sorted({a.sport for a in athletes}))
    return [record(a, menu) for a in athletes]
