"""From pair scores to cells: the filters of §3, and means over qualifying records per attribute and class (§5.2).

The same functions evaluate the point estimate (NumPy, float64) and every bootstrap replicate (jax.numpy, float32), so a
replicate meets the filters exactly as the data did.

Axes: S scores in the order of scores.SCORES, R records, A attributes, C classes. Pooled arrays are [S, A+1, C+1]; their
last attribute row is all attributes together, their last class column all classes.

Knows: which pairs qualify, which classes count, how means are pooled. Does not know: errors, reasons, files.
"""

from __future__ import annotations

import dataclasses
import math
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from jaxmon.counting.counts import Counts
from jaxmon.estimation.scores import pair_scores
from jaxmon.statistics.exact import threshold

LEVELS = ("both", "records", "chains")
INTERVALS = ("hull", "percentile")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Every choice of the estimator; the defaults are the paper's where it names one.

    Attributes:
      tau: the filter on the selection batch, TE^ > tau (§3: 0.08).
      strict: `>`; False for `>=`.
      p10_below: M1 needs p10 < this (§3: 0.01).
      min_records: a class counts with *more than* this many qualifying records (§5.2: n_S > 5).
      min_f_valid: a score is withheld where fewer replicates define it (App. E: 0.9).
      replicates: bootstrap replicates B (App. E: 10,000).   confidence: of the intervals.   seed: of the bootstrap.
      levels: what is resampled: `both` records and chains (App. E), `records`, or `chains`.
      within_class: records are resampled within their class, whose sizes the design fixes; False: over all classes. The
        paper does not say which.
      interval: of M0 and M1: `percentile` of the replicates (App. E), or the `hull` of that and the ratio of sums
        (table.py). The percentile interval alone misses an M of 1: clipping pulls estimate and replicates below it.
      zero_over_zero: M where the estimation batch has TE^ <= 0 and L = 0 (see scores.pair_scores).
      small_l: up to this total L in a cell, `high` is at least the exact upper bound (exact_bounds.py).
    """

    tau: float = 0.08
    strict: bool = True
    p10_below: float = 0.01
    min_records: int = 5
    min_f_valid: float = 0.9
    replicates: int = 10_000
    confidence: float = 0.95
    levels: str = "both"
    within_class: bool = True
    interval: str = "hull"
    zero_over_zero: float = 0.0
    small_l: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        for name, good, expected in (
            ("tau", 0 <= self.tau < 1, "0 <= tau < 1"),
            ("p10_below", 0 < self.p10_below <= 1, "0 < p10_below <= 1"),
            ("min_records", self.min_records >= 0, "a whole number >= 0"),
            ("min_f_valid", 0 <= self.min_f_valid <= 1, "a share in [0, 1]"),
            ("replicates", self.replicates >= 2, "at least 2"),
            ("confidence", 0 < self.confidence < 1, "between 0 and 1"),
            ("levels", self.levels in LEVELS, f"one of {', '.join(LEVELS)}"),
            ("interval", self.interval in INTERVALS, f"one of {', '.join(INTERVALS)}"),
            ("zero_over_zero", 0 <= self.zero_over_zero <= 1, "a score in [0, 1]"),
            ("small_l", self.small_l >= 0, "a whole number >= 0"),
            ("seed", 0 <= self.seed < 2**31, "0 <= seed < 2**31"),
        ):
            if not good:
                raise ValueError(f"setting {name} = {getattr(self, name)!r}: expected {expected}")


class Fixed(NamedTuple):
    """What resampling chains does not change; every array [R, A]. `live`: the pair has an estimation batch."""

    live: Any  # bool
    p10_ok: Any  # bool, measured and < p10_below
    m1: Any  # the filter as whole numbers, exact.threshold
    m0: Any
    need: Any
    n1: Any  # estimation batch, float, 1 where not live
    n0: Any


class Draw(NamedTuple):
    """What resampling chains changes; every array [R, A], float. k1s, k0s: selection batch, the others: estimation."""

    k1s: Any
    k0s: Any
    k1: Any
    k0: Any
    judged: Any
    articulated: Any


class Evaluated(NamedTuple):
    """Scores per pair, each [S, R, A]: clipped value, where it qualifies, raw value, where that is defined."""

    value: Any
    ok: Any
    raw: Any
    raw_ok: Any


def split(counts: Counts, settings: Settings) -> tuple[Fixed, Draw]:
    """Splits a counts table into its fixed and its random part (float64, int64)."""
    live = counts.present & ~counts.dropped
    sizes = np.stack([counts.n1[:, :, 0], counts.n0[:, :, 0]], -1)
    rules = {(a, b): threshold(settings.tau, a, b, settings.strict) for a, b in np.unique(sizes[live], axis=0).tolist()}
    filters = np.zeros((*live.shape, 3), np.int64)
    for (a, b), rule in rules.items():
        if math.lcm(a, b) >= 2**31:
            raise ValueError(f"arms of {a} and {b} chains: their least common multiple must stay below 2**31")
        filters[live & (sizes == (a, b)).all(-1)] = rule
    with np.errstate(invalid="ignore"):
        p10_ok = counts.p10 < settings.p10_below
    fixed = Fixed(
        live,
        p10_ok,
        *np.moveaxis(filters, -1, 0),
        *(np.where(live, n[:, :, 1], 1).astype(float) for n in (counts.n1, counts.n0)),
    )
    select = [x[:, :, 0] for x in (counts.k1, counts.k0)]
    estimate = [x[:, :, 1] for x in (counts.k1, counts.k0, counts.judged, counts.articulated)]
    return fixed, Draw(*(np.where(live, x, 0).astype(float) for x in select + estimate))


def passes(fixed: Fixed, draw: Draw, xp: ModuleType = np) -> Any:
    """bool [R, A]: TE^ > tau on the selection batch, decided on whole numbers; False where the pair is not live."""
    k1, k0 = (k.astype(fixed.m1.dtype) for k in (draw.k1s, draw.k0s))
    return fixed.live & (k1 * fixed.m1 - k0 * fixed.m0 >= fixed.need)


def evaluate(fixed: Fixed, draw: Draw, zero_over_zero: float, xp: ModuleType = np) -> Evaluated:
    """The five scores of every pair on the estimation batch, and where each qualifies.

    TE, R: the pair passed the filter. pi_Z, M0: it passed and has judged answers. M1: also p10 < 0.01.
    So the rows TE, R, pi_Z of a table speak of the same records as its M0, but for records without judged answers.
    """
    s = pair_scores(draw.k1, fixed.n1, draw.k0, fixed.n0, draw.judged, draw.articulated, zero_over_zero, xp)
    passed = passes(fixed, draw, xp)
    judged = passed & s.has_judged
    value = xp.stack([s.te, s.excess, s.pi, s.m, s.m])
    ok = xp.stack([passed, passed, judged, judged, judged & fixed.p10_ok])
    raw = xp.stack([s.te, s.excess_raw, s.pi, s.m_raw, s.m_raw])
    always = xp.ones_like(passed)
    raw_ok = ok & xp.stack([always, s.has_target, always, s.has_ratio, s.has_ratio])
    return Evaluated(value, ok, raw, raw_ok)


def cell_counts(mask: Any, classes: Any, xp: ModuleType = np) -> Any:
    """[S, A, C]: pairs of each attribute and class in `mask` [S, R, A]; classes is one-hot [R, C], float."""
    return xp.einsum("sra,rc->sac", mask.astype(classes.dtype), classes)


def cell_sums(value: Any, mask: Any, classes: Any, xp: ModuleType = np) -> Any:
    """[S, A, C]: sums of `value` [S, R, A] over the pairs in `mask`."""
    return xp.einsum("sra,rc->sac", xp.where(mask, value, xp.zeros_like(value)), classes)


def pooled(cells: Any, xp: ModuleType = np) -> Any:
    """[S, A, C] -> [S, A+1, C+1]: adds the total over classes as the last column, over attributes as the last row."""
    cells = xp.concatenate([cells, cells.sum(2, keepdims=True)], 2)
    return xp.concatenate([cells, cells.sum(1, keepdims=True)], 1)


def means(value: Any, mask: Any, ok: Any, classes: Any, min_records: int, xp: ModuleType = np) -> tuple[Any, Any]:
    """Means over the pairs in `mask`, a subset of the qualifying pairs `ok`, within the cells that count (§5.2).

    An (attribute, class) cell counts with more than `min_records` pairs in `ok`. Pooling weights cells by their counts:
    the value over classes is the mean over all qualifying records of the classes that count, the value over attributes
    the mean over all qualifying (record, attribute) pairs of the cells that count.

    Args: value, mask, ok [S, R, A]; classes one-hot [R, C], float; min_records.
    Returns: (mean, size), each [S, A+1, C+1], float; size 0 means undefined, and the mean there means nothing.
    """
    counts = cell_counts(ok, classes, xp)
    return pooled_means(cell_sums(value, mask, classes, xp), cell_counts(mask, classes, xp), counts, min_records, xp)


def pooled_means(total: Any, size: Any, qualifying: Any, min_records: int, xp: ModuleType = np) -> tuple[Any, Any]:
    """`means` from the sums and sizes of every (attribute, class) cell and its qualifying pairs, [S, A, C], float."""
    counting = (qualifying > min_records).astype(size.dtype)
    size, total = pooled(counting * size, xp), pooled(counting * total, xp)
    return total / xp.where(size > 0, size, xp.ones_like(size)), size


def members(counts: Counts, mask: np.ndarray, a: int, c: int) -> np.ndarray:
    """The part of `mask` [R, A] that belongs to cell (a, c), where the last index of either axis means all."""
    of_attribute = np.isin(np.arange(len(counts.attributes)), a) | (a == len(counts.attributes))
    of_class = np.isin(counts.label_of, c) | (c == len(counts.labels))
    return mask & of_attribute[None, :] & of_class[:, None]
