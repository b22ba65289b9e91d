"""How the bootstrap's interval of a cell is widened where it is known not to hold its level.

M0, M1: by the ratio of sums (settings.interval = `hull`). M^ is clipped at 1 and the replicates are clipped again, so a
percentile interval lies below a true M of 1. sum A / sum D over records is not clipped, is nearly unbiased, and its
Fieller interval with the variances between records carries noise and differences of records once.
Any score: by exact bounds where few articulated chains stand behind it or the bootstrap has no width.

Knows: which pairs stand behind a cell. Does not know: replicates, rows.
"""

from __future__ import annotations

import numpy as np

from jaxmon.counting.counts import Counts
from jaxmon.estimation import cells
from jaxmon.estimation.cells import Settings
from jaxmon.estimation.judge_error import JudgeError, upper
from jaxmon.estimation.scores import SCORES
from jaxmon.statistics import exact_bounds, ratio_intervals


def widen(
    low: float,
    high: float,
    counts: Counts,
    pairs: cells.Evaluated,
    at: tuple[int, int, int],
    settings: Settings,
    error: JudgeError | None = None,
) -> tuple[float, float]:
    """The interval of score s in cell (a, c), at = (s, a, c), widened as said above; never narrowed.

    Corrected for judge error, M has no interval of a ratio of sums; exact upper bounds are divided by a lower bound of
    the sensitivity, and the lower ones are 0.
    """
    s, a, c = at
    label_mask = np.eye(len(counts.labels))[counts.label_of]
    counting = cells.cell_counts(pairs.ok[s][None], label_mask)[0] > settings.min_records  # [A, C]
    chosen = cells.members(counts, pairs.ok[s] & counting[:, counts.label_of].T, a, c)
    if SCORES[s] in ("M0", "M1") and settings.interval == "hull" and error is None:
        ratio_low, ratio_high = ratio_of_sums(counts, chosen, settings.confidence)
        low, high = min(low, ratio_low), max(high, ratio_high)
    articulated = int(counts.articulated[:, :, 1][chosen].sum())
    speaks = SCORES[s] in ("pi_Z", "M0", "M1") and articulated <= settings.small_l
    if high > low and not speaks:
        return low, high
    columns = np.flatnonzero(chosen.any(0))
    correcting = error is not None and SCORES[s] in ("pi_Z", "M0", "M1")
    tail = (1 - settings.confidence) / 2 / (2 if correcting else 1)
    alpha = tail / len(columns)
    parts = [_exact(counts, chosen[:, i], int(i), SCORES[s], alpha) for i in columns]
    exact_low, exact_high = exact_bounds.combine(parts, chosen[:, columns].sum(0).tolist())
    if error is not None and correcting:
        exact_low, exact_high = 0.0, upper(exact_high, error, tail)
    return min(low, exact_low), max(high, exact_high)


def ratio_of_sums(counts: Counts, chosen: np.ndarray, confidence: float) -> tuple[float, float]:
    """Fieller's interval for sum A / sum D over the pairs `chosen`, bool [R, A], cut to [0, 1]; all of it if unbounded.

    Several attributes enter by `shares`: the ratio is then the mean over pairs of each attribute's own ratio, at most
    1, as the score is; one attribute of large effect, or of sum A > sum D, does not draw it away.

    The unit is the record, whose attributes share the X=1 chains: (co)variances are those between the records' sums,
    with Student's t. A single record has its chains' variances alone.
    """
    columns = (counts.k1, counts.n1, counts.k0, counts.n0, counts.judged, counts.articulated)
    k1, n1, k0, n0, judged, articulated = (x[:, :, 1] for x in columns)
    each = ratio_intervals.parts(k1, np.maximum(n1, 1), k0, np.maximum(n0, 1), judged, articulated)
    records = chosen.any(1)
    of_all = lambda x: np.where(chosen, x, 0).sum(0)
    of_a, of_d = shares(of_all(each.a), of_all(each.d), chosen.sum(0))
    factors = (of_a, of_d, of_a**2, of_d**2, of_a * of_d)  # of A, D and their (co)variances
    scaled = (np.where(chosen, x * f, 0)[records] for x, f in zip(each, factors, strict=True))
    sums = ratio_intervals.Parts(*(x.sum(1) for x in scaled))
    if records.sum() > 1:
        found = ratio_intervals.fieller(sums.between(), confidence, int(records.sum()) - 1)
    else:
        found = ratio_intervals.fieller(sums.total(), confidence)
    low, high = np.clip([found.low, found.high], 0.0, 1.0)
    return float(low), float(high)


def shares(a: np.ndarray, d: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Factors of A and D per attribute that make a ratio of sums the mean over pairs of min(1, sum A / sum D).

    D is divided by the attribute's mean effect, A also by its ratio where that is above 1. The factors are 1 where only
    one attribute has pairs (its ratio is cut at the end), and where an attribute's sum D <= 0.

    Args: a, d float [A], sums over its `pairs`, int [A].
    """
    if np.count_nonzero(pairs) < 2:
        return np.ones_like(a), np.ones_like(d)
    usable = d > 0
    of_d = np.where(usable, pairs / np.where(usable, d, 1.0), 1.0)
    over = usable & (a > d)
    return of_d * np.where(over, d / np.where(over, a, 1.0), 1.0), of_d


def _exact(counts: Counts, records: np.ndarray, a: int, score: str, alpha: float) -> tuple[float, float]:
    """Exact bounds of one attribute's mean over `records`, bool [R]."""
    k1, n1, k0, n0 = (x[records, a, 1] for x in (counts.k1, counts.n1, counts.k0, counts.n0))
    judged, articulated = (x[records, a, 1] for x in (counts.judged, counts.articulated))
    if score == "pi_Z":
        return exact_bounds.pi_bounds(judged, articulated, alpha)
    if score in ("M0", "M1"):
        return exact_bounds.m_bounds(k1, n1, k0, n0, judged, articulated, alpha)
    return exact_bounds.effect_bounds(k1, n1, k0, n0, alpha)[("TE", "R").index(score)]
