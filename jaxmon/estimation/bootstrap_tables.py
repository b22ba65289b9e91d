"""The data of a bootstrap as sampling tables: which binomials to draw, in which order, and what each adds to.

Everything is flat, record after record: records differ widely in pairs and patterns, and nothing is padded. Only pairs
with an estimation batch are there. A replicate of a record draws
    its arms, binomials of a fixed number of chains: K1 select; K0 select and K0 estimate of each pair; and
    a list of steps for the X=1 chains of the estimation batch. Each draws Bin(m, q), where m is (by `source`)
    LEFT      the chains that no earlier LEFT step has taken: with label patterns, every pattern is such a step, and the
              steps together are one multinomial; K1 is what they have taken
    TARGET    the replicate's K1;  PREVIOUS  the draw before: without patterns, J ~ Bin(K1, J/K1) and L ~ Bin(J, L/J)

What a step adds to is packed: a word holds several counters of `bits` bits, one for L of each pair of the record and,
where some target answer has no readable label, one for J (else J = K1). A draw times its word adds to all at once.

Knows: counts, patterns. Does not know: random numbers, filters.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jaxmon.counting.counts import Counts
from jaxmon.counting.patterns import UNJUDGED, Patterns, attribute_order, letters
from jaxmon.estimation import alias, cells
from jaxmon.estimation.cells import Draw, Fixed, Settings

LEFT, TARGET, PREVIOUS = range(3)
FREQUENT = 12  # a pattern expected this often is drawn from tables, a rarer one by inversion


class Steps(NamedTuple):
    """Steps of all records, P in all; those of record r are first[r] ... first[r + 1] - 1."""

    first: Any  # int32 [R + 1]
    source: Any  # int32 [P]
    q: Any  # float32 [P]
    adds: Any  # uint32 [P, W]


class Tables(NamedTuple):
    """All of a bootstrap's data; N live pairs, those of record r are first[r] ... first[r + 1] - 1."""

    first: Any  # int32 [R + 1]
    fixed: Fixed  # [N]
    data: Draw  # [N]: the counts themselves, for resampling records only
    cell: Any  # int32 [N]: attribute * C + class
    one: alias.Table  # [R]: K1 select
    zero: alias.Table  # [2 N]: K0 select, then K0 estimate
    n1: Any  # float32 [R]: X=1 chains of the estimation batch
    frequent: Steps
    windows: alias.Window  # [P frequent]
    rare: Steps
    pool: Any  # int32 [R]: records in the order of their classes
    start: Any  # int32 [R]: where the class of record i begins in `pool`
    size: Any  # int32 [R]: and how many records it has


class Layout(NamedTuple):
    """What is static. `pairs`: most live pairs of a record; `bits` per counter; `judged`: J has counters of its own."""

    attributes: int
    classes: int
    pairs: int
    bits: int
    judged: bool

    @property
    def counters(self) -> int:
        return self.pairs * (1 + self.judged)


def build(counts: Counts, patterns: Patterns | None, settings: Settings) -> tuple[Tables, Layout]:
    """Tables in NumPy, float64 and int64 but for the packed words; bootstrap.py casts them once."""
    fixed, data = cells.split(counts, settings)
    r, a = np.nonzero(fixed.live)
    first = np.concatenate([[0], np.cumsum(fixed.live.sum(1))])
    n1 = counts.n1[:, :, 1].max(1).astype(float)
    unread = bool((data.judged != data.k1).any())
    size = (len(counts.attributes), len(counts.labels), max(1, int(np.diff(first).max())))
    layout = Layout(*size, int(n1.max()).bit_length(), unread)
    lists = (
        _marginal(counts, data, fixed.live, layout)
        if patterns is None
        else _joint(counts, patterns, fixed.live, layout)
    )
    source, q, reach, adds = (np.concatenate(x) for x in zip(*lists, strict=True))
    owner = np.repeat(np.arange(len(lists)), [len(x[0]) for x in lists])
    often = (n1[owner] * reach * q >= FREQUENT) | (patterns is None)
    part = lambda m: Steps(np.searchsorted(owner[m], np.arange(len(n1) + 1)), source[m], q[m], _pack(adds[m], layout))
    hits, chains = (np.concatenate([x[r, a, 0], x[r, a, 1]]) for x in (counts.k0, counts.n0))
    hits1, chains1 = (x[:, :, 0].max(1) for x in (counts.k1, counts.n1))
    return Tables(
        first,
        Fixed(*(x[r, a] for x in fixed)),
        Draw(*(x[r, a] for x in data)),
        a * len(counts.labels) + counts.label_of[r],
        alias.table(chains1, hits1 / chains1),
        alias.table(chains, hits / chains),
        n1,
        part(often),
        alias.window(n1[owner[often]], reach[often], q[often]),
        part(~often),
        *_resampling(counts, settings.within_class),
    ), layout


