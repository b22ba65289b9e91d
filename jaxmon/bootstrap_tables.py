"""The data of a bootstrap as sampling tables: which binomials to draw, in which order, and what each adds to.

One replicate of a record is a list of steps. Each draws Bin(m, q), where m is (by `source`)
    FIXED     a number of chains that does not change: K1 and K0 of the selection batch, K0 of the estimation batch
    LEFT      the X=1 chains of the estimation batch that no earlier pattern has taken: with label patterns, every
              pattern is such a step, and the steps together are one multinomial
    TARGET    the replicate's K1;  PREVIOUS  the draw before: without patterns, J ~ Bin(K1, J/K1) and L ~ Bin(J, L/J)

Knows: counts, patterns. Does not know: random numbers, filters.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jaxmon import cells
from jaxmon.cells import Draw, Fixed, Settings
from jaxmon.counts import Counts
from jaxmon.patterns import UNJUDGED, Patterns, attribute_order, letters

FIXED, LEFT, TARGET, PREVIOUS = range(4)
FREQUENT = 10  # a pattern expected this often in some record is drawn by rejection, rarer ones by inversion


class Steps(NamedTuple):
    """One entry per step; P steps, R records, K live attributes of a record at most."""

    source: Any  # int32 [P]
    adds_target: Any  # float32 [P]: 1 where the draw counts into K1
    n: Any  # float32 [P, R]: m of FIXED steps
    q: Any  # float32 [P, R]
    judged: Any  # float32 [P, R, K]: weight of the draw in J
    articulated: Any  # float32 [P, R, K]: and in L


class Tables(NamedTuple):
    """All of a bootstrap's data. `frequent` begins with the 1 + 2K arms K1 select, K0 select, K0 estimate."""

    fixed: Fixed  # [R, A]
    data: Draw  # [R, A]: the counts themselves, for resampling records only
    slot: Any  # int32 [R, A]: an attribute's place among the live ones of its record
    n1: Any  # float32 [R]: X=1 chains of the estimation batch
    frequent: Steps
    rare: Steps
    classes: Any  # float32 [R, C] one-hot
    pool: Any  # int32 [R]: records in the order of their classes
    start: Any  # int32 [R]: where the class of record i begins in `pool`
    size: Any  # int32 [R]: and how many records it has


def build(counts: Counts, patterns: Patterns | None, settings: Settings) -> Tables:
    """Tables in float64 and int64 (NumPy); bootstrap.py casts them once."""
    fixed, data = cells.split(counts, settings)
    n_records = len(counts.records)
    n_slots = max(1, int(fixed.live.sum(1).max()))
    slot = np.clip(np.cumsum(fixed.live, 1) - 1, 0, n_slots - 1)
    n1 = counts.n1[:, :, 1].max(1).astype(float)
    arms = _arms(counts, fixed.live, slot, n_slots)
    if patterns is None:
        frequent, rare = _join(arms, _marginal(data, fixed.live, slot, n_slots, n1)), _empty(0, n_records, n_slots)
    else:
        joint = _joint(counts, patterns, fixed.live, slot, n_slots)
        heads = _heads(joint, n1)
        frequent, rare = _join(arms, _part(joint, slice(0, heads))), _part(joint, slice(heads, None))
    pool, start, size = _resampling(counts, settings.within_class)
    classes = np.eye(len(counts.labels))[counts.label_of]
    return Tables(fixed, data, slot, n1, frequent, rare, classes, pool, start, size)


