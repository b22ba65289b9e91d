"""Every interval for M that jaxmon knows, from the counts of one simulated study; the bootstrap anew, in NumPy.

Knows: counts of one attribute and class. Does not know: the truth, files. tests/test_interval_coverage.py holds its
intervals against jaxmon's own.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from scipy import stats

from jaxmon.estimation.cells import Settings
from jaxmon.estimation.scores import pair_scores
from jaxmon.statistics import exact_bounds, ratio_intervals
from tools.interval_studies import N, Study

POINTS = 4096  # of the quantile tables


class Interval(NamedTuple):
    low: float
    high: float
    unbounded: bool = False


def quantile_table(n: int = N) -> np.ndarray:
    """Bin(n, k/n) for every k as its quantiles at the midpoints of POINTS equal shares, int16 [n + 1, POINTS].

    A random column is a draw; 4,096 points keep the mean and all but 0.3 % of the variance (tests), 20 times faster.
    """
    at = (np.arange(POINTS) + 0.5) / POINTS
    values = np.arange(n + 1)
    return np.stack([np.searchsorted(stats.binom.cdf(values, n, k / n), at) for k in values]).astype(np.int16)


def clipped(k1: np.ndarray, k0: np.ndarray, l_: np.ndarray) -> np.ndarray:
    """M of every pair, as scores.pair_scores with n1 = n0 and J = K1."""
    d = k1 - k0
    return np.where(d > 0, np.minimum(1, l_ / np.maximum(d, 1)), l_ > 0)


def replicates(study: Study, table: np.ndarray, b: int, settings: Settings, rng: np.random.Generator) -> np.ndarray:
    """B hierarchical replicates of the score, float [B], NaN where undefined: records, then chains, then the filter.

    L* is drawn as Bin(n, L/n), and K1* - L* given L* by the normal law rounded to whole numbers (its variance is 35 or
    more wherever the grid goes).
    """
    chosen = rng.integers(0, len(study.k1), (b, len(study.k1)))

    def redraw(k: np.ndarray) -> np.ndarray:
        return table[k[chosen], rng.integers(0, POINTS, chosen.shape, dtype=np.uint16)].astype(np.int32)

    sure = study.k1s - study.k0s > round(settings.tau * N) + 7 * (N / 2) ** 0.5  # no replicate of these can fail
    passed = sure[chosen]
    if not sure.all():
        passed = redraw(study.k1s) - redraw(study.k0s) > round(settings.tau * N)
    l_, left = redraw(study.l), N - study.l
    q = ((study.k1 - study.l) / left).astype(np.float32)[chosen]
    middle = (N - l_) * q
    noise = rng.standard_normal(chosen.shape, np.float32) * np.sqrt(middle * (1 - q))
    k1 = l_ + np.clip(np.rint(middle + noise), 0, N - l_)
    value = clipped(k1, redraw(study.k0), l_)
    return _means(value, passed, settings)


def _means(value: np.ndarray, passed: np.ndarray, settings: Settings) -> np.ndarray:
    size = passed.sum(1)
    return np.where(size > settings.min_records, (value * passed).sum(1) / np.maximum(size, 1), np.nan)


def intervals(
    study: Study, table: np.ndarray, b: int, settings: Settings, rng: np.random.Generator, exactly: bool = True
) -> dict[str, Interval]:
    """Every method's interval for the study's score (`exact` where asked for), or {} where no score is reported."""
    passed = study.k1s - study.k0s > round(settings.tau * N)
    if passed.sum() <= settings.min_records:
        return {}
    drawn = replicates(study, table, b, settings, rng)
    drawn = drawn[~np.isnan(drawn)]
    if len(drawn) < settings.min_f_valid * b:
        return {}
    k1, k0, l_ = (x[passed] for x in (study.k1, study.k0, study.l))
    n = np.full(len(k1), N)
    scores = pair_scores(k1.astype(float), n, k0.astype(float), n, k1, l_)
    value, tail = scores.m.mean(), (1 - settings.confidence) / 2
    exact = functools.cache(lambda: Interval(*exact_bounds.m_bounds(k1, n, k0, n, k1, l_, tail)))  # slow
    pick = rng.integers(0, len(study.k1), (b, len(study.k1)))
    of_records = _means(clipped(study.k1, study.k0, study.l)[pick], passed[pick], settings)

    def percentile(sample: np.ndarray) -> Interval:
        low, high = np.nanquantile(sample, [tail, 1 - tail])
        if l_.sum() <= settings.small_l or high <= low:
            low, high = min(low, exact().low), max(high, exact().high)
        return Interval(min(low, value), max(high, value))

    parts = ratio_intervals.parts(k1, n, k0, n, k1, l_)
    z = stats.norm.isf(tail)
    with np.errstate(invalid="ignore", divide="ignore"):
        each = (parts.v_a - 2 * scores.m_raw * parts.v_ad + scores.m_raw**2 * parts.v_d) / parts.d**2
    ratio, error = scores.m_raw[scores.has_ratio].mean(), np.sqrt(each[scores.has_ratio].sum()) / scores.has_ratio.sum()
    t = stats.t.isf(tail, len(k1) - 1) * scores.m.std(ddof=1) / len(k1) ** 0.5
    both = percentile(drawn)
    chains, between = parts.total(), parts.between()
    pooled = _one(ratio_intervals.fieller(chains, settings.confidence))
    over = _one(ratio_intervals.fieller(between, settings.confidence, len(k1) - 1))
    found = {"exact": exact()} if exactly else {}
    return found | {
        "both levels": both,
        "records only": percentile(of_records),
        "delta": _unit(ratio - z * error, ratio + z * error),
        "t over records": _unit(value - t, value + t),
        "Fieller over chains": pooled,
        "Fieller over records": over,
        "hull": Interval(min(both.low, over.low), max(both.high, over.high), over.unbounded),
    }


def _unit(low: float, high: float) -> Interval:
    return Interval(min(1.0, max(0.0, low)), min(1.0, max(0.0, high)))


def _one(found: ratio_intervals.Ratio) -> Interval:
    if found.unbounded:
        return Interval(0.0, 1.0, True)
    return _unit(float(found.low), float(found.high))
