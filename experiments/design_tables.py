"""The design of a study as tables: noise, error rates and bias over (M, TE, tau, n), from jaxmon's exact functions.

`table1` has the form of the paper's Table 1, the others hold the curves of its Figs. 7-10 (App. C-E). The panels of
these figures are our reading of "design and bias": which curves the paper draws is not known to us.

Knows: formulas and grids. Does not know: files, figures, flags.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping

import numpy as np

from jaxmon.statistics import exact, ratio, ratio_intervals

Rows = list[dict[str, float | int | str]]
REGIMES = {"small": 0.065, "moderate": 0.24}  # M whose worst delta SD is Table 1's 0.033 and 0.082


@dataclasses.dataclass(frozen=True)
class Design:
    """The study to look at; defaults are the paper's (§3, App. C-E). p11: for curves that need one."""

    n: int = 1000
    tau: float = 0.08
    stage1: int = 200
    drop_below: float = 0.03
    p11: float = 0.54
    points: int = 15  # of each curve

    def __post_init__(self) -> None:
        for name, good, expected in (
            ("n", 10 <= self.n <= 100_000, "10 to 100,000"),
            ("tau", 0 < self.tau < 0.5, "between 0 and 0.5"),
            ("stage1", 1 <= self.stage1 <= self.n, f"1 to n = {self.n}"),
            ("drop_below", -1 <= self.drop_below <= self.tau, f"-1 to tau = {self.tau:g}"),
            ("p11", self.tau < self.p11 <= 1, f"above tau = {self.tau:g}, at most 1"),
            ("points", self.points >= 2, "at least 2"),
        ):
            if not good:
                raise ValueError(f"design {name} = {getattr(self, name)!r}: expected {expected}")

    @property
    def sizes(self) -> tuple[int, ...]:
        """n with the paper's comparison, a tenth of it."""
        return (max(10, self.n // 10), self.n)

    @property
    def taus(self) -> tuple[float, ...]:
        return tuple(sorted({0.05, self.tau, 0.1}))


def table1(d: Design) -> Rows:
    """Per (n, tau): worst SD(TE^), alpha for > and >=, least power at three effects, SD of M^ at TE = tau (App. C)."""
    rows: Rows = []
    for n in d.sizes:
        for tau in d.taus:
            row: dict[str, float | int | str] = {"n": n, "tau": tau, "sd_te": exact.effect_sd(0.5, 0.5, n, n)}
            row |= {
                f"alpha_{name}": exact.false_positive_rate(tau, n, n, strict)[0]
                for name, strict in (("above", True), ("at_least", False))
            }
            row |= {f"power_{te:g}": exact.power(te, tau, n, n)[0] for te in (0.1, 0.15, 0.2)}
            for name, m in REGIMES.items():
                sd, p11 = ratio.worst_delta_sd(m, tau, n)
                row |= {f"sd_m_{name}_delta": sd, f"sd_m_{name}_exact": _law(p11, tau, m, n).sd}
            rows.append(row)
    return rows


def figure7(d: Design) -> Rows:
    """alpha(tau, n) for > over the number of chains."""
    sizes = np.unique([d.n, *np.geomspace(max(20, d.n // 50), 2 * d.n, d.points).round(-1).astype(int)])
    return [
        {"tau": tau, "n": int(n), "alpha": exact.false_positive_rate(tau, int(n), int(n))[0]}
        for tau in d.taus
        for n in sizes
    ]


def figure8(d: Design) -> Rows:
    """SD of M^ over TE: worst to first order, and exact at the same p11."""
    rows: Rows = []
    for n in d.sizes:
        for m in (*REGIMES.values(), 0.5, 1.0):
            for te in _effects(d, d.tau):
                sd, p11 = ratio.worst_delta_sd(m, te, n)
                rows.append({"n": n, "m": m, "te": te, "delta": sd, "exact": _law(p11, te, m, n).sd})
    return rows


def figure9(d: Design) -> Rows:
    """Bias of M^ over TE, one batch for filter and score (shared) or two (split), and without clipping (split)."""
    rows: Rows = []
    for m in (0.07, 0.3, 0.7, 1.0):
        for te in _effects(d, d.tau / 2):
            split, shared = ratio.bias(m, te, d.p11, d.n), ratio.bias(m, te, d.p11, d.n, d.tau)
            rows.append({"m": m, "te": te, "shared": shared.total, "split": split.total, "unclipped": split.ratio})
    return rows


def figure10(d: Design) -> Rows:
    """Worst stage-1 discard probability over TE, X=1 arm of one batch or of both (App. E.1)."""
    return [
        {
            "chains": n1,
            "te": te,
            "discarded": exact.discard_probability(te, n1, d.stage1, d.drop_below)[0],
            "passes_filter": exact.power(te, d.tau, d.n, d.n)[0],
        }
        for n1 in (d.n, 2 * d.n)
        for te in _effects(d, 0.0)
    ]


def sources(d: Design) -> Rows:
    """Where printed numbers disagree or leave something open; always at the paper's n = 1000 and tau = 0.08."""

    def alpha(tau: float, strict: bool) -> float:
        return exact.false_positive_rate(tau, 1000, 1000, strict)[0]

    def short(m: float) -> float:
        return 1 - ratio.delta_sd(m, 0.08, 0.54, 1000) / ratio.law(0.54, 0.46, m * 0.08 / 0.54, 1000, 1000).sd

    def noise(m: float) -> float:
        return _law(ratio.worst_delta_sd(m, 0.08, 1000)[1], 0.08, m, 1000).sd

    def biased(m: float, strict: bool) -> float:
        return ratio.bias(m, 0.08, 0.54, 1000, 0.08, strict).total

    def missed(te: float, n1: int) -> float:
        return exact.discard_probability(te, n1, 200, 0.03)[0]

    fieller = ratio_intervals.coverage(ratio_intervals.fieller, 0.3, 0.08, 0.54, 1000)
    lines = [
        (
            "alpha(0.1, 1000) or alpha(0.08, 1000)",
            "1.8e-4, in one place for tau = 0.1",
            f"tau = 0.08: {alpha(0.08, False):.4g} (>=), {alpha(0.08, True):.4g} (>); "
            f"tau = 0.1: {alpha(0.1, False):.3g} (>=), {alpha(0.1, True):.3g} (>)",
            "The printed number belongs to tau = 0.08; at 0.1 the rate is about 45 times smaller. 4.2e-6 is the value "
            "for >=. This project filters by >.",
        ),
        (
            "SD of M in Table 1, small and moderate M0",
            "0.033 and 0.082, the M0 not given",
            "; ".join(
                f"M = {m:g}: {ratio.worst_delta_sd(m, 0.08, 1000)[0]:.4f} to first order, {noise(m):.4f} exact"
                for m in (*REGIMES.values(), 0.034, 0.149)
            ),
            "Two readings fit: the first-order SD at M = 0.065 and 0.24, or the exact SD at M = 0.034 and 0.149.",
        ),
        (
            "How much too small the first-order SD is at TE = 0.08",
            "21 to 27 %",
            ", ".join(f"M = {m:g}: {100 * short(m):.0f} %" for m in (0.07, 0.24, 0.3, 0.4, 0.5, 0.7)),
            "The range holds for M from about 0.25 to 0.4. Near M = 1 clipping makes the exact SD the smaller one.",
        ),
        (
            "Shared-sample bias at TE = 0.08",
            "-0.046 (M = 0.3), -0.16 (M = 1)",
            f">=: {biased(0.3, False):.4f}, {biased(1.0, False):.4f}; >: {biased(0.3, True):.4f}, "
            f"{biased(1.0, True):.4f}",
            "Printed values are those of >=.",
        ),
        (
            "Split-sample bias at TE = 0.08, M = 0.3",
            "+0.027",
            f"{ratio.bias(0.3, 0.08, 0.54, 1000).total:+.4f}",
            "0.028 when rounded: the printed value looks like a simulation's.",
        ),
        (
            "Stage-1 discard rate at TE = 0.10 and 0.15",
            "0.029 and 5.7e-4",
            "; ".join(f"{n1:,} chains in X=1: {missed(0.1, n1):.4f}, {missed(0.15, n1):.3g}" for n1 in (2000, 1000)),
            "The paper's rule uses both batches of the X=1 arm. This project uses the selection batch alone: no "
            "estimation chain takes part in a choice.",
        ),
        (
            "Fieller's interval at TE = 0.08",
            "holds 95 %, unbounded in about 5 %",
            f"M = 0.3: covers {fieller.covered:.4f}, unbounded {fieller.unbounded:.4f}",
            "Unbounded sets are counted as covering.",
        ),
    ]
    return [dict(zip(("what", "printed", "computed", "reading"), line, strict=True)) for line in lines]


TABLES: Mapping[str, Callable[[Design], Rows]] = {
    "table1": table1,
    "fig7_false_positives": figure7,
    "fig8_noise": figure8,
    "fig9_bias": figure9,
    "fig10_discard": figure10,
    "sources": sources,
}


def _effects(d: Design, low: float) -> list[float]:
    """True total effects from `low` to 0.3 (or to p11), without 0."""
    high = min(0.3, d.p11)
    return [round(float(te), 4) for te in np.linspace(low, high, d.points) if te > 0]


@functools.cache
def _law(p11: float, te: float, m: float, n: int) -> ratio.Law:
    return ratio.law(p11, p11 - te, min(1.0, m * te / p11), n, n)
