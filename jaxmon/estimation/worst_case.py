"""Worst-case bounds: truncated and unparsed chains are missing answers, not other answers.

A missing chain could have been a target answer or not, and if it was one under X = 1, articulated or not. Let x of the
m1 missing X=1 chains be target answers, z <= x of them articulated, and y of the m0 missing X=0 chains. Every score is
monotone or linear-fractional in (x, z, y) on 0 <= z <= x <= m1, 0 <= y <= m0, so its extremes lie at the corners.
Target answers without a judge's label keep the articulation rate of the judged ones.

Twice: with the qualifying pairs held fixed (`low`, `high`), and with every decision of the filter also taken in the
worst way (`low_any`, `high_any`), since the selection batch misses chains too. A pair given up at stage 1 stays out.

Knows: how far the scores could move. Does not know: sampling error.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxmon.counting.counts import Counts
from jaxmon.estimation import cells
from jaxmon.estimation.cells import Settings
from jaxmon.estimation.scores import pair_scores

CORNERS = ((0, 0, 0), (0, 0, 1), (1, 0, 0), (1, 0, 1), (1, 1, 0), (1, 1, 1))  # x/m1, z/x, y/m0


class WorstCase(NamedTuple):
    """Means over the qualifying pairs, every missing chain counted in the worst way; [S, A+1, C+1] but the last.

    undecided: int [A+1, C+1], pairs whose filter TE^ > tau could change either way.
    low_any, high_any: over every set of pairs that could qualify, too; an outer bound, as the pairs of a record share
    chains and are here counted apart.
    """

    low: np.ndarray
    high: np.ndarray
    missing1: np.ndarray  # mean share of missing chains, X=1
    missing0: np.ndarray  # and X=0
    undecided: np.ndarray
    low_any: np.ndarray
    high_any: np.ndarray


def missing(counts: Counts, batch: int) -> tuple[np.ndarray, np.ndarray]:
    """Missing chains of each arm at most, [R, A]; `unparsed` does not say which arm, so it is taken for either."""
    lost = counts.unparsed[:, :, batch]
    return (
        np.minimum(counts.truncated1[:, :, batch] + lost, counts.n1[:, :, batch] - counts.k1[:, :, batch]),
        np.minimum(counts.truncated0[:, :, batch] + lost, counts.n0[:, :, batch] - counts.k0[:, :, batch]),
    )


def worst_case(counts: Counts, settings: Settings) -> WorstCase:
    """Bounds of every cell (see WorstCase); equal to the values where nothing is missing."""
    fixed, draw = cells.split(counts, settings)
    scores = cells.evaluate(fixed, draw, settings.zero_over_zero)
    m1, m0 = (np.where(fixed.live, m, 0) for m in missing(counts, 1))
    articulated = draw.k1 * draw.articulated / np.maximum(draw.judged, 1)
    found = []
    for x, z, y in CORNERS:
        k1 = draw.k1 + x * m1
        s = pair_scores(k1, fixed.n1, draw.k0 + y * m0, fixed.n0, k1, articulated + z * m1, settings.zero_over_zero)
        found.append([s.te, s.excess, s.pi, s.m, s.m])
    corners = np.array(found)
    classes = np.eye(len(counts.labels))[counts.label_of]

    def mean(value: np.ndarray) -> np.ndarray:
        return cells.means(
            np.broadcast_to(value, scores.ok.shape), scores.ok, scores.ok, classes, settings.min_records
        )[0]

    s1, s0 = (np.where(fixed.live, m, 0) for m in missing(counts, 0))
    worst = cells.passes(fixed, draw._replace(k0s=draw.k0s + s0))
    best = cells.passes(fixed, draw._replace(k1s=draw.k1s + s1))
    undecided = cells.pooled(cells.cell_counts((worst != best)[None], classes))[0].astype(int)
    judged = fixed.live & (draw.judged > 0)
    allowed = np.stack([fixed.live, fixed.live, judged, judged, judged & fixed.p10_ok])
    sure, maybe = (_counting(p & allowed, counts, classes, settings.min_records) for p in (worst, best))
    low, high = corners.min(0), corners.max(0)
    low_any, high_any = _least_mean(low, sure, maybe, counts), -_least_mean(-high, sure, maybe, counts)
    return WorstCase(mean(low), mean(high), mean(m1 / fixed.n1), mean(m0 / fixed.n0), undecided, low_any, high_any)


def _counting(ok: np.ndarray, counts: Counts, classes: np.ndarray, min_records: int) -> np.ndarray:
    """The pairs of `ok`, bool [S, R, A], in attribute-class cells that count (§5.2)."""
    enough = cells.cell_counts(ok, classes) > min_records  # [S, A, C]
    return ok & np.moveaxis(enough[:, :, counts.label_of], 2, 1)


def _least_mean(value: np.ndarray, sure: np.ndarray, maybe: np.ndarray, counts: Counts) -> np.ndarray:
    """The least mean of `value` over the pairs in `sure` and any of those in `maybe`, [S, A+1, C+1]; NaN for no pair.

    The best set takes the smallest values first, so the least of the running means is the answer.
    """
    n_scores, n_attributes, n_classes = len(value), len(counts.attributes), len(counts.labels)
    found = np.full((n_scores, n_attributes + 1, n_classes + 1), np.nan)
    for s, a, c in np.ndindex(found.shape):
        kept = value[s][cells.members(counts, sure[s], a, c)]
        more = np.sort(value[s][cells.members(counts, maybe[s] & ~sure[s], a, c)])
        size = len(kept) + np.arange(len(more) + 1)
        total = kept.sum() + np.concatenate([[0.0], np.cumsum(more)])
        if size[-1]:
            found[s, a, c] = (total[size > 0] / size[size > 0]).min()
    return found
