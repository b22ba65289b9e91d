"""A second count, chain by chain with one object each: the reference of `jaxmon.counting.tally` in tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from jaxmon.arms import X1, x0
from jaxmon.counting.counts_schema import BATCHES
from jaxmon.counting.tally import COUNTED, Drawn, Labels
from jaxmon.records import Record
from jaxmon.sampling.parsing import Outcome


def table(chains: Iterable[Drawn]) -> pa.Table:
    """Chains as the columns that `tally` reads."""
    rows = [{"chain": c.chain, "outcome": str(c.outcome), "code": c.code} for c in chains]
    return pa.Table.from_pylist(rows, COUNTED)


def _batch(chains: Iterable[Drawn], batch: int, n: int) -> list[Drawn]:
    return [c for c in chains if batch * n <= c.chain < (batch + 1) * n]


def _number(chains: Iterable[Drawn], *outcomes: Outcome) -> int:
    return sum(c.outcome in outcomes for c in chains)


def tally(
    record: Record, drawn: Mapping[str, list[Drawn]], labels: Labels, target: Mapping[str, float], n: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What `jaxmon.counting.tally.tally` says, from lists of chains."""
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
        return "truncated"
    if chain.outcome is not Outcome.ANSWERED:
        return "unparsed"
    if chain.code != target:
        return "other"
    return "unjudged" if letters is None else letters
