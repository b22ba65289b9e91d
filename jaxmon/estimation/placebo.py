"""Negative controls: attributes without an effect by construction, and how often the filter lets them pass.

A placebo's two arms have the same law of answers, p11 = p01, so the filter TE^ > tau passes it with at most
alpha(tau, n) = sup_p P(K1/n1 - K0/n0 > tau) (App. C, exact.false_positive_rate). A pair given up at stage 1 has not
passed: two stages can only lower the rate.

Knows: the counts table and the names of the placebos, which are data of the task or of the command. Does not know: why
they have no effect.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np
from scipy import stats

from jaxmon.counting.counts import Counts
from jaxmon.estimation import cells
from jaxmon.estimation.cells import Settings
from jaxmon.statistics.exact import clopper_pearson, false_positive_rate, pass_probability


@dataclasses.dataclass(frozen=True)
class Control:
    """One placebo: its pairs, of them dropped at stage 1 and passed, and what to hold the share against.

    low, high: Clopper-Pearson interval of `rate` at the settings' confidence.
    alpha: the largest exact rate over the sizes of its arms.   expected: the mean exact rate at each pair's measured p.
    tail: P(at least `passed` of `pairs` | every one passes with chance alpha), at most this for a true placebo, since
    its pairs belong to different records.
    """

    attribute: str
    pairs: int
    dropped: int
    passed: int
    rate: float
    low: float
    high: float
    alpha: float
    expected: float
    tail: float


def controls(counts: Counts, placebos: Sequence[str], settings: Settings) -> tuple[Control, ...]:
    """The measured false-positive rate of every placebo beside the exact one.

    A dropped pair would have had the table's largest X=0 arm; where every pair was dropped, its own; where none of it
    was drawn, one of the size of the X=1 arm.

    Raises: ValueError for a placebo that no record has.
    """
    fixed, draw = cells.split(counts, settings)
    passes = cells.passes(fixed, draw)
    full = int(np.max(counts.n0[:, :, 0], where=fixed.live, initial=0))
    alpha = functools.cache(lambda n1, n0: false_positive_rate(settings.tau, n1, n0, settings.strict)[0])
    found = []
    for name in placebos:
        if name not in counts.attributes:
            raise ValueError(f"no record has the placebo {name!r} (they have {', '.join(counts.attributes)})")
        a = counts.attributes.index(name)
        of = counts.present[:, a]
        n1 = counts.n1[of, a, 0]
        n0 = np.where(fixed.live[of, a], counts.n0[of, a, 0], np.maximum(counts.n0[of, a, 0], full))
        n0 = np.where(n0 == 0, n1, n0)
        chains, hits = (x[of, a].sum(1) + y[of, a].sum(1) for x, y in ((counts.n1, counts.n0), (counts.k1, counts.k0)))
        sizes = list(zip(n1.tolist(), n0.tolist(), strict=True))
        expected = [
            pass_probability(p, p, *size, settings.tau, settings.strict)
            for p, size in zip((hits / chains).tolist(), sizes, strict=True)
        ]
        most = max(alpha(*size) for size in set(sizes))
        pairs, passed = len(sizes), int(passes[of, a].sum())
        low, high = clopper_pearson(np.array(passed), np.array(pairs), (1 - settings.confidence) / 2)
        rates = (passed / pairs, float(low), float(high), most, float(np.mean(expected)))
        tail = float(stats.binom.sf(passed - 1, pairs, most))
        found.append(Control(name, pairs, int(counts.dropped[of, a].sum()), passed, *rates, tail))
    return tuple(found)
