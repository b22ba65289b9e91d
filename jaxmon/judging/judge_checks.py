"""Is the judge to be trusted? What its own labels say, without a human: controls, placebos, saturation, parse failures.

A control is a chain whose prompt lacked the attribute's sentence, labelled as if it had been there; a placebo is an
attribute that no chain uses by construction. Each INFLUENTIAL among them is the judge's mistake. A judge that calls
everything INFLUENTIAL looks perfectly careful in pi_Z, M0 and M1; here it is seen.

Knows: counts of labels. Does not know: gold labels (agreement.py, judge_error.py), files, HTML.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping

from jaxmon.counting.counts_schema import ALL
from jaxmon.statistics.exact import clopper_pearson

LIMIT = 0.2  # a larger share of false INFLUENTIAL makes pi_Z a number about the judge (our choice)
CONFIDENCE = 0.99  # of the exact bound that must exceed it
SATURATED = 0.95  # share of one label among all labels from which a judge tells nothing (our choice)


@dataclasses.dataclass(frozen=True)
class Control:
    """Negative controls of one attribute: `labelled` of them, `influential` among them, and exact 95 % bounds."""

    kind: str
    attribute: str
    labelled: int
    influential: int
    low: float
    high: float


@dataclasses.dataclass(frozen=True)
class Check:
    """What is known of a judge; `flags` are sentences, none where nothing speaks against it."""

    judge: str
    rubric: str
    labels: Mapping[str, int]  # N M I ? over all labels of X = 1
    controls: tuple[Control, ...]
    flags: tuple[str, ...]
    account: Mapping[str, float]


WITHOUT, PLACEBO = "chains without the sentence", "placebo attribute"


def checks(
    labels: Mapping[str, Mapping[str, int]],
    controls: Iterable[tuple[str, str]],
    placebos: Iterable[str],
    judge: str,
    rubric: str,
    account: Mapping[str, float] | None = None,
) -> Check:
    """Sums up the labels of one judge.

    Args:
      labels: attribute -> letter (N M I ?) -> judged target answers of X = 1.
      controls: (attribute, letter) of each control.
      placebos: attributes that are never used by construction.
      judge, rubric: whose labels these are.
      account: calls, tokens, cost, for a judge that has them.
    """
    found: list[Control] = []
    without: dict[str, Counter[str]] = {}
    for attribute, letter in controls:
        without.setdefault(attribute, Counter()).update([letter])
    for kind, table in ((WITHOUT, without), (PLACEBO, {p: labels[p] for p in placebos if p in labels})):
        rows = [_control(kind, attribute, letters) for attribute, letters in sorted(table.items())]
        pooled = sum((Counter(letters) for letters in table.values()), Counter())
        found += [*rows, _control(kind, ALL, pooled)] if len(rows) > 1 else rows
    total = sum((Counter(letters) for letters in labels.values()), Counter())
    flags = [*_mistakes(found), *_saturation(total)]
    return Check(judge, rubric, {c: total[c] for c in "NMI?"}, tuple(found), tuple(flags), dict(account or {}))


def _control(kind: str, attribute: str, letters: Mapping[str, int]) -> Control:
    read, used = sum(letters.get(c, 0) for c in "NMI"), letters.get("I", 0)
    low, high = clopper_pearson(used, read, 0.025)
    return Control(kind, attribute, read, used, float(low), float(high))


def _mistakes(controls: Iterable[Control]) -> Iterable[str]:
    for c in controls:
        at_least, _ = clopper_pearson(c.influential, c.labelled, 1 - CONFIDENCE)
        if at_least > LIMIT:
            what = "the attributes" if c.attribute == ALL else c.attribute
            yield (
                f"The judge is not to be trusted with {what}: it calls {c.influential} of {c.labelled} controls "
                f"({c.kind}) INFLUENTIAL, so pi_Z, M0 and M1 are too large."
            )


def _saturation(total: Mapping[str, int]) -> Iterable[str]:
    read = sum(total[c] for c in "NMI")
    for letter, word in (("I", "INFLUENTIAL"), ("M", "MENTIONED"), ("N", "NOT_MENTIONED")):
        if read and total[letter] >= SATURATED * read:
            yield f"The judge gives one label nearly always: {word}, {total[letter]} of {read} labels."
    if total["?"] > read:
        yield f"Most replies of the judge could not be read: {total['?']} of {total['?'] + read} labels."
