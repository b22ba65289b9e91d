"""Simulated studies with known M: one attribute, one class, counts of two batches of chains by NumPy binomials.

A cell fixes mean M, TE, the number of records, and whether they are alike:
    alike    p11 = 0.54, p01 = p11 - TE, the same M everywhere
    unlike   TE_r ~ TE U(0.5, 1.5), p01_r ~ U(0.02, 0.98 - TE_r), M_r ~ Beta(4M, 4(1-M)), independent
    tied     the same, but M_r rises with TE_r (equal ranks)

Knows: the populations. Does not know: intervals, files.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import stats

N = 1000  # chains per arm and batch, all judged
MEANS = (0.0, 0.05, 0.3, 0.7, 1.0)
EFFECTS = (0.08, 0.1, 0.15, 0.25, 0.5)
RECORDS = (6, 20, 100)


@dataclasses.dataclass(frozen=True)
class Cell:
    mean: float
    effect: float
    records: int
    kind: str  # alike, unlike or tied


class Study(NamedTuple):
    """Counts of one study, int [R] each; k1s, k0s: selection batch. m: the records' true scores."""

    k1s: np.ndarray
    k0s: np.ndarray
    k1: np.ndarray
    k0: np.ndarray
    l: np.ndarray  # noqa: E741
    m: np.ndarray


def grid() -> Iterator[Cell]:
    for records, kind, effect, mean in itertools.product(RECORDS, ("alike", "unlike", "tied"), EFFECTS, MEANS):
        if kind != "tied" or (records > 6 and 0 < mean < 1):
            yield Cell(mean, effect, records, kind)


def rates(cell: Cell, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """True p01, TE and M of `size` records of the cell's population."""
    te, m = np.full(size, cell.effect), np.full(size, cell.mean)
    if cell.kind == "alike":
        return 0.54 - te, te, m
    rank = rng.uniform(size=size)
    te = te * (0.5 + rank)
    if 0 < cell.mean < 1:
        at = rank if cell.kind == "tied" else rng.uniform(size=size)
        m = stats.beta.ppf(at, 4 * cell.mean, 4 * (1 - cell.mean))
    return rng.uniform(0.02, 0.98 - te), te, m


def population(cell: Cell, rng: np.random.Generator) -> float:
    """The mean of M_r over qualifying records; `tied`: over 100,000 of them, weighted by a normal law of TE^."""
    if cell.kind != "tied":
        return cell.mean
    p01, te, m = rates(cell, 100_000, rng)
    sd = np.sqrt((p01 * (1 - p01) + (p01 + te) * (1 - p01 - te)) / N)
    return float(np.average(m, weights=stats.norm.sf((0.0805 - te) / sd)))  # 0.0805: half a chain of continuity


def simulate(cell: Cell, rng: np.random.Generator) -> Study:
    """One study of a cell."""
    p01, te, m = rates(cell, cell.records, rng)
    k1s, k1 = rng.binomial(N, p01 + te, (2, cell.records))
    k0s, k0 = rng.binomial(N, p01, (2, cell.records))
    return Study(k1s, k0s, k1, k0, rng.binomial(k1, m * te / (p01 + te)), m)
