"""Can an attribute's influence be applied apart from the chain of thought? Direct effects against total effects (§6).

DE of a chain is the change of its early answer at i* when the sentence is put back before the frozen chain; DE/TE near
1 says level 1 (the chain carries the rest of the answer, the attribute is applied at its end), near 0 level 2 (it is
woven into the chain). An exposure window shows the sentence during m steps only; what no window of m steps can do needs
more than m consecutive steps (level 3.m, §9).

Errors are of the records alone: every record keeps its own numerator and denominator (paired), and the sampling noise
of its chains is part of how records differ.

Knows: effects per record as arrays. Does not know: models, chains, files.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

CONFIDENCE = 0.95
DIRECT, WOVEN = 0.5, 0.25  # DE/TE: above the first it is direct, below the second woven in; between, undecided
LEAST = 6  # records: with fewer no level is named (as n_S > 5 for scores, §5.2)
ENOUGH = 0.5  # share of TE from which a window brings the effect
MIN_VALID = 0.9  # as for scores (App. E): least share of replicates with TE > 0


@dataclasses.dataclass(frozen=True)
class Ratio:
    """A ratio of means with its interval, or the reason why there is none."""

    value: float | None
    low: float | None
    high: float | None
    records: int
    reason: str = ""


def weights(records: int, replicates: int, seed: int) -> np.ndarray:
    """How often each record is drawn in each replicate: int [B, R]; the same for every quantity of a study."""
    return np.random.default_rng(seed).multinomial(records, np.full(records, 1 / records), replicates)


def ratio(numerator: np.ndarray, total: np.ndarray, replicates: int = 10_000, seed: int = 0) -> Ratio:
    """mean(numerator) / mean(total) over records, with the paired bootstrap over records.

    Args:
      numerator: float [R], or [R, S] for the largest of S alternatives: the maximum is taken again in each replicate,
        so that the upper bound holds for all S together.
      total: float [R], the total effects of the same records.

    Returns: the ratio; None where there are fewer than two records, TE is not positive, or TE <= 0 in more than a tenth
      of the replicates (the interval would be unbounded).
    """
    count = len(total)
    if count < 2:
        return Ratio(None, None, None, count, "fewer than two records")
    if total.mean() <= 0:
        return Ratio(None, None, None, count, "TE is not positive")
    alternatives = numerator.reshape(count, -1)
    drawn = weights(count, replicates, seed)
    below = drawn @ total / count
    valid = below > 0
    if valid.mean() < MIN_VALID:
        return Ratio(None, None, None, count, "unbounded: TE is not clearly positive")
    values = (drawn[valid] @ alternatives).max(-1) / count / below[valid]
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return Ratio(float(alternatives.mean(0).max() / total.mean()), float(low), float(high), count)


@dataclasses.dataclass(frozen=True)
class Level:
    """What the evidence allows to say of an attribute's level (§1), and in words why."""

    name: str  # "1", "2", "3.m" with the least m, or "undecided"
    reason: str


def level(direct: Ratio, widths: Sequence[int], exposed: Sequence[Ratio]) -> Level:
    """The level rule, for attributes that have an effect through a necessary chain (TE > τ, p10 < 0.01).

    1 where DE/TE lies above 0.5 with its whole interval. At least 2 where it lies below 0.25; then, window by window
    in order of width: as long as the best window of m steps brings less than half of TE with its whole interval,
    more than m consecutive steps are needed. So 3.m claims: no tested window of fewer than m steps is enough.

    Assumptions: windows are contiguous and begin at the tested steps only; what a window leaves behind is the chain's
    tokens and states, all of which stay visible; a prompt that changes under a chain is new to the model, so an absent
    effect can also mean that it was confused (which the widest window, the X = 1 arm, cannot show). The claim is
    conservative in the other direction: an effect that a short window does have refutes 3.m.

    Args:
      direct: DE/TE.
      widths: m of each window, rising; exposed: its best effect over all starts, over TE.
    """
    if direct.value is None or direct.low is None or direct.high is None:
        return Level("undecided", direct.reason)
    if direct.records < LEAST:
        return Level("undecided", f"fewer than {LEAST} records")
    if direct.low > DIRECT:
        return Level("1", f"DE/TE is above {DIRECT}: the sentence can be applied after the chain")
    if direct.high >= WOVEN:
        return Level("undecided", f"the interval of DE/TE is neither above {DIRECT} nor below {WOVEN}")
    enough = [i for i, e in enumerate(exposed) if e.high is None or e.high >= ENOUGH]
    if not exposed or enough[:1] == [0]:
        return Level("2", f"DE/TE is below {WOVEN}; that more than one step is needed is not shown")
    least = widths[enough[0] - 1] + 1 if enough else widths[-1] + 1
    return Level(f"3.{least}", f"DE/TE is below {WOVEN}, and no window of {least - 1} steps brings half of TE")
