"""Do the intervals for M cover it? Every interval that jaxmon knows, on simulated counts with known truth.

    python -m tools.interval_coverage --out=jaxmon/interval_coverage.csv

A study is one attribute and one class of `records` records with n = 1000 chains per arm and batch, all judged. A cell
fixes mean M, TE, the number of records, and whether they are alike:
    alike    p11 = 0.54, p01 = p11 - TE, the same M everywhere
    unlike   TE_r ~ TE U(0.5, 1.5), p01_r ~ U(0.02, 0.98 - TE_r), M_r ~ Beta(4M, 4(1-M)), independent
    tied     the same, but M_r rises with TE_r (equal ranks)
Filters are the study's own: TE^ > 0.08 on the selection batch, more than five qualifying records, f_valid >= 0.9. Only
studies that report a score count. Two truths: the mean of M_r over the population of qualifying records, and the mean
over the very records that qualified.

Each cell of each method ends as one row: studies, those that reported, shares that held either truth, the Monte Carlo
standard error of the first, mean width, share unbounded. A page of the same name, .md, holds the two intervals that
jaxmon offers. Cells already in the file are not run again. All 180 cells at 1,000 studies: about 20 CPU minutes.

Knows: counts by NumPy binomials, a second implementation of the bootstrap. Does not know: models, files but its own.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import itertools
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from absl import flags
from scipy import stats

from experiments import cli
from jaxmon import exact_bounds, ratio_intervals
from jaxmon.cells import Settings
from jaxmon.scores import pair_scores

N = 1000  # chains per arm and batch
MEANS = (0.0, 0.05, 0.3, 0.7, 1.0)
EFFECTS = (0.08, 0.1, 0.15, 0.25, 0.5)
RECORDS = (6, 20, 100)
POINTS = 4096  # of the quantile tables
EXACT = 100  # studies of a cell that compute the (slow, very wide) exact interval
COLUMNS = (
    *("mean", "effect", "records", "kind", "method", "studies", "reported"),
    *("population", "own", "se", "width", "unbounded"),
)


@dataclasses.dataclass(frozen=True)
class Cell:
    mean: float
    effect: float
    records: int
    kind: str  # alike, unlike or tied


class Study(NamedTuple):
    """Counts of one study, int [R] each; k1s, k0s: selection batch. m: the records' true scores."""

    k1s: np.ndarray
    k0s: np.ndarray
    k1: np.ndarray
    k0: np.ndarray
    l: np.ndarray  # noqa: E741
    m: np.ndarray


class Interval(NamedTuple):
    low: float
    high: float
    unbounded: bool = False


def grid() -> Iterator[Cell]:
    for records, kind, effect, mean in itertools.product(RECORDS, ("alike", "unlike", "tied"), EFFECTS, MEANS):
        if kind != "tied" or (records > 6 and 0 < mean < 1):
            yield Cell(mean, effect, records, kind)


