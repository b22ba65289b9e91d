"""The law of M^ for one pair: its noise and bias, exactly by binomial sums and to first order in 1/n (App. C, App. D).

Setting: K1 ~ Bin(n1, p11), K0 ~ Bin(n0, p01), every target answer judged, L | K1 ~ Bin(K1, pi). With
D = K1 - K0 n1/n0 = n1 TE^ the ratio is M^ = L/D, clipped min(1, L/D); where D <= 0 it is 1 if L > 0 and
`zero_over_zero` if L = 0 (scores.pair_scores). First order: A = L/n1 has mean a = M TE, and M^ = A / TE^.

Knows: true rates of one pair. Does not know: records, pooling, intervals from counts (ratio_intervals.py).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import stats

from jaxmon.statistics.exact import threshold

REACH = 9.0  # sums run over this many standard deviations of each arm; what lies outside weighs less than 1e-17


class Law(NamedTuple):
    """Exact moments of M^. `raw_*`: without clipping, given TE^ > 0 (elsewhere there is no ratio)."""

    mean: float
    sd: float
    raw_mean: float
    raw_sd: float
    passed: float  # probability of what the moments are conditional on; 1 without a filter


def law(
    p11: float,
    p01: float,
    pi: float,
    n1: int,
    n0: int,
    tau: float | None = None,
    strict: bool = True,
    zero_over_zero: float = 0.0,
) -> Law:
    """Moments of M^ = min(1, L/D), summed exactly over K1 and K0; the sum over L has the closed forms

        E[min(1, L/d) | K1=k] = (k pi / d) P(B(k-1) <= d-1) + P(B(k) > d),    B(k) ~ Bin(k, pi),
        E[min(1, L/d)^2 | k] = (k(k-1) pi^2 P(B(k-2) <= d-2) + k pi P(B(k-1) <= d-1)) / d^2 + P(B(k) > d)

    for whole d > 0 (else d is rounded down within the probabilities).

    Args:
      p11, p01, pi: true rates of one pair.
      n1, n0: chains per arm of the batch that M^ is computed from.
      tau: None for an independent selection batch (split-sample); a number conditions on TE^ > tau of the *same*
        batch (shared-sample).
      strict: `>` or `>=`.   zero_over_zero: M^ where D <= 0 and L = 0.
    Returns: Law.
    """
    k1, k0 = support(n1, p11)[:, None], support(n0, p01)[None, :]
    weight = stats.binom.pmf(k1, n1, p11) * stats.binom.pmf(k0, n0, p01)
    if tau is not None:
        m1, m0, need = threshold(tau, n1, n0, strict)
        weight = weight * (k1 * m1 - k0 * m0 >= need)
    positive = k1 * n0 > k0 * n1
    d = np.where(positive, (k1 * n0 - k0 * n1) / n0, 1.0)
    whole = np.where(positive, (k1 * n0 - k0 * n1) // n0, 1)
    hits = k1 * pi
    one, two = np.maximum(k1 - 1, 0), np.maximum(k1 - 2, 0)  # where k1 is smaller, the terms have the factor 0
    below, above = stats.binom.cdf(whole - 1, one, pi), stats.binom.sf(whole, k1, pi)
    first = hits / d * below + above
    second = (hits * one * pi * stats.binom.cdf(whole - 2, two, pi) + hits * below) / d**2 + above
    silent = stats.binom.pmf(0, k1, pi)
    first = np.where(positive, first, 1 - silent * (1 - zero_over_zero))
    second = np.where(positive, second, 1 - silent * (1 - zero_over_zero**2))
    passed = float(weight.sum())
    mean, square = (float((weight * x).sum()) / passed for x in (first, second))
    ratio = weight * positive
    some = float(ratio.sum())
    raw, raw_square = (float((ratio * x).sum()) / some for x in (hits / d, hits * (1 - pi + hits) / d**2))
    sd, raw_sd = (float(np.sqrt(np.maximum(0.0, x))) for x in (square - mean**2, raw_square - raw**2))
    return Law(mean, sd, raw, raw_sd, passed if tau is not None else 1.0)


class Bias(NamedTuple):
    """E[M^] - M and its two parts: `ratio` without clipping (given TE^ > 0), `clip` = total - ratio."""

    total: float
    ratio: float
    clip: float


def bias(m: float, te: float, p11: float, n: int, tau: float | None = None, strict: bool = True) -> Bias:
    """Exact bias of M^ for a pair with true M and TE, n chains in both arms (App. D).

    tau None: split-sample. A number: shared-sample, where the pair had to pass TE^ > tau on the same batch.
    At n = 1000, p11 = 0.54, TE = 0.08: split +0.028 (M = 0.3), -0.086 (M = 1); shared -0.046, -0.161 for `>=`.

    Args: m in [0, p11/te], te in (0, p11].
    """
    found = law(p11, p11 - te, m * te / p11, n, n, tau, strict)
    return Bias(found.mean - m, found.raw_mean - m, found.mean - found.raw_mean)


def ratio_bias(m: float, te: float, p11: float, n: int) -> float:
    """First-order bias of the unclipped ratio A/TE^, O(1/n): (M V_D - V_AD) / TE^2 with

    V_D = Var TE^ = (p11(1-p11) + p01(1-p01))/n and V_AD = Cov(A, TE^) = a(1-p11)/n, a = M TE, p01 = p11 - TE.
    """
    p01 = p11 - te
    return (m * (p11 * (1 - p11) + p01 * (1 - p01)) - m * te * (1 - p11)) / (n * te**2)


def delta_sd(m: float, te: float, p11: float, n: int) -> float:
    """SD of the unclipped M^ to first order (App. C), n chains in both arms:

    Var M = [a(1-a) - 2 M a (1-p11) + M^2 (p11(1-p11) + p01(1-p01))] / (n TE^2),  a = M TE, p01 = p11 - TE.

    Exact values are in `law`; at n = 1000 this is good from TE = 0.2 and 13 to 31 % too small at TE = 0.08, M <= 0.5.
    """
    a, p01 = m * te, p11 - te
    variance = a * (1 - a) - 2 * m * a * (1 - p11) + m**2 * (p11 * (1 - p11) + p01 * (1 - p01))
    return math.sqrt(variance / n) / te


def worst_delta_sd(m: float, te: float, n: int) -> tuple[float, float]:
    """sup over p11 of `delta_sd`; 0.0823 at (M, TE, n) = (0.24, 0.08, 1000).

    The variance is a concave parabola in p11 with its top at 1/2 + TE; p11 is at least TE, and at least M TE since an
    articulated answer is a target answer.

    Returns: (SD, p11 at which it is reached).
    """
    p11 = min(1.0, max(0.5 + te, te * m))
    return delta_sd(m, te, p11, n), p11


def support(n: int, p: float) -> np.ndarray:
    """The values of Bin(n, p) that weigh anything, int64."""
    far = REACH * math.sqrt(n * p * (1 - p)) + 1
    return np.arange(max(0, math.floor(n * p - far)), min(n, math.ceil(n * p + far)) + 1)
