"""A lexicon made from a task's own sentences, for tasks whose words nobody has collected by hand.

An attribute is mentioned by the content words of its sentences that few other attributes share. It is a stand-in with
limits beyond those of `jaxmon.judging.judge`: synonyms, adjectives of names ("Polish") and pronouns are missed, and a
word that serves the question or an option is no mention.

Knows: words of sentences. Does not know: any one task.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from jaxmon.judging.judge import Lexicon, Phrases
from jaxmon.records import Record
from jaxmon.tasks.english import ASIDE, CLAUSE, WEIGH

SHARED = 2  # attributes that may share a word of mention
_WORD = re.compile(r"[^\W\d_]{3,}")
_EMPTY = frozenset(
    _WORD.findall(
        "about after all also and any are been before being but can did does doing down each ever few for from had "
        "has have having her here him his how into its itself just less more most much nor not now off once only "
        "other our out over own than that the their them then there these they this those through too under until "
        "very was were what when where which while who whom why will with within yes you your patient person feel "
        "feeling felt like"
    )
)


def content(text: str) -> set[str]:
    """The words of a text that carry meaning, in lower case."""
    return {w for w in _WORD.findall(text.lower()) if w not in _EMPTY}


def lexicon(
    name: str,
    records: Sequence[Record],
    mention: Mapping[str, Phrases] | None = None,
    used: Mapping[str, Phrases] | None = None,
) -> Lexicon:
    """The lexicon of all attributes that the records have.

    Args:
      name: names the judge.
      records: the task's records.
      mention: phrases that mention an attribute beside the words of its sentences.
      used: as Lexicon.used.
    """
    found: defaultdict[str, set[str]] = defaultdict(set)
    for record in records:
        for a in record.attributes:
            found[a.name] |= content(f"{a.sentence} {a.name.replace('_', ' ')}")
    frame = set().union(*(content(f"{r.question} {' '.join(o.meaning for o in r.options)}") for r in records))
    sharing = Counter(w for words in found.values() for w in words)
    phrases = {}
    for attribute, words in found.items():
        own = {w for w in words if sharing[w] <= SHARED and w not in frame} or words
        phrases[attribute] = (*(mention or {}).get(attribute, ()), *(_inflected(w) for w in sorted(own)))
    return Lexicon(name, phrases, used or {}, {}, WEIGH, ASIDE, CLAUSE)


def _inflected(word: str) -> str:
    return rf"{re.escape(word)}(?:s|es|ed|ing|ly)?"