def rates(cell: Cell, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """True p01, TE and M of `size` records of the cell's population."""
    te, m = np.full(size, cell.effect), np.full(size, cell.mean)
    if cell.kind == "alike":
        return 0.54 - te, te, m
    rank = rng.uniform(size=size)
    te = te * (0.5 + rank)
    if 0 < cell.mean < 1:
        at = rank if cell.kind == "tied" else rng.uniform(size=size)
        m = stats.beta.ppf(at, 4 * cell.mean, 4 * (1 - cell.mean))
    return rng.uniform(0.02, 0.98 - te), te, m


def population(cell: Cell, rng: np.random.Generator) -> float:
    """The mean of M_r over qualifying records; `tied`: over 100,000 of them, weighted by a normal law of TE^."""
    if cell.kind != "tied":
        return cell.mean
    p01, te, m = rates(cell, 100_000, rng)
    sd = np.sqrt((p01 * (1 - p01) + (p01 + te) * (1 - p01 - te)) / N)
    return float(np.average(m, weights=stats.norm.sf((0.0805 - te) / sd)))  # 0.0805: half a chain of continuity


def simulate(cell: Cell, rng: np.random.Generator) -> Study:
    """One study of a cell."""
    p01, te, m = rates(cell, cell.records, rng)
    k1s, k1 = rng.binomial(N, p01 + te, (2, cell.records))
    k0s, k0 = rng.binomial(N, p01, (2, cell.records))
    return Study(k1s, k0s, k1, k0, rng.binomial(k1, m * te / (p01 + te)), m)


def quantile_table(n: int = N) -> np.ndarray:
    """Bin(n, k/n) for every k as its quantiles at the midpoints of POINTS equal shares, int16 [n + 1, POINTS].

    A random column is a draw; 4,096 points keep the mean and all but 0.3 % of the variance (tests), 20 times faster.
    """
    at = (np.arange(POINTS) + 0.5) / POINTS
    values = np.arange(n + 1)
    return np.stack([np.searchsorted(stats.binom.cdf(values, n, k / n), at) for k in values]).astype(np.int16)


def clipped(k1: np.ndarray, k0: np.ndarray, l_: np.ndarray) -> np.ndarray:
    """M of every pair, as scores.pair_scores with n1 = n0 and J = K1."""
    d = k1 - k0
    return np.where(d > 0, np.minimum(1, l_ / np.maximum(d, 1)), l_ > 0)


def replicates(study: Study, table: np.ndarray, b: int, settings: Settings, rng: np.random.Generator) -> np.ndarray:
    """B hierarchical replicates of the score, float [B], NaN where undefined: records, then chains, then the filter.

    L* is drawn as Bin(n, L/n), and K1* - L* given L* by the normal law rounded to whole numbers (its variance is 35 or
    more wherever the grid goes).
    """
    chosen = rng.integers(0, len(study.k1), (b, len(study.k1)))

    def redraw(k: np.ndarray) -> np.ndarray:
        return table[k[chosen], rng.integers(0, POINTS, chosen.shape, dtype=np.uint16)].astype(np.int32)

    sure = study.k1s - study.k0s > round(settings.tau * N) + 7 * (N / 2) ** 0.5  # no replicate of these can fail
    passed = sure[chosen]
    if not sure.all():
        passed = redraw(study.k1s) - redraw(study.k0s) > round(settings.tau * N)
    l_, left = redraw(study.l), N - study.l
    q = ((study.k1 - study.l) / left).astype(np.float32)[chosen]
    middle = (N - l_) * q
    noise = rng.standard_normal(chosen.shape, np.float32) * np.sqrt(middle * (1 - q))
    k1 = l_ + np.clip(np.rint(middle + noise), 0, N - l_)
    value = clipped(k1, redraw(study.k0), l_)
    return _means(value, passed, settings)


def _means(value: np.ndarray, passed: np.ndarray, settings: Settings) -> np.ndarray:
    size = passed.sum(1)
    return np.where(size > settings.min_records, (value * passed).sum(1) / np.maximum(size, 1), np.nan)


def intervals(
    study: Study, table: np.ndarray, b: int, settings: Settings, rng: np.random.Generator, exactly: bool = True
) -> dict[str, Interval]:
    """Every method's interval for the study's score (`exact` where asked for), or {} where no score is reported."""
    passed = study.k1s - study.k0s > round(settings.tau * N)
    if passed.sum() <= settings.min_records:
        return {}
    drawn = replicates(study, table, b, settings, rng)
    drawn = drawn[~np.isnan(drawn)]
    if len(drawn) < settings.min_f_valid * b:
        return {}
    k1, k0, l_ = (x[passed] for x in (study.k1, study.k0, study.l))
    n = np.full(len(k1), N)
    scores = pair_scores(k1.astype(float), n, k0.astype(float), n, k1, l_)
    value, tail = scores.m.mean(), (1 - settings.confidence) / 2
    exact = functools.cache(lambda: Interval(*exact_bounds.m_bounds(k1, n, k0, n, k1, l_, tail)))  # slow
    pick = rng.integers(0, len(study.k1), (b, len(study.k1)))
    of_records = _means(clipped(study.k1, study.k0, study.l)[pick], passed[pick], settings)

    def percentile(sample: np.ndarray) -> Interval:
        low, high = np.nanquantile(sample, [tail, 1 - tail])
        if l_.sum() <= settings.small_l or high <= low:
            low, high = min(low, exact().low), max(high, exact().high)
        return Interval(min(low, value), max(high, value))

    parts = ratio_intervals.parts(k1, n, k0, n, k1, l_)
    z = stats.norm.isf(tail)
    with np.errstate(invalid="ignore", divide="ignore"):
        each = (parts.v_a - 2 * scores.m_raw * parts.v_ad + scores.m_raw**2 * parts.v_d) / parts.d**2
    ratio, error = scores.m_raw[scores.has_ratio].mean(), np.sqrt(each[scores.has_ratio].sum()) / scores.has_ratio.sum()
    t = stats.t.isf(tail, len(k1) - 1) * scores.m.std(ddof=1) / len(k1) ** 0.5
    both = percentile(drawn)
    chains, between = parts.total(), parts.between()
    pooled = _one(ratio_intervals.fieller(chains, settings.confidence))
    over = _one(ratio_intervals.fieller(between, settings.confidence, len(k1) - 1))
    found = {"exact": exact()} if exactly else {}
    return found | {
        "both levels": both,
        "records only": percentile(of_records),
        "delta": _unit(ratio - z * error, ratio + z * error),
        "t over records": _unit(value - t, value + t),
        "Fieller over chains": pooled,
        "Fieller over records": over,
        "hull": Interval(min(both.low, over.low), max(both.high, over.high), over.unbounded),
    }


def _unit(low: float, high: float) -> Interval:
    return Interval(min(1.0, max(0.0, low)), min(1.0, max(0.0, high)))


def _one(found: ratio_intervals.Ratio) -> Interval:
    if found.unbounded:
        return Interval(0.0, 1.0, True)
    return _unit(float(found.low), float(found.high))


def run(cell: Cell, studies: int, b: int, table: np.ndarray, settings: Settings) -> list[dict[str, object]]:
    """The rows of one cell, a row per method; its random numbers depend on the cell's name alone."""
    rng = np.random.default_rng(zlib.crc32(repr(cell).encode()))
    truth = population(cell, rng)
    held: dict[str, list[tuple[float, ...]]] = {}
    for i in range(studies):
        study = simulate(cell, rng)
        own = study.m[study.k1s - study.k0s > round(settings.tau * N)]
        for name, found in intervals(study, table, b, settings, rng, i < EXACT).items():
            inside = [found.low - 1e-9 <= true <= found.high + 1e-9 for true in (truth, own.mean())]
            held.setdefault(name, []).append((*inside, found.high - found.low, found.unbounded))
    rows = []
    for name, hits in held.items():
        covered, of_own, width, unbounded = np.mean(hits, axis=0)
        se = (max(covered * (1 - covered), 1 / len(hits)) / len(hits)) ** 0.5
        numbers = (f"{x:.4f}" for x in (covered, of_own, se, width, unbounded))
        values = (*dataclasses.astuple(cell), name, studies, len(hits), *numbers)
        rows.append(dict(zip(COLUMNS, values, strict=True)))
    nothing = dict(zip(COLUMNS, (*dataclasses.astuple(cell), "none", studies, 0, *[""] * 5), strict=True))
    return rows or [nothing]


def markdown(rows: Sequence[Mapping[str, str]]) -> str:
    """The page: coverage of the percentile interval and of the hull, cells with fewer than 50 reports left out."""
    by = {tuple(r[c] for c in ("records", "kind", "effect", "mean", "method")): r for r in rows}
    text = [HEAD]
    for records, kind in dict.fromkeys((r["records"], r["kind"]) for r in rows):
        of = [r for r in rows if (r["records"], r["kind"]) == (records, kind)]
        cells = {(r["effect"], r["mean"]) for r in of}
        studies = sorted({int(r["studies"]) for r in of})
        means = sorted({m for _, m in cells}, key=float)
        lines = [
            f"\n## {records} records, {kind}: {' or '.join(map(str, studies))} studies a cell\n",
            "| TE | " + " | ".join(f"M = {m}" for m in means) + " |",
        ]
        lines.append("| --- " * (1 + len(means)) + "|")
        for effect in sorted({e for e, _ in cells}, key=float):
            shown = [_shown(by, (records, kind, effect, mean)) for mean in means]
            lines.append(f"| {effect} | {' | '.join(shown)} |")
        text += lines
    return "\n".join(text) + "\n"


def _shown(by: Mapping[tuple[str, ...], Mapping[str, str]], cell: tuple[str, ...]) -> str:
    hull = by.get((*cell, "hull"))
    if hull is None or int(hull["reported"]) < 50:
        return "not reported"
    values = [float(by[(*cell, name)]["population"]) for name in ("both levels", "hull")]
    below = "**" if values[1] < 0.93 else ""
    return f"{values[0]:.3f} / {below}{values[1]:.3f}{below} ± {float(hull['se']):.3f}"


HEAD = """# Coverage of the intervals of M

Written by `python -m tools.interval_coverage`, which says what is simulated. Each entry is the share of studies whose
95 % interval held the population's mean M: bootstrap percentile (both levels) / the hull, jaxmon's default, ± the Monte
Carlo standard error of the hull's share; below 0.93 in bold. Cells in which fewer than 50 studies reported a score are
left out. `interval_coverage.csv` has the other methods (records only, delta, t, Fieller, exact), widths, and how often
the mean over the study's own records was held."""


def main(argv: list[str]) -> None:
    if argv[1:]:
        raise ValueError(f"unexpected argument {argv[1]!r}")
    path = Path(flags.FLAGS.out)
    done = {tuple(r[c] for c in COLUMNS[:4]) for r in _read(path)}
    table, settings = quantile_table(), Settings(interval="percentile")
    for cell in grid():
        if tuple(str(v) for v in dataclasses.astuple(cell)) in done:
            continue
        rows = run(cell, flags.FLAGS.studies, flags.FLAGS.replicates, table, settings)
        new = not path.exists()
        with path.open("a", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            if new:
                writer.writeheader()
            writer.writerows(rows)
        print(*dataclasses.astuple(cell), *(f"{r['method']}: {r['population']}" for r in rows), flush=True)
    path.with_suffix(".md").write_text(markdown(_read(path)))


def _read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    flags.DEFINE_string("out", "interval_coverage.csv", "The CSV; cells that are there are kept.")
    flags.DEFINE_integer("studies", 1000, "Studies per cell.", 1)
    flags.DEFINE_integer("replicates", 400, "Bootstrap replicates per study.", 2)
    cli.start(main)