def _resampling(counts: Counts, within_class: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n_records = len(counts.records)
    if not within_class:
        return np.arange(n_records), np.zeros(n_records, int), np.full(n_records, n_records)
    size = np.bincount(counts.label_of, minlength=len(counts.labels))
    start = np.cumsum(size) - size
    return np.argsort(counts.label_of, kind="stable"), start[counts.label_of], size[counts.label_of]


def _empty(n_steps: int, n_records: int, n_slots: int) -> Steps:
    wide = (n_steps, n_records, n_slots)
    return Steps(
        np.zeros(n_steps, int),
        np.zeros(n_steps),
        np.zeros(wide[:2]),
        np.zeros(wide[:2]),
        np.zeros(wide),
        np.zeros(wide),
    )


def _join(a: Steps, b: Steps) -> Steps:
    return Steps(*(np.concatenate(x) for x in zip(a, b, strict=True)))


def _part(steps: Steps, part: slice) -> Steps:
    return Steps(*(x[part] for x in steps))


def _arms(counts: Counts, live: np.ndarray, slot: np.ndarray, n_slots: int) -> Steps:
    """Steps K1 select, K0 select of each slot, K0 estimate of each slot; a slot without a pair draws from 0 chains."""
    steps = _empty(1 + 2 * n_slots, len(counts.records), n_slots)
    r, a = np.nonzero(live)
    n1, k1 = (x[:, :, 0].max(1) for x in (counts.n1, counts.k1))
    steps.n[0], steps.q[0] = n1, k1 / n1
    for offset, batch in ((1, 0), (1 + n_slots, 1)):
        steps.n[offset + slot[r, a], r] = counts.n0[r, a, batch]
        steps.q[offset + slot[r, a], r] = counts.k0[r, a, batch] / counts.n0[r, a, batch]
    return steps


def _marginal(data: Draw, live: np.ndarray, slot: np.ndarray, n_slots: int, n1: np.ndarray) -> Steps:
    """Steps K1, then J and L of each slot: labels independent over attributes given K1."""
    steps = _empty(1 + 2 * n_slots, len(live), n_slots)
    steps.source[1::2], steps.source[2::2] = TARGET, PREVIOUS
    steps.adds_target[0] = 1
    steps.n[0] = n1
    r, a = np.nonzero(live)
    k1, judged, articulated = (x[r, a] for x in (data.k1, data.judged, data.articulated))
    steps.q[0, r] = k1 / n1[r]
    of = 1 + 2 * slot[r, a]
    steps.q[of, r], steps.q[of + 1, r] = judged / np.maximum(k1, 1), articulated / np.maximum(judged, 1)
    steps.judged[of, r, slot[r, a]] = steps.articulated[of + 1, r, slot[r, a]] = 1
    return steps


def _joint(counts: Counts, patterns: Patterns, live: np.ndarray, slot: np.ndarray, n_slots: int) -> Steps:
    """One LEFT step per pattern of target answers, most frequent first.

    Patterns are first projected on what the scores need, the live attributes and the classes {N, M}, {I}, {?}: patterns
    that agree there are one.
    """
    projected = []
    for r, record in enumerate(counts.records):
        group = patterns.get((record, "estimate"), {})
        order = [(i, a) for i, a in enumerate(attribute_order(counts, r)) if live[r, a]]
        merged = {"?" * len(order): group.get(UNJUDGED, 0)}
        for pattern, count in letters(group).items():
            short = "".join("N" if pattern[i] == "M" else pattern[i] for i, _ in order)
            merged[short] = merged.get(short, 0) + count
        kept = sorted(((c, s) for s, c in merged.items() if c), reverse=True)  # ties by name
        projected.append((kept, [int(slot[r, a]) for _, a in order], sum(group.values())))
    depth = 8 * -(-max(1, *(len(kept) for kept, _, _ in projected)) // 8)  # multiples of 8 spare recompilations
    steps = _empty(depth, len(counts.records), n_slots)
    steps.source[:], steps.adds_target[:] = LEFT, 1
    for r, (kept, slots, left) in enumerate(projected):
        for j, (count, short) in enumerate(kept):
            steps.q[j, r] = count / left
            left -= count
            steps.articulated[j, r, slots] = [c == "I" for c in short]
            steps.judged[j, r, slots] = [c != "?" for c in short]
    return steps


def _heads(joint: Steps, n1: np.ndarray) -> int:
    """How many leading patterns are frequent in some record, in steps of 4 (to spare recompilations)."""
    reach = np.cumprod(np.vstack([np.ones((1, len(n1))), 1 - joint.q[:-1]]), 0)
    frequent = (n1 * reach * joint.q >= FREQUENT).any(1)
    last = int(np.flatnonzero(frequent).max(initial=0)) + 1
    return min(4 * -(-last // 4), len(joint.q))
