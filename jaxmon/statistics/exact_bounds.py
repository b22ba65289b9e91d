"""Exact, conservative bounds on the mean of a score over given pairs, for where a bootstrap has no width (L = 0).

What the bounds cover: the mean of the *true* scores over exactly these pairs (chosen on the selection batch, which is
independent of the counts used here), whatever their true values: no record is assumed to be like another. They do not
carry the sampling of records from a class.
Assumed: chains are independent draws; which target answers the judge labelled does not depend on the label; the
pairs are of different records (attributes of one record share chains: combine those by `combine`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats

from jaxmon.statistics.exact import clopper_pearson


def mean_ratio_upper(articulated: np.ndarray, judged: np.ndarray, floor: np.ndarray, alpha: float) -> float:
    """Upper bound on mean_r min(1, pi_r / f_r) for known floors f_r <= the true denominators (f = 1 gives mean pi_Z).

    With S = sum of L over a group G of pairs and T = sum of J, the pooled Clopper-Pearson limit u of (S, T) bounds
    the J-weighted mean of pi_r without homogeneity: for S = 0, prod (1 - pi_r)^{J_r} <= (1 - pi_bar)^T by concavity
    of log(1 - x); for S > 0 by Hoeffding (1956, Ann. Math. Stat. 27, Theorem 4), P(sum <= S) <= P(Bin(T, pi_bar) <= S)
    where S <= T pi_bar - 1. Then sum_G pi_r / f_r <= max_G 1/(f_r J_r) * T u. Pairs outside G count as 1. G is the
    group that is best if every L were 0, so it depends on J and f only.

    Args:
      articulated, judged: L and J, int [N], J >= 1.
      floor: [N], f_r in [0, 1].
      alpha: one-sided error probability.
    Returns: the bound, in [0, 1].
    """
    weight = floor * judged
    order = np.argsort(-weight)
    weight, hits, j = weight[order], articulated[order], judged[order]
    n = len(order)

    def bound(size: int, successes: int) -> float:
        if size == 0 or weight[size - 1] <= 0:
            return 1.0
        total = int(j[:size].sum())
        if successes == 0:
            upper = -np.expm1(np.log(alpha) / total)
        else:
            upper = float(stats.beta.isf(alpha, successes + 1, total - successes)) if successes < total else 1.0
            upper = upper if successes <= total * upper - 1 else 1.0
        return float(min(size, total * upper / weight[size - 1]) + n - size) / n

    best = min(range(n + 1), key=lambda size: bound(size, 0))
    return bound(best, int(hits[:best].sum()))


def m_bounds(
    k1: np.ndarray,
    n1: np.ndarray,
    k0: np.ndarray,
    n0: np.ndarray,
    judged: np.ndarray,
    articulated: np.ndarray,
    alpha: float,
) -> tuple[float, float]:
    """Exact bounds on the mean of M = min(1, pi_Z / R) over pairs of different records, each side wrong at most alpha.

    high: half of alpha for pi_Z (`mean_ratio_upper`), half spread over the 2N Clopper-Pearson limits in
        R_r >= 1 - p01_r,high / p11_r,low (Bonferroni).
    low: mean of pi_r,low / R_r,high, with alpha spread over all 3N limits.

    Args: counts of the estimation batch, int [N], N >= 1; n1, n0, judged >= 1.
    Returns: (low, high) in [0, 1].
    """
    n = len(k1)
    p11_low, _ = clopper_pearson(k1, n1, alpha / (4 * n))
    _, p01_high = clopper_pearson(k0, n0, alpha / (4 * n))
    r_low = np.where(p11_low > p01_high, 1 - p01_high / np.where(p11_low > 0, p11_low, 1), 0.0)
    high = mean_ratio_upper(articulated, judged, r_low, alpha / 2)

    pi_low, _ = clopper_pearson(articulated, judged, alpha / (3 * n))
    _, p11_high = clopper_pearson(k1, n1, alpha / (3 * n))
    p01_low, _ = clopper_pearson(k0, n0, alpha / (3 * n))
    r_high = np.clip(1 - p01_low / p11_high, 0, 1)
    low = np.where(r_high > 0, np.minimum(1, pi_low / np.where(r_high > 0, r_high, 1)), 1.0)
    return float(low.mean()), high


def pi_bounds(judged: np.ndarray, articulated: np.ndarray, alpha: float) -> tuple[float, float]:
    """Exact bounds on the mean of pi_Z over pairs of different records; arguments and returns as `m_bounds`."""
    low, _ = clopper_pearson(articulated, judged, alpha / len(judged))
    return float(low.mean()), mean_ratio_upper(articulated, judged, np.ones(len(judged)), alpha)


def effect_bounds(
    k1: np.ndarray, n1: np.ndarray, k0: np.ndarray, n0: np.ndarray, alpha: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Exact bounds on the means of TE and of R over pairs, alpha spread over the 2N limits of each side.

    Returns: ((TE low, TE high), (R low, R high)).
    """
    each = alpha / (2 * len(k1))
    p11_low, p11_high = clopper_pearson(k1, n1, each)
    p01_low, p01_high = clopper_pearson(k0, n0, each)
    r_low = np.maximum(0, 1 - p01_high / np.where(p11_low > 0, p11_low, 1)) * (p11_low > 0)
    r_high = np.maximum(0, 1 - p01_low / p11_high)
    return (
        (float((p11_low - p01_high).mean()), float((p11_high - p01_low).mean())),
        (float(r_low.mean()), float(r_high.mean())),
    )


def combine(bounds: Sequence[tuple[float, float]], sizes: Sequence[int]) -> tuple[float, float]:
    """The mean over groups weighted by their sizes; the error probabilities of the groups add up (Bonferroni)."""
    low, high = np.average(np.array(bounds, float), axis=0, weights=np.array(sizes, float))
    return float(low), float(high)
