"""Sampling rules as data: when an X=0 arm goes on, when a record's X=1 arm does; two stages (App. E.1) or many.

A rule decides at looks, on whole numbers, and on chains of the selection batch alone (ids below n): K0 of a pair's X=0
arm after m chains beside K1 of the whole selection batch of its record. The estimation batch is drawn in full or not at
all, after the last look, so its law given that it is drawn is that of n fresh chains (App. D).

    two_stage   the paper's: one look after `stage1` chains, dropped where TE^ < drop_below; X=1 always in full
    staged      many looks, after the sequential test of TE = 0 against TE = delta = 1.25 tau (0.10 at tau = 0.08). With
                p11 known, the log likelihood ratio of m chains is about delta m (TE^ - delta/2) / v; a pair goes on
                while
                    TE^ >= delta/2 - v `patience` / (delta m),    v the largest p(1-p) on [K1/n - delta, K1/n].
                `patience` is about the least that keeps the paper's risks over all p01 (tests/test_staged.py).
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

from jaxmon.adaptive import Plan
from jaxmon.exact import threshold

RULES = ("two_stage", "staged")
LOOKS = (0.04, 0.06, 0.09, 0.13, 0.2, 0.3, 0.45, 0.7, 1.0)  # of n
PATIENCE = 3.25
FIRST = 0.1  # of n: where an X=1 arm may stop
LEAST = 0.3  # of delta: with fewer target answers than this share of the first chains


@dataclasses.dataclass(frozen=True, eq=False)
class Rule:
    """A sampling rule for n chains per arm and batch.

    Attributes:
      first, least: the X=1 arm stops after `first` chains with fewer than `least` target answers among them.
      looks: numbers of chains of an X=0 arm, ascending, each in 1 ... n.
      most: int64 [looks, n + 1]: the most target answers among them with which a pair goes on, by K1; -1: none.
      always: the X=1 arm is drawn in full, whether a pair goes on or not.
    """

    n: int
    first: int
    least: int
    looks: tuple[int, ...]
    most: np.ndarray
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
    return Rule(plan.n, plan.n, 0, looks, np.clip(most, -1, None), True)


def staged(plan: Plan, patience: float = PATIENCE, shares: tuple[float, ...] = LOOKS) -> Rule:
    """Many looks, see above; shares of n below one chain are left out, looks that fall together are one."""
    n, delta = plan.n, 1.25 * plan.tau
    looks = tuple(sorted({round(s * n) for s in shares if round(s * n) >= 1}))
    p11 = np.arange(n + 1) / n
    p = np.clip(0.5, np.clip(p11 - delta, 0, 1), p11)  # where p(1-p) is largest in [p11 - delta, p11]
    v = p * (1 - p)
    floor = delta / 2 - v * patience / (delta * np.array(looks)[:, None])
    most = np.floor((p11 - floor) * np.array(looks)[:, None] + 1e-9).astype(np.int64)
    first = max(1, round(FIRST * n))
    least = int(np.floor(LEAST * delta * first))
    return Rule(n, first, least, looks, np.clip(most, -1, None), False)


def stops(k1: int, rule: Rule) -> bool:
    """Whether a record's X=1 arm stops, from its target answers among the first `rule.first` chains."""
    return k1 < rule.least


def goes_on(k1: int, k0: int, look: int, rule: Rule) -> bool:
    """Whether a pair goes on after look number `look`: k1 of n selection chains, k0 of looks[look] chains."""
    return bool(k0 <= rule.most[look, k1])