def _resampling(counts: Counts, within_class: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n_records = len(counts.records)
    if not within_class:
        return np.arange(n_records), np.zeros(n_records, int), np.full(n_records, n_records)
    size = np.bincount(counts.label_of, minlength=len(counts.labels))
    start = np.cumsum(size) - size
    return np.argsort(counts.label_of, kind="stable"), start[counts.label_of], size[counts.label_of]


def _pack(flags: np.ndarray, layout: Layout) -> np.ndarray:
    """bool [P, counters] -> uint32 [P, W], a one at the lowest bit of every counter that is set."""
    each = 32 // layout.bits
    words = -(-flags.shape[1] // each)
    flags = np.pad(flags, ((0, 0), (0, words * each - flags.shape[1]))).reshape(len(flags), words, each)
    return (
        (flags.astype(np.uint64) << np.uint64(layout.bits) * np.arange(each, dtype=np.uint64)).sum(-1).astype(np.uint32)
    )


List = tuple[
    np.ndarray, np.ndarray, np.ndarray, np.ndarray
]  # of one record: source, q, share of n1 it draws from, adds


def _marginal(counts: Counts, data: Draw, live: np.ndarray, layout: Layout) -> list[List]:
    """Steps K1, then J and L of each pair: labels independent over attributes given K1."""
    lists = []
    for r, some in enumerate(live):
        k1, judged, articulated = (x[r, some] for x in (data.k1, data.judged, data.articulated))
        pairs, n1 = len(k1), max(1.0, float(counts.n1[r, :, 1].max()))
        q, reach = np.ones(1 + 2 * pairs), np.ones(1 + 2 * pairs)
        q[0] = k1.max(initial=0) / n1
        q[1::2], q[2::2] = judged / np.maximum(k1, 1), articulated / np.maximum(judged, 1)
        reach[1::2], reach[2::2] = k1 / n1, judged / n1
        adds = np.zeros((1 + 2 * pairs, layout.counters), bool)
        at = np.arange(pairs)
        adds[2 + 2 * at, at] = True
        if layout.judged:
            adds[1 + 2 * at, layout.pairs + at] = True
        lists.append((np.array([LEFT, *[TARGET, PREVIOUS] * pairs]), q, reach, adds))
    return lists


def _joint(counts: Counts, patterns: Patterns, live: np.ndarray, layout: Layout) -> list[List]:
    """One LEFT step per pattern of target answers, most frequent first.

    Patterns are first projected on what the scores need, the live attributes and the classes {N, M}, {I}, {?}: patterns
    that agree there are one.
    """
    lists = []
    for r, record in enumerate(counts.records):
        group = patterns.get((record, "estimate"), {})
        place = {int(a): i for i, a in enumerate(attribute_order(counts, r))}
        columns = [place[int(a)] for a in np.flatnonzero(live[r])]  # of the live pairs, in a pattern
        found = letters(group)
        words = np.frombuffer("".join(found).encode(), np.uint8).reshape(len(found), len(place))[:, columns]
        words = np.vstack([words, np.full((1, len(columns)), ord("?"), np.uint8)])
        words[words == ord("M")] = ord("N")
        words = np.ascontiguousarray(words) if columns else np.zeros((0, 1), np.uint8)
        each = words.shape[1]
        texts, of = np.unique(words.view(f"S{each}").ravel(), return_inverse=True)
        taken = np.bincount(of, [*found.values(), group.get(UNJUDGED, 0)][: len(of)], len(texts))
        order = np.argsort(taken, kind="stable")[::-1]  # ties by letters
        order = order[taken[order] > 0]
        kept, taken = texts[order].view(np.uint8).reshape(-1, each), taken[order]
        left = sum(group.values()) - np.cumsum(taken) + taken
        adds = np.zeros((len(kept), layout.counters), bool)
        adds[:, : len(columns)] = kept == ord("I")
        if layout.judged:
            adds[:, layout.pairs : layout.pairs + len(columns)] = kept != ord("?")
        lists.append((np.full(len(kept), LEFT), taken / left, left / max(1, sum(group.values())), adds))
    return lists
