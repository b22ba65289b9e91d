"""Exact binomials: the filter on whole numbers, Clopper-Pearson, SD(TE^), alpha(tau, n), power, the stage-1 discard.

Knows: K1 ~ Bin(n1, p11) and K0 ~ Bin(n0, p01), independent. No normal approximation anywhere.
Does not know: labels and M (ratio.py), records, pooling (exact_bounds.py), the bootstrap.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, stats


def threshold(tau: float, n1: int, n0: int, strict: bool = True) -> tuple[int, int, int]:
    """The filter TE^ > tau (`strict`) or TE^ >= tau as whole numbers, so that ties are decided exactly.

    K1/n1 - K0/n0 > tau  <=>  K1 m1 - K0 m0 >= need,  with m1 = c/n1, m0 = c/n0, c the least common multiple.
    In floating point 580/1000 - 500/1000 > 0.08 would depend on rounding.

    Args: tau, read as the decimal number it prints as (0.08 is 2/25); n1, n0 >= 1, chains.
    Returns: (m1, m0, need), Python ints.
    """
    common = math.lcm(int(n1), int(n0))
    scaled = Fraction(str(float(tau))) * common
    need = math.floor(scaled) + 1 if strict else math.ceil(scaled)
    return common // int(n1), common // int(n0), need


def clopper_pearson(k: ArrayLike, n: ArrayLike, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """One-sided exact bounds of a binomial proportion, each wrong with probability at most alpha.

    low solves P(K >= k | low) = alpha, high solves P(K <= k | high) = alpha; at k = 0 low = 0 and
    high = 1 - alpha^(1/n), at k = n high = 1; n = 0 gives (0, 1). A two-sided 95 % interval takes alpha = 0.025.

    Args: k, n: arrays of one shape, 0 <= k <= n.
    Returns: (low, high), float64, the shape of k.
    """
    k, n = np.broadcast_arrays(np.asarray(k, float), np.asarray(n, float))
    low, high = np.zeros(k.shape), np.ones(k.shape)
    some, rest = k > 0, k < n
    low[some] = stats.beta.ppf(alpha, k[some], n[some] - k[some] + 1)
    high[rest] = stats.beta.isf(alpha, k[rest] + 1, n[rest] - k[rest])
    return low, high


def effect_sd(p11: float, p01: float, n1: int, n0: int) -> float:
    """SD(TE^) = sqrt(p11 (1 - p11) / n1 + p01 (1 - p01) / n0) (App. C).

    Worst at p11 = p01 = 1/2: sqrt(1/(2n)) with n chains in both arms, 0.0224 at n = 1000 and 0.0707 at n = 100.
    """
    return math.sqrt(p11 * (1 - p11) / n1 + p01 * (1 - p01) / n0)


def pass_probability(p11: float, p01: float, n1: int, n0: int, tau: float, strict: bool = True) -> float:
    """P(K1/n1 - K0/n0 > tau) (`>=` where not strict), summed exactly over K0; the power at (p11, p01)."""
    m1, m0, need = threshold(tau, n1, n0, strict)
    k0 = np.arange(n0 + 1)
    fewest = -((-(need + k0 * m0)) // m1)  # the smallest K1 that passes, ceil((need + K0 m0) / m1)
    return float(np.sum(stats.binom.pmf(k0, n0, p01) * stats.binom.sf(fewest - 1, n1, p11)))


def false_positive_rate(tau: float, n1: int, n0: int, strict: bool = True) -> tuple[float, float]:
    """alpha(tau, n) = sup over p of P(TE^ passes | p11 = p01 = p) (App. C); 1.580e-4 at (0.08, 1000), 1.875e-4 for >=.

    The supremum is sought on a grid of 99 values and then refined between the neighbours of the best.

    Returns: (alpha, p at which it is reached).
    """

    def rate(p: float) -> float:
        return pass_probability(p, p, n1, n0, tau, strict)

    return _largest(rate, np.linspace(0.01, 0.99, 99))


def power(effect: float, tau: float, n1: int, n0: int, strict: bool = True) -> tuple[float, float]:
    """inf over p01 of P(TE^ passes | p11 = p01 + effect): the least chance that a pair of this true TE passes (App. C).

    At effect = tau it is near 1/2; the infimum is sought like the supremum of `false_positive_rate`.

    Returns: (probability, p01 at which it is reached).
    """

    def miss(p01: float) -> float:
        return 1.0 - pass_probability(p01 + effect, p01, n1, n0, tau, strict)

    missed, p01 = _largest(miss, np.linspace(0.0, 1.0 - effect, 101))
    return 1.0 - missed, p01


def discard_probability(effect: float, n1: int, n_stage1: int, drop_below: float) -> tuple[float, float]:
    """Stage-1 discard rate (App. E.1): sup over p01 of P(K1/n1 - K0/n_stage1 < drop_below) at true TE = effect.

    0.029 at TE = 0.10 and 5.7e-4 at 0.15 with 2,000 chains in the X=1 arm, 200 in the X=0 arm and drop_below = 0.03;
    0.034 and 8.9e-4 with 1,000.

    Returns: (probability, p01 at which it is reached).
    """

    def rate(p01: float) -> float:
        return 1.0 - pass_probability(p01 + effect, p01, n1, n_stage1, drop_below, strict=False)

    return _largest(rate, np.linspace(0.0, 1.0 - effect, 101))


def _largest(rate: object, grid: np.ndarray) -> tuple[float, float]:
    assert callable(rate)
    values = [rate(float(p)) for p in grid]
    best = int(np.argmax(values))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = optimize.minimize_scalar(lambda p: -rate(float(p)), bounds=(low, high), method="bounded")
    if -found.fun > values[best]:
        return float(-found.fun), float(found.x)
    return float(values[best]), float(grid[best])
