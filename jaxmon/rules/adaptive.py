"""Two-stage sampling (App. E.1): most attributes do nothing, so their X=0 arms are given up after a few chains.

Stage 1 draws the X=1 arm in full (all attributes of a record share it) and the first `stage1` chains of every X=0 arm.
Pairs with TE^(1) < `drop_below` are dropped; the others are topped up to both batches.

Chain ids name the draws: ids [0, n) are the selection batch, [n, 2n) the estimation batch. Stage 1 of an X=0 arm is ids
[0, stage1), so its chains can only ever serve the selection batch. TE^(1) uses the selection half of the X=1 arm: the
paper's rule uses all 2n (worst-case discard rate 0.029 at TE = 0.10 instead of 0.034), but then estimation chains take
part in a selection.

A dropped pair stays in the counts table: n0 = stage1 in `select`, n0 = k0 = 0 in `estimate`.

Knows: the rule and the ids. Does not know: how chains are drawn.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike

from jaxmon.counting.counts_schema import BATCHES
from jaxmon.statistics.exact import threshold


@dataclasses.dataclass(frozen=True)
class Plan:
    """The paper's numbers: n chains per arm and batch, the filter they are made for, and the two-stage rule.

    stage1 = 0 switches the first stage off: every arm is drawn in full.
    """

    n: int = 1000
    tau: float = 0.08
    stage1: int = 200
    drop_below: float = 0.03

    def __post_init__(self) -> None:
        for name, good, expected in (
            ("n", self.n >= 1, "at least 1"),
            ("tau", 0 <= self.tau < 1, "0 <= tau < 1"),
            ("stage1", 0 <= self.stage1 <= self.n, f"0 to n = {self.n}: stage 1 is part of the selection batch"),
            (
                "drop_below",
                -1 <= self.drop_below <= self.tau,
                f"-1 to tau = {self.tau}: else passing pairs are dropped",
            ),
        ):
            if not good:
                raise ValueError(f"sampling plan {name} = {getattr(self, name)!r}: expected {expected}")


def batch_of(chain_id: int, plan: Plan) -> str:
    """The batch a chain belongs to, by its id.

    Raises: ValueError for an id outside [0, 2n).
    """
    if not 0 <= chain_id < 2 * plan.n:
        raise ValueError(f"chain id {chain_id} is outside [0, {2 * plan.n})")
    return BATCHES[chain_id // plan.n]


def keep(k1: ArrayLike, k0: ArrayLike, plan: Plan) -> np.ndarray:
    """Which pairs are topped up: TE^(1) = K1/n1 - K0/stage1 >= drop_below, decided on whole numbers.

    Args:
      k1: target answers among the first n chains of the record's X=1 arm, int, any shape.
      k0: target answers among the first `stage1` chains of the pair's X=0 arm, int, the same shape.
    Returns: bool, the same shape; all True without a first stage.
    """
    k1, k0 = np.asarray(k1, np.int64), np.asarray(k0, np.int64)
    if plan.stage1 == 0:
        return np.ones(k1.shape, bool)
    m1, m0, need = threshold(plan.drop_below, plan.n, plan.stage1, strict=False)
    return k1 * m1 - k0 * m0 >= need


def batch_sizes(kept: bool, plan: Plan) -> tuple[int, int]:
    """n0 of a pair's selection and estimation batch in the counts table."""
    return (plan.n, plan.n) if kept else (plan.stage1, 0)
