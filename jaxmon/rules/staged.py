"""Sampling rules as data: when an X=0 arm goes on, when a record's X=1 arm does; two stages (App. E.1) or many.

A rule decides at looks, on whole numbers, and on chains of the selection batch alone (ids below n): K0 of a pair's X=0
arm after m chains beside K1 of the whole selection batch of its record. A pair is dropped, goes on, or is settled: its
selection batch ends there. The estimation batch is drawn in full or not at all, after that, so its law given that it is
drawn is that of n fresh chains (App. D).

    two_stage   the paper's: one look after `stage1` chains, dropped where TE^ < drop_below; X=1 always in full
    staged      many looks, after the sequential test of TE = 0 against TE = delta = 1.25 tau (0.10 at tau = 0.08). With
                p11 known, the log likelihood ratio of m chains is about delta m (TE^ - delta/2) / v; a pair goes on
                while
                    TE^ >= delta/2 - v `patience` / (delta m),    v the largest p(1-p) on [K1/n - delta, K1/n].
                `patience` is about the least that keeps the paper's risks over all p01 (tests/test_staged.py).
                Where TE^ >= tau + w `settled` / (delta m), w the largest p(1-p) on [K1/n - 3 delta, K1/n], the filter's
                answer is known and the pair is settled with m selection chains; the filter then reads those m. A null
                pair passes it with probability 1.7e-4 at most, 1.5e-4 without settling (operating.Operation.passed).
                A record whose X=1 arm has fewer than `least` target answers among its first chains cannot hold an
                effect worth keeping (TE <= p11): it stops there and its X=0 arms are never drawn. The X=1 estimation
                batch is drawn only where some pair goes on to the end.

The last look of `staged` is after n chains and drops TE^ < delta/2 - v patience / (delta n), 0.042 at p = 1/2: such
pairs failed TE^ > tau by nearly two standard deviations. They have no estimation batch, so no bootstrap replicate
brings them back (bootstrap.py says the same of stage 1).

Exact operating characteristics of any rule: operating.py.

Knows: counts at looks -> go on or not. Does not know: chains, files, p10.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from jaxmon.rules.adaptive import Plan
from jaxmon.statistics.exact import threshold

RULES = ("two_stage", "staged")
LOOKS = (  # of n
    *(0.03, 0.04, 0.05, 0.065, 0.08, 0.1, 0.12, 0.145, 0.175),
    *(0.21, 0.25, 0.3, 0.36, 0.43, 0.52, 0.64, 0.8, 1.0),
)
PATIENCE, SETTLED = 3.6, 8.0
FIRST = 0.1  # of n: where an X=1 arm may stop
LEAST = 0.3  # of delta: with fewer target answers than this share of the first chains


@dataclasses.dataclass(frozen=True, eq=False)
class Rule:
    """A sampling rule for n chains per arm and batch.

    Attributes:
      first, least: the X=1 arm stops after `first` chains with fewer than `least` target answers among them.
      looks: numbers of chains of an X=0 arm, ascending, each in 1 ... n.
      most: int64 [looks, n + 1]: the most target answers among them with which a pair is kept, by K1; -1: none.
      enough: int64 [looks, n + 1]: the most with which it is settled; -1: none, and nothing is at the last look.
      always: the X=1 arm is drawn in full, whether a pair goes on or not.
    """

    n: int
    first: int
    least: int
    looks: tuple[int, ...]
    most: np.ndarray
    enough: np.ndarray
    always: bool

    def borders(self) -> tuple[int, ...]:
        """Chain ids at which an arm may stop."""
        return tuple(sorted({self.first, *self.looks, self.n}))


def make(name: str, plan: Plan) -> Rule:
    """The rule of that name.

    Raises: ValueError for an unknown name.
    """
    if name not in RULES:
        raise ValueError(f"sampling rule {name!r}: expected one of {', '.join(RULES)}")
    return two_stage(plan) if name == "two_stage" else staged(plan)


def two_stage(plan: Plan) -> Rule:
    """The paper's rule: TE^ = K1/n - K0/stage1 >= drop_below, decided on whole numbers."""
    looks = (plan.stage1,) if plan.stage1 else ()
    most = np.zeros((len(looks), plan.n + 1), np.int64)
    for j, m in enumerate(looks):
        m1, m0, need = threshold(plan.drop_below, plan.n, m, strict=False)
        most[j] = (np.arange(plan.n + 1) * m1 - need) // m0
    return Rule(plan.n, plan.n, 0, looks, np.clip(most, -1, None), np.full_like(most, -1), True)


def staged(plan: Plan, patience: float = PATIENCE, settled: float = SETTLED) -> Rule:
    """Many looks, see above; looks below one chain are left out, those that fall together are one."""
    n, delta = plan.n, 1.25 * plan.tau
    looks = tuple(sorted({round(s * n) for s in LOOKS if round(s * n) >= 1}))
    m, p11 = np.array(looks)[:, None], np.arange(n + 1) / n
    floor = delta / 2 - _variance(p11, delta) * patience / (delta * m)
    most = np.floor((p11 - floor) * m + 1e-9).astype(np.int64)
    ceiling = plan.tau + _variance(p11, 3 * delta) * settled / (delta * m)
    enough = np.ceil((p11 - ceiling) * m - 1e-9).astype(np.int64) - 1  # TE^ > ceiling
    enough[-1] = -1
    first = max(1, round(FIRST * n))
    least = int(np.floor(LEAST * delta * first))
    return Rule(n, first, least, looks, np.clip(most, -1, None), np.clip(enough, -1, None), False)


def _variance(p11: np.ndarray, width: float) -> np.ndarray:
    """The largest p(1-p) on [p11 - width, p11]."""
    p = np.clip(0.5, np.clip(p11 - width, 0, 1), p11)
    return p * (1 - p)


def stops(k1: int, rule: Rule) -> bool:
    """Whether a record's X=1 arm stops, from its target answers among the first `rule.first` chains."""
    return k1 < rule.least


def decide(k1: int, k0: int, look: int, rule: Rule) -> str:
    """`drop`, `settle` or `go on` after look number `look`: k1 of n selection chains, k0 of looks[look] chains."""
    if k0 > rule.most[look, k1]:
        return "drop"
    return "settle" if k0 <= rule.enough[look, k1] else "go on"
