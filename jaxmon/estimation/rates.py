"""What models answer with and without a chain of thought: target rate, accuracy, recall, precision, p10 (SPEC §13).

Without a chain (T = 0) a record has one law over its options; its prediction is the likeliest option. With chains (T =
1) every chain that states an option is a prediction. Chains without an answer count as none of the options, and `most`
says how large a rate could be had they all answered that way.

Intervals are clustered by record: the chains of a record are one observation of it. A ratio's variance over records
(linearised) gives the number of independent answers that would vary as much, and that number an exact binomial
interval (Korn and Graubard 1998, Survey Methodology 24), so that 0 of 20 has a width.

Knows: answers per record. Does not know: files, models, figures.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from scipy import stats

from jaxmon.counting.counts_schema import ALL
from jaxmon.statistics.exact import clopper_pearson

NO_COT, COT = "no CoT", "CoT"
TARGET, ACCURACY, RECALL, PRECISION, BELOW = "target", "accuracy", "recall", "precision", "p10 below"
FEWEST = 3  # predictions a precision needs (Fig. 11 shows "?" below)
P10_BELOW = 0.01  # §3


@dataclasses.dataclass(frozen=True)
class Answers:
    """How one record was answered.

    Attributes:
      right, target: the code of the right answer, and of the answer under study.
      law: code -> P(code | the options) without a chain, in the order of the options.
      chains: code -> chains that answered it.
      drawn: chains, 0 where none were drawn.
    """

    record: str
    right: str
    target: str
    law: Mapping[str, float]
    chains: Mapping[str, int] = dataclasses.field(default_factory=dict)
    drawn: int = 0

    @property
    def p10(self) -> float:
        return self.law[self.target]

    @property
    def predicted(self) -> str:
        """The likeliest option without a chain; the first of equals."""
        return max(self.law, key=self.law.__getitem__)


@dataclasses.dataclass(frozen=True)
class Rate:
    """One measured rate.

    Attributes:
      arm: NO_COT or COT.
      measure: TARGET, ACCURACY, RECALL, PRECISION or BELOW (share of records with p10 below the limit).
      label: the class (a right answer's code), or ALL.
      value, low, high: None where `note` says why.
      most: the rate if all chains without an answer had given this one.
      records, predictions: how many stand behind it.
    """

    arm: str
    measure: str
    label: str
    value: float | None
    low: float | None
    high: float | None
    most: float | None
    records: int
    predictions: int
    note: str = ""


def clustered(
    hits: np.ndarray, of: np.ndarray, predictions: float, confidence: float = 0.95
) -> tuple[float, float, float]:
    """A ratio sum(hits) / sum(of) over records, with its interval.

    The variance over R records of the linearised ratio, sum((hits - p of)^2) R / ((R - 1) sum(of)^2), stands for
    n = p (1 - p) / variance independent answers, reduced by (t_{N-1} / t_{R-1})^2 for its own error and at most N =
    `predictions`; where it is 0 or cannot be estimated, every record with of > 0 counts as one answer.

    Args:
      hits, of: float [R], 0 <= hits <= of, and not all of `of` 0.
      predictions: answers in all, N.
      confidence: of the two-sided interval.

    Returns: (value, low, high).
    """
    hits, of = np.asarray(hits, float), np.asarray(of, float)
    value, records = float(hits.sum() / of.sum()), len(of)
    seen, effective = float((of > 0).sum()), 0.0
    if records > 1:
        variance = float(((hits - value * of) ** 2).sum()) * records / ((records - 1) * float(of.sum()) ** 2)
        if variance > 0 and 0 < value < 1:
            tail = (1 + confidence) / 2
            shrink = (stats.t.ppf(tail, max(predictions - 1, 1)) / stats.t.ppf(tail, records - 1)) ** 2
            effective = min(value * (1 - value) / variance * shrink, predictions)
    n = effective or seen
    low, high = clopper_pearson(np.array([value * n]), np.array([n]), (1 - confidence) / 2)
    return value, float(low[0]), float(high[0])


def rates(answers: Sequence[Answers], below: float = P10_BELOW, confidence: float = 0.95) -> list[Rate]:
    """Every rate of both arms, all classes together and each class; the arm COT where chains were drawn."""
    found = [_measure(answers, NO_COT, BELOW, ALL, lambda a: float(a.p10 < below), None, confidence)]
    for arm, target, share in ((NO_COT, _p10, _law), (COT, _targets, _chains)):
        known = [a for a in answers if arm == NO_COT or a.drawn]
        if not known:
            continue
        found.append(_measure(known, arm, TARGET, ALL, target, None, confidence))
        found.append(_measure(known, arm, ACCURACY, ALL, functools.partial(_accurate, share=share), None, confidence))
        for label in sorted({a.right for a in answers}):
            members = [a for a in known if a.right == label]
            hit = functools.partial(share, code=label)
            right = functools.partial(_right, share=share, code=label)
            found.append(_measure(members, arm, RECALL, label, hit, None, confidence))
            found.append(_measure(known, arm, PRECISION, label, right, hit, confidence))
    return found


def _p10(a: Answers) -> float:
    return a.p10


def _targets(a: Answers) -> float:
    return _chains(a, a.target)


def _accurate(a: Answers, share: Callable[[Answers, str], float]) -> float:
    return share(a, a.right)


def _right(a: Answers, share: Callable[[Answers, str], float], code: str) -> float:
    return share(a, code) * (a.right == code)


def _law(a: Answers, code: str) -> float:
    return float(a.predicted == code)


def _chains(a: Answers, code: str) -> float:
    return a.chains.get(code, 0) / a.drawn


Of = Callable[[Answers], float]


def _measure(
    known: Sequence[Answers], arm: str, measure: str, label: str, hit: Of, of: Of | None, confidence: float
) -> Rate:
    """One rate; `of` None: of all that was asked, else of the predictions it counts."""
    each = [a.drawn if arm == COT else 1 for a in known]  # predictions a record can make
    hits = np.array([hit(a) for a in known])
    total = np.array([of(a) if of else 1.0 for a in known])
    predictions = round(float((total * each).sum()))
    if of and predictions < FEWEST:
        return Rate(arm, measure, label, None, None, None, None, len(known), predictions, "too few predictions")
    if not known:
        return Rate(arm, measure, label, None, None, None, None, 0, 0, "no records")
    value, low, high = clustered(hits, total, predictions, confidence)
    missing = np.mean([1 - sum(a.chains.values()) / a.drawn for a in known]) if arm == COT and not of else 0.0
    most = None if of and arm == COT else min(1.0, value + float(missing))
    return Rate(arm, measure, label, value, low, high, most, len(known), predictions)


def histogram(p10: Sequence[float], edges: Sequence[float]) -> list[int]:
    """How many p10 lie in each [edge, next edge); the first bin also takes what is below, the last what is above."""
    places = np.clip(np.searchsorted(edges, np.asarray(p10, float), side="right") - 1, 0, len(edges) - 2)
    return np.bincount(places, minlength=len(edges) - 1).tolist()
