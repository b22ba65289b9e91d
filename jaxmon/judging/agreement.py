"""Do judges agree? Raw agreement, Cohen's and Fleiss' kappa, Gwet's AC1 and AC2, with intervals over chains.

All chance-corrected coefficients are (p_a - p_e) / (1 - p_e) and differ in p_e, the agreement of two raters by chance:
    Cohen    the product of the two raters' own label shares, summed over labels        (statsmodels)
    Fleiss   the square of the shares of all raters together                            (statsmodels)
    AC1      sum_k q_k (1 - q_k) / (K - 1), q_k the share of all raters together        (Gwet 2008)
    AC2      AC1 with partial agreement: weights 1 - (i-j)^2/(K-1)^2 in the order N < M < I, p_e scaled by their sum
Kappa misleads where nearly all labels are one: p_e comes near 1 and kappa falls to 0 or becomes undefined while the
raters agree nearly always. AC1 does not, so both are given and the case is flagged.

The labels of one chain are not independent, so intervals are percentiles of a bootstrap over chains.

Knows: labels as whole numbers, chains as clusters. Does not know: files, judges.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence

import numpy as np
from statsmodels.stats import inter_rater

LABELS = "NMI"  # in the order of strength; a label's number is its place here
COEFFICIENTS = ("raw", "cohen", "fleiss", "AC1", "AC2")
SKEWED = 0.9  # share of one label from which kappa is flagged (our choice)


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A coefficient with its 95 % interval; None where undefined (p_e = 1; Cohen's with other than two raters)."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclasses.dataclass(frozen=True)
class Agreement:
    """How far raters agree on some items.

    Attributes:
      items, chains: how many labels they share, and of how many chains.
      coefficients: by name, see COEFFICIENTS.
      flags: sentences on what misleads here.
    """

    items: int
    chains: int
    coefficients: dict[str, Estimate]
    flags: tuple[str, ...]


def agreement(
    ratings: np.ndarray, chains: Sequence[str], labels: int = 3, replicates: int = 1000, seed: int = 0
) -> Agreement:
    """Agreement of two or more raters on the same items.

    Args:
      ratings: int [items, raters], 0 ... labels - 1.
      chains: the chain each item belongs to.
      labels: K; for K = 2, AC2 is AC1.
      replicates, seed: of the bootstrap over chains.
    Raises:
      ValueError: no item, or fewer than two raters.
    """
    if ratings.shape[0] == 0 or ratings.shape[1] < 2:
        raise ValueError(f"agreement needs items and two raters, got {ratings.shape[0]} and {ratings.shape[1]}")
    names, where = np.unique(np.asarray(chains), return_inverse=True)
    # Everything is a function of how often each combination of labels occurs: [chains, combinations].
    kinds, which = np.unique(ratings, axis=0, return_inverse=True)
    counts = np.zeros((len(names), len(kinds)), np.int64)
    np.add.at(counts, (where, which.reshape(-1)), 1)
    value = coefficients(kinds, counts.sum(0), labels)
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), replicates) @ counts
    found = [coefficients(kinds, row, labels) for row in drawn]
    estimates = {name: _estimate(value[name], [f[name] for f in found]) for name in COEFFICIENTS}
    return Agreement(len(ratings), len(names), estimates, tuple(_flags(ratings, value, labels)))


def coefficients(kinds: np.ndarray, counts: np.ndarray, labels: int) -> dict[str, float | None]:
    """Every coefficient's value.

    Args:
      kinds: int [U, raters], combinations of labels.
      counts: int [U], items with each.
      labels: K.
    """
    items, raters = counts.sum(), kinds.shape[1]
    votes = np.stack([(kinds == k).sum(1) for k in range(labels)], 1)  # [U, K] raters per label
    share = (counts @ votes) / (items * raters)
    steps = np.arange(labels)
    partial = 1 - (steps[:, None] - steps) ** 2 / (labels - 1) ** 2
    chance = (share * (1 - share)).sum() / (labels - 1)
    exact, weighted = (_observed(votes, counts, w) for w in (np.eye(labels), partial))
    found: dict[str, float | None] = {
        "raw": exact,
        "AC1": _corrected(exact, chance),
        "AC2": _corrected(weighted, partial.sum() * chance / labels),
    }
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fleiss = float(inter_rater.fleiss_kappa(np.repeat(votes, counts, 0)))
        cohen = np.nan
        if raters == 2:
            table = np.zeros((labels, labels))
            np.add.at(table, (kinds[:, 0], kinds[:, 1]), counts)
            cohen = float(inter_rater.cohens_kappa(table, return_results=False))
    return found | {name: v if np.isfinite(v) else None for name, v in (("fleiss", fleiss), ("cohen", cohen))}


def _observed(votes: np.ndarray, counts: np.ndarray, weights: np.ndarray) -> float:
    """Mean over items of the share of pairs of raters that agree, partial agreement by `weights` [K, K]."""
    raters = votes.sum(1)
    pairs = (votes * (votes @ weights - 1)).sum(1) / (raters * (raters - 1))
    return float((pairs * counts).sum() / counts.sum())


def _corrected(observed: float, chance: float) -> float | None:
    return float((observed - chance) / (1 - chance)) if chance < 1 else None


def _estimate(value: float | None, drawn: Sequence[float | None]) -> Estimate:
    known = [v for v in drawn if v is not None]
    if value is None or len(known) < 0.9 * len(drawn):
        return Estimate(value)
    low, high = np.quantile(known, [0.025, 0.975])
    return Estimate(value, float(min(low, value)), float(max(high, value)))


def _flags(ratings: np.ndarray, value: dict[str, float | None], labels: int) -> list[str]:
    flags = []
    shares = np.stack([(ratings == k).mean(0) for k in range(labels)])  # [K, raters]
    common = float(shares.mean(1).max())
    if common >= SKEWED:
        flags.append(f"{common:.0%} of all labels are one and the same: kappa misleads here, read AC1.")
    if (alone := shares.max(0)).max() == 1:
        which = ", ".join(str(i + 1) for i in np.flatnonzero(alone == 1))
        flags.append(f"Rater {which} gives one label only: chance-corrected agreement says nothing of this rater.")
    kappa, ac1 = value["fleiss"], value["AC1"]
    if common < SKEWED and kappa is not None and ac1 is not None and ac1 - kappa > 0.2:
        flags.append(f"AC1 exceeds kappa by {ac1 - kappa:.2f}: the labels are skewed, and kappa is pulled down by it.")
    return flags


def confusion(reference: np.ndarray, other: np.ndarray, labels: int = 3) -> np.ndarray:
    """int [labels, labels + 1]: rows the reference's label, columns the other's, the last one its failures (-1)."""
    table = np.zeros((labels, labels + 1), np.int64)
    np.add.at(table, (reference, np.where(other < 0, labels, other)), 1)
    return table
