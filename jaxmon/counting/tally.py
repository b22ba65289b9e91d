"""From chains and labels to the counts table: totals are always recomputed from the rows, never carried along.

Knows: how a record's arms become rows of counts and patterns. Does not know: files, models, scores.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from jaxmon.arms import X1, x0
from jaxmon.counting.counts_schema import BATCHES
from jaxmon.counting.patterns import OTHER, TRUNCATED, UNJUDGED, UNPARSED
from jaxmon.records import Record
from jaxmon.sampling.parsing import Outcome


@dataclasses.dataclass(frozen=True)
class Drawn:
    """One drawn chain, as far as counting goes: its id, how it ended, and its answer (None unless answered)."""

    chain: int
    outcome: Outcome
    code: str | None


Labels = Mapping[
    int, str
]  # chain id -> pattern letters over the studied attributes, alphabetical (`jaxmon.counting.patterns`)


def _batch(chains: Iterable[Drawn], batch: int, n: int) -> list[Drawn]:
    return [c for c in chains if batch * n <= c.chain < (batch + 1) * n]


def _number(chains: Iterable[Drawn], *outcomes: Outcome) -> int:
    return sum(c.outcome in outcomes for c in chains)


def tally(
    record: Record, drawn: Mapping[str, list[Drawn]], labels: Labels, target: Mapping[str, float], n: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of the counts table and of the pattern table that one record makes.

    Args:
      record: the whole record; its attributes under study are those that have an arm in `drawn`.
      drawn: arm -> its chains, in any order; a chain given twice is counted once.
      labels: the judge's labels of target answers; the study judges the estimation batch alone.
      target: arm -> no-CoT probability of the target answer (p10 for X = 1, p00 for an X = 0 arm).
      n: chains per batch.

    Returns:
      (counts rows, pattern rows), see `jaxmon.counting.counts` and `jaxmon.counting.patterns`.
    """
    once = {arm: list({c.chain: c for c in chains}.values()) for arm, chains in drawn.items()}
    studied = [a.name for a in record.attributes if x0(a.name) in once]
    counts, patterns = [], []
    for b, batch in enumerate(BATCHES):
        one = _batch(once[X1], b, n)
        seen = {c.chain: labels[c.chain] for c in one if c.code == record.target and c.chain in labels}
        letters = dict(zip(sorted(studied), zip(*seen.values(), strict=True), strict=True)) if seen else {}
        for name in studied:
            zero = _batch(once[x0(name)], b, n)
            votes = Counter(letters.get(name, ()))
            counts.append(
                {
                    "record": record.id,
                    "attribute": name,
                    "label": record.label,
                    "batch": batch,
                    "n1": len(one),
                    "k1": sum(c.code == record.target for c in one),
                    "n0": len(zero),
                    "k0": sum(c.code == record.target for c in zero),
                    "judged": len(seen) - votes["?"],
                    "l": votes["I"],
                    "p10": target[X1],
                    "p00": target[x0(name)],
                    "truncated1": _number(one, Outcome.TRUNCATED),
                    "truncated0": _number(zero, Outcome.TRUNCATED),
                    "unparsed": _number([*one, *zero], Outcome.UNCLOSED, Outcome.MALFORMED),
                }
            )
        found = Counter(_pattern(c, record.target, seen.get(c.chain)) for c in one)
        patterns += [{"record": record.id, "batch": batch, "pattern": p, "count": k} for p, k in sorted(found.items())]
    return counts, patterns


def _pattern(chain: Drawn, target: str, letters: str | None) -> str:
    if chain.outcome is Outcome.TRUNCATED:
        return TRUNCATED
    if chain.outcome is not Outcome.ANSWERED:
        return UNPARSED
    if chain.code != target:
        return OTHER
    return UNJUDGED if letters is None else letters
