"""scores.csv: every attribute, class and score as one row, a value with its error or a reason (§5.2, App. E).

Rows come per class, pooled over classes (label `all`) and combined over attributes (attribute `all`); the weights are
those of cells.means. Columns (COLUMNS):
    value, unclipped   the mean over the `records` pairs; unclipped leaves out pairs without a ratio (TE^ <= 0)
    se, low, high      bootstrap standard error and percentile interval of `value`, over the replicates that define it.
                       For M0 and M1 the interval is the hull of that and Fieller's for the ratio of sums over records
                       (settings.interval), which clipping does not bias; interval_coverage.md has the coverage of both.
                       Where the cell's L is small (settings.small_l) or the interval has no width, low and high are
                       widened to the exact bounds of exact_bounds.py: at L = 0, `high` is the exact upper bound
                       (and se is 0)
    records            n_S: qualifying records (for attribute `all`: record-attribute pairs); for an undefined row,
                       those found before the class threshold
    mean_excess        the mean R over the same pairs
    f_valid            share of replicates that define the score
    reason             why value is empty, scores.Undefined; empty where there is a value

Knows: reasons, intervals, rows. Does not know: files (but for the CSV text), figures.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from jaxmon.counting.counts import Counts
from jaxmon.counting.counts_schema import ALL
from jaxmon.counting.patterns import Patterns
from jaxmon.estimation import cells
from jaxmon.estimation.bootstrap import bootstrap
from jaxmon.estimation.cells import Settings
from jaxmon.estimation.judge_error import JudgeError, corrected
from jaxmon.estimation.scores import SCORES, Undefined
from jaxmon.estimation.widen import widen
from jaxmon.estimation.worst_case import WorstCase, worst_case

COLUMNS = (
    *("attribute", "label", "score", "value", "unclipped", "se", "low", "high"),
    *("records", "mean_excess", "f_valid", "reason"),
)
BOUNDS_COLUMNS = (
    *("attribute", "label", "score", "value", "low", "high", "records", "missing1", "missing0", "undecided"),
    *("low_any", "high_any"),
)


@dataclasses.dataclass(frozen=True)
class Row:
    """One score of one cell; None where undefined."""

    attribute: str
    label: str
    score: str
    value: float | None
    unclipped: float | None
    se: float | None
    low: float | None
    high: float | None
    records: int
    mean_excess: float | None
    f_valid: float | None
    reason: str


@dataclasses.dataclass(frozen=True)
class Bounds:
    """One score of one cell under worst-case counting of missing chains (worst_case.py)."""

    attribute: str
    label: str
    score: str
    value: float
    low: float
    high: float
    records: int
    missing1: float
    missing0: float
    undecided: int
    low_any: float
    high_any: float


@dataclasses.dataclass(frozen=True)
class Scores:
    """The whole result: rows of scores.csv, rows of bounds.csv, and what was assumed on the way (sentences)."""

    rows: tuple[Row, ...]
    bounds: tuple[Bounds, ...]
    assumptions: tuple[str, ...]
    settings: Settings


def score_table(
    counts: Counts,
    patterns: Patterns | None = None,
    settings: Settings | None = None,
    error: JudgeError | None = None,
) -> Scores:
    """Everything that scores.csv and bounds.csv hold, from the counts alone.

    Args:
      counts: the counts table; patterns: label patterns of the same study or None; settings: None takes the defaults.
      error: corrects pi_Z, M0 and M1 for the judge's errors (judge_error.py); rows of bounds.csv stay as they are.
    Returns: Scores, rows in the order attributes x labels x SCORES with `all` last.
    """
    settings = settings or Settings()
    fixed, draw = cells.split(counts, settings)
    if error is not None:
        draw = corrected(draw, np.float64(error.sensitivity.value), np.float64(error.false_positive.value))
    pairs = cells.evaluate(fixed, draw, settings.zero_over_zero)
    classes = np.eye(len(counts.labels))[counts.label_of]

    def mean(value: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return cells.means(value, mask, pairs.ok, classes, settings.min_records)

    value, size = mean(pairs.value, pairs.ok)
    raw, raw_size = mean(pairs.raw, pairs.raw_ok)
    excess, _ = mean(np.broadcast_to(pairs.value[SCORES.index("R")], pairs.ok.shape), pairs.ok)
    found = cells.pooled(cells.cell_counts(pairs.ok, classes))
    worst = worst_case(counts, settings)
    assumptions: tuple[str, ...] = ()
    replicates = None
    if size.any():
        drawn = bootstrap(counts, patterns, settings, error=error)
        replicates, assumptions = drawn.values, drawn.assumptions

    rows, bounds = [], []
    for a, attribute in enumerate((*counts.attributes, ALL)):
        for c, label in enumerate((*counts.labels, ALL)):
            for s, score in enumerate(SCORES):
                at = (s, a, c)
                names = (attribute, label, score)
                n = int(size[at])
                if n == 0 or replicates is None:
                    reason = _reason(counts, pairs, fixed, at)
                    rows.append(_undefined(names, int(found[at]), None, None, reason))
                    continue
                drawn_here = replicates[:, s, a, c].astype(float)
                drawn_here = drawn_here[~np.isnan(drawn_here)]
                f_valid = len(drawn_here) / settings.replicates
                if f_valid < settings.min_f_valid or len(drawn_here) < 2:
                    rows.append(_undefined(names, n, float(excess[at]), f_valid, Undefined.F_VALID_LOW))
                    continue
                tail = (1 - settings.confidence) / 2
                low, high = np.quantile(drawn_here, [tail, 1 - tail])
                low, high = widen(float(low), float(high), counts, pairs, at, settings, error)
                here = float(value[at])
                if error is not None and score in ("pi_Z", "M0", "M1"):  # a corrected mean may lie outside
                    here, low, high = (float(np.clip(x, 0, 1)) for x in (here, low, high))
                rows.append(
                    Row(
                        *names,
                        here,
                        float(raw[at]) if raw_size[at] else None,
                        float(drawn_here.std(ddof=1)),
                        min(low, here),
                        max(high, here),
                        n,
                        float(excess[at]),
                        f_valid,
                        "",
                    )
                )
                bounds.append(_bounds(names, at, float(value[at]), n, worst))
    return Scores(tuple(rows), tuple(bounds), assumptions, settings)


def _undefined(
    names: tuple[str, str, str], records: int, excess: float | None, f_valid: float | None, reason: Undefined
) -> Row:
    return Row(*names, None, None, None, None, None, records, excess, f_valid, reason)


def _bounds(names: tuple[str, str, str], at: tuple[int, int, int], value: float, n: int, worst: WorstCase) -> Bounds:
    low, high, missing1, missing0 = (float(x[at]) for x in worst[:4])
    wide = float(worst.low_any[at]), float(worst.high_any[at])
    return Bounds(*names, value, low, high, n, missing1, missing0, int(worst.undecided[at[1:]]), *wide)


def _reason(counts: Counts, pairs: cells.Evaluated, fixed: cells.Fixed, at: tuple[int, int, int]) -> Undefined:
    """The first stage that no pair of the cell survives."""
    s, a, c = at
    of_te, of_pi = (pairs.ok[SCORES.index(name)] for name in ("TE", "pi_Z"))
    stages = [
        (counts.present, Undefined.NO_RECORDS),
        (fixed.live, Undefined.DROPPED_AT_STAGE_1),
        (of_te, Undefined.TE_BELOW_TAU),
    ]
    if SCORES[s] == "M1":
        stages += [
            (of_te & ~np.isnan(counts.p10), Undefined.P10_NOT_MEASURED),
            (of_te & fixed.p10_ok, Undefined.P10_TOO_LARGE),
        ]
    if SCORES[s] in ("pi_Z", "M0", "M1"):
        stages.append((of_pi & pairs.ok[s], Undefined.NO_JUDGED))
    for mask, reason in stages:
        if not cells.members(counts, mask, a, c).any():
            return reason
    return Undefined.TOO_FEW_RECORDS
