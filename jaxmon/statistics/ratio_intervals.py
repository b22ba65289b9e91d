"""Delta and Fieller intervals for M = A/TE of one pair, or of pairs pooled as a ratio of sums, from counts (App. C).

With J of the K1 target answers judged, A^ = (L/J)(K1/n1), D^ = TE^ = K1/n1 - K0/n0, and to first order
    V_A = p11^2 pi(1-pi)/J + pi^2 V_1,   V_AD = pi V_1,   V_D = V_1 + V_0,   V_x = p(1-p)/n,
which at J = K1 is a(1-a)/n, a(1-p11)/n and (p11(1-p11) + p01(1-p01))/n of ratio.delta_sd.

Neither holds its level everywhere: the delta interval is too short near tau, and at L = 0 both have no width
(exact_bounds.py). Fieller's set holds it where counts are large, and says so where TE^ cannot be told from 0: its set
is then not an interval, kind `unbounded`.

Knows: counts of one batch as arrays of any shape. Does not know: filters, clipping (intervals are those of the
unclipped ratio), records that differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from jaxmon.statistics.ratio import support


class Parts(NamedTuple):
    """Estimates of A and D = TE and their (co)variances; float64, one shape."""

    a: np.ndarray
    d: np.ndarray
    v_a: np.ndarray
    v_d: np.ndarray
    v_ad: np.ndarray

    def total(self, axis: int = -1) -> Parts:
        """Sums over independent pairs: A and D of the ratio of sums, the TE-weighted mean of M."""
        return Parts(*(x.sum(axis) for x in self))

    def between(self, axis: int = -1) -> Parts:
        """`total` with the (co)variances of the sums taken from the differences between pairs, N >= 2 of them:

        N times the sample (co)variance. It carries the chains' noise and the pairs' own differences alike.
        """
        n = self.a.shape[axis]
        a, d = (x - x.mean(axis, keepdims=True) for x in (self.a, self.d))
        v_a, v_d, v_ad = (n / (n - 1) * (x * y).sum(axis) for x, y in ((a, a), (d, d), (a, d)))
        return Parts(self.a.sum(axis), self.d.sum(axis), v_a, v_d, v_ad)


class Ratio(NamedTuple):
    """Intervals [low, high]; where `unbounded`, the set of Fieller is not an interval: low = -inf, high = inf."""

    low: np.ndarray
    high: np.ndarray
    unbounded: np.ndarray


def parts(
    k1: ArrayLike, n1: ArrayLike, k0: ArrayLike, n0: ArrayLike, judged: ArrayLike, articulated: ArrayLike
) -> Parts:
    """A^, D^ and their estimated (co)variances (see above).

    Args: counts of one batch, one shape, n1, n0 >= 1; where judged = 0 A is unknown: NaN.
    """
    k1, n1, k0, n0, judged, articulated = (np.asarray(x, float) for x in (k1, n1, k0, n0, judged, articulated))
    p11, p01 = k1 / n1, k0 / n0
    with np.errstate(invalid="ignore", divide="ignore"):
        pi = np.where(judged > 0, articulated / judged, np.nan)
        v1, v0 = p11 * (1 - p11) / n1, p01 * (1 - p01) / n0
        v_a = p11**2 * pi * (1 - pi) / judged + pi**2 * v1
    return Parts(pi * p11, p11 - p01, v_a, v1 + v0, pi * v1)


def delta(found: Parts, confidence: float = 0.95) -> Ratio:
    """M^ -+ z SE, SE^2 = (V_A - 2 M V_AD + M^2 V_D) / D^2; unbounded where D^ <= 0, where there is no estimate."""
    z = stats.norm.isf((1 - confidence) / 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        m = found.a / found.d
        se = np.sqrt(np.maximum(0, found.v_a - 2 * m * found.v_ad + m**2 * found.v_d)) / found.d
    return _ratio(m - z * se, m + z * se, found.d <= 0)


def fieller(found: Parts, confidence: float = 0.95, degrees: float = np.inf) -> Ratio:
    """All M with (A - M D)^2 <= z^2 (V_A - 2 M V_AD + M^2 V_D): Fieller's set.

    It is the interval between the roots of
        M^2 (D^2 - z^2 V_D) - 2 M (A D - z^2 V_AD) + A^2 - z^2 V_A <= 0
    where D^2 > z^2 V_D; there the roots are real, since M = A/D satisfies it. Otherwise D is not told from 0 and the
    set is the line or the outside of an interval: unbounded. `delta` is its limit for V_D/D^2 -> 0. An interval may
    lie below 0, where D^ is clearly negative.

    Args: degrees of freedom of the variances, N - 1 for `Parts.between`: z is then the quantile of Student's t.
    """
    z2 = stats.t.isf((1 - confidence) / 2, degrees) ** 2
    lead, half = found.d**2 - z2 * found.v_d, found.a * found.d - z2 * found.v_ad
    last = found.a**2 - z2 * found.v_a
    with np.errstate(invalid="ignore", divide="ignore"):
        root = np.sqrt(np.maximum(0, half**2 - lead * last))
        low, high = (half - root) / lead, (half + root) / lead
    return _ratio(low, high, lead <= 0)


def _ratio(low: np.ndarray, high: np.ndarray, unbounded: np.ndarray) -> Ratio:
    return Ratio(np.where(unbounded, -np.inf, low), np.where(unbounded, np.inf, high), np.asarray(unbounded))


class Coverage(NamedTuple):
    """Exact probabilities for one pair: the interval holds the true M; it is unbounded (and then holds it)."""

    covered: float
    unbounded: float


def coverage(
    interval: Callable[[Parts, float], Ratio], m: float, te: float, p11: float, n: int, confidence: float = 0.95
) -> Coverage:
    """Coverage of `delta` or `fieller` for one pair with n chains per arm, all judged, summed over all (K1, K0, L).

    At n = 1000, p11 = 0.54, TE = 0.08, M = 0.3: delta 0.927; Fieller 0.964, of which 0.051 are unbounded.
    """
    p01, pi = p11 - te, m * te / p11
    k0, most = support(n, p01)[:, None], support(n, m * te)[None, :]
    of_k0 = stats.binom.pmf(k0[:, 0], n, p01)
    covered = unbounded = 0.0
    for k1 in support(n, p11).tolist():
        l_ = np.minimum(most, k1)
        found = interval(parts(k1, n, k0, n, k1, l_), confidence)
        law = stats.binom.pmf(k1, n, p11) * of_k0[:, None] * stats.binom.pmf(most, k1, pi)
        covered += float((law * ((found.low <= m) & (m <= found.high))).sum())
        unbounded += float((law * found.unbounded).sum())
    return Coverage(covered, unbounded)
