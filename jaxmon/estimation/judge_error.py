"""Judge error carried into the scores (Rogan & Gladen 1978): an articulation rate seen through an imperfect judge.

With sensitivity Se = P(judge says INFLUENTIAL | it is) and false-positive rate F = 1 - specificity, a true rate pi is
seen as Se pi + F (1 - pi), so that

    pi_Z corrected = (L/J - F) / (Se - F).

It is applied to every pair of record and attribute before R divides it, and a pair's rate may leave [0, 1]; only the
means over pairs are clipped (table.py). Clipped pair by pair, an attribute that is never said would come out positive:
half of the noise is below 0. The uncertainty of Se and F joins the
bootstrap: each replicate draws them anew from Beta(k + 1/2, n - k + 1/2). Labels of one chain are not independent, so k
and n are counts divided by the design effect of chains as clusters (as in Korn & Graubard 1998).

Assumed: Se and F are the same for every attribute and record, and the labelled chains are like those of the study.

Knows: counts of right and wrong labels. Does not know: who made them, files.
"""

from __future__ import annotations

import dataclasses
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmon.estimation.cells import Draw
from jaxmon.statistics.exact import clopper_pearson


@dataclasses.dataclass(frozen=True)
class Rate:
    """k of n labels, both divided by the design effect; n > 0."""

    k: float
    n: float

    def __post_init__(self) -> None:
        if not 0 <= self.k <= self.n or self.n <= 0:
            raise ValueError(f"a rate of {self.k:g} in {self.n:g} labels")

    @property
    def value(self) -> float:
        return self.k / self.n


@dataclasses.dataclass(frozen=True)
class JudgeError:
    """A judge's error rates against reference labels; `judge` and `rubric` say whose."""

    judge: str
    rubric: str
    sensitivity: Rate
    false_positive: Rate

    def __post_init__(self) -> None:
        if self.sensitivity.value <= self.false_positive.value:
            raise ValueError(
                f"judge {self.judge}: it says INFLUENTIAL of {self.sensitivity.value:.2f} of what is and of "
                f"{self.false_positive.value:.2f} of what is not; labels that tell nothing cannot be corrected"
            )

    @property
    def betas(self) -> np.ndarray:
        """float32 [2, 2]: the Beta parameters of Se and of F."""
        rates = (self.sensitivity, self.false_positive)
        return np.array([[r.k + 0.5, r.n - r.k + 0.5] for r in rates], np.float32)


def clustered(k: np.ndarray, n: np.ndarray) -> Rate:
    """A rate from counts per chain, divided by the design effect max(1, cluster variance / binomial variance).

    With p = sum k / sum n over C chains the cluster variance is C/(C-1) sum (k_c - p n_c)^2 / (sum n)^2.

    Args: k, n: int [C], labels of each chain that are so, and that could be.
    Raises: ValueError where there is no label.
    """
    total, chains = n.sum(), int((n > 0).sum())
    if total == 0:
        raise ValueError("no reference label to measure a rate on")
    p = k.sum() / total
    binomial = p * (1 - p) / total
    effect = 1.0
    if binomial > 0 and chains > 1:
        spread = chains / (chains - 1) * ((k - p * n) ** 2).sum() / total**2
        effect = max(1.0, float(spread / binomial))
    return Rate(float(k.sum() / effect), float(total / effect))


def corrected(draw: Draw, sensitivity: Any, false_positive: Any, xp: ModuleType = np) -> Draw:
    """The draw with L replaced by J times the corrected rate, which may leave [0, J]; NaN where Se <= F."""
    one = xp.ones_like(draw.judged)
    seen = draw.articulated / xp.maximum(draw.judged, one)
    gap = sensitivity - false_positive
    rate = (seen - false_positive) / xp.where(gap > 0, gap, xp.ones_like(gap))
    return draw._replace(articulated=xp.where(gap > 0, draw.judged * rate, draw.judged * xp.nan))


def drawn(key: jax.Array, betas: jax.Array) -> tuple[jax.Array, jax.Array]:
    """One replicate's (Se, F), float32 scalars."""
    keys = jax.random.split(key)
    se, f = (jax.random.beta(keys[i], betas[i, 0], betas[i, 1], dtype=jnp.float32) for i in range(2))
    return se, f


def upper(high: float, error: JudgeError, alpha: float) -> float:
    """An upper bound on a mean of corrected rates (or of M) from one of raw ones: high / Se_low.

    (pi - F)/(Se - F) <= pi/Se wherever pi <= Se. Se_low is exact, wrong at most alpha.
    """
    low, _ = clopper_pearson(error.sensitivity.k, error.sensitivity.n, alpha)
    return min(1.0, high / float(low)) if low > 0 else 1.0
