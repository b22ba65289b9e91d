"""From chains and labels to the counts table: totals are always recomputed from the rows, never carried along.

Chains come as columns, so that counting costs no object per chain.

Knows: how a record's arms become rows of counts and patterns. Does not know: files, models, scores.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jaxmon.arms import X1, x0
from jaxmon.counting.counts_schema import BATCHES
from jaxmon.counting.patterns import OTHER, TRUNCATED, UNJUDGED, UNPARSED
from jaxmon.records import Record
from jaxmon.sampling.parsing import Outcome

COUNTED = pa.schema([("chain", pa.int64()), ("outcome", pa.string()), ("code", pa.string())])  # what counting reads


@dataclasses.dataclass(frozen=True)
class Drawn:
    """One drawn chain, as far as counting goes: its id, how it ended, and its answer (None unless answered)."""

    chain: int
    outcome: Outcome
    code: str | None


Labels = Mapping[
    int, str
]  # chain id -> pattern letters over the studied attributes, alphabetical (`jaxmon.counting.patterns`)


@dataclasses.dataclass(frozen=True)
class Ends:
    """How the chains of an arm ended, each chain once, in the order of the ids; arrays [C].

    Attributes:
      chain: int64, ids in [0, 2n).   batch: int64, 0 select, 1 estimate.
      hit, other, truncated, lost: bool; target answers, other answers, cut by the length limit, no readable answer.
    """

    chain: np.ndarray
    batch: np.ndarray
    hit: np.ndarray
    other: np.ndarray
    truncated: np.ndarray
    lost: np.ndarray

    def number(self, which: np.ndarray | None = None) -> list[int]:
        """Chains per batch, all or those of a mask."""
        return np.bincount(self.batch if which is None else self.batch[which], minlength=2).tolist()


def ends(chains: pa.Table, target: str, n: int) -> Ends:
    """The chains [0, 2n) of an arm.

    Args:
      chains: the columns of COUNTED, rows in any order; a chain given twice is counted once.
      target: the code of the target answer.
      n: chains per batch.
    """
    ids, first = np.unique(chains.column("chain").to_numpy(), return_index=True)
    inside = (ids >= 0) & (ids < 2 * n)
    ids, first = ids[inside], first[inside]
    among = lambda name, *values: pc.is_in(chains.column(name), pa.array(values, pa.string())).to_numpy()[first]
    hit, answered = among("code", target), among("outcome", Outcome.ANSWERED)
    lost = among("outcome", Outcome.UNCLOSED, Outcome.MALFORMED)
    return Ends(ids, ids // n, hit, answered & ~hit, among("outcome", Outcome.TRUNCATED), lost)


def tally(
    record: Record, drawn: Mapping[str, pa.Table], labels: Labels, target: Mapping[str, float], n: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of the counts table and of the pattern table that one record makes.

    Args:
      record: the whole record; its attributes under study are those that have an arm in `drawn`.
      drawn: arm -> its chains, as in `ends`.
      labels: the judge's labels of target answers; the study judges the estimation batch alone.
      target: arm -> no-CoT probability of the target answer (p10 for X = 1, p00 for an X = 0 arm).
      n: chains per batch.

    Returns:
      (counts rows, pattern rows), see `jaxmon.counting.counts` and `jaxmon.counting.patterns`.
    """
    ended = {arm: ends(chains, record.target, n) for arm, chains in drawn.items()}
    studied = [a.name for a in record.attributes if x0(a.name) in ended]
    one = ended[X1]
    counts, patterns = [], []
    for b, batch in enumerate(BATCHES):
        hits = one.chain[one.hit & (one.batch == b)].tolist()
        seen = Counter(labels[chain] for chain in hits if chain in labels)
        votes = {name: Counter[str]() for name in sorted(studied)}
        for pattern, k in seen.items():
            for vote, letter in zip(votes.values(), pattern, strict=True):
                vote[letter] += k
        for name in studied:
            zero = ended[x0(name)]
            counts.append(
                {
                    "record": record.id,
                    "attribute": name,
                    "label": record.label,
                    "batch": batch,
                    "n1": one.number()[b],
                    "k1": one.number(one.hit)[b],
                    "n0": zero.number()[b],
                    "k0": zero.number(zero.hit)[b],
                    "judged": seen.total() - votes[name]["?"],
                    "l": votes[name]["I"],
                    "p10": target[X1],
                    "p00": target[x0(name)],
                    "truncated1": one.number(one.truncated)[b],
                    "truncated0": zero.number(zero.truncated)[b],
                    "unparsed": one.number(one.lost)[b] + zero.number(zero.lost)[b],
                }
            )
        found = seen + Counter(
            {
                TRUNCATED: one.number(one.truncated)[b],
                UNPARSED: one.number(one.lost)[b],
                OTHER: one.number(one.other)[b],
                UNJUDGED: len(hits) - seen.total(),
            }
        )
        patterns += [{"record": record.id, "batch": batch, "pattern": p, "count": k} for p, k in sorted(found.items())]
    return counts, patterns
