"""Do the intervals for M cover it? Every interval that jaxmon knows, on simulated counts with known truth.

    python -m tools.interval_coverage --out=jaxmon/reports/interval_coverage.csv

Studies are those of interval_studies.py, intervals those of interval_methods.py. Filters are the study's own: TE^ >
0.08 on the selection batch, more than five qualifying records, f_valid >= 0.9; only studies that report a score count.
Two truths: the mean of M_r over the population of qualifying records, and over the very records that qualified.

Each cell of each method ends as one row: studies, those that reported, shares that held either truth, the Monte Carlo
standard error of the first, mean width, share unbounded. A page of the same name, .md, holds the two intervals that
jaxmon offers. Cells already in the file are not run again. All 180 cells at 1,000 studies: about 20 CPU minutes.

Knows: cells, rows, files. Does not know: models.
"""

from __future__ import annotations

import csv
import dataclasses
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from absl import flags

from experiments import cli
from jaxmon.estimation.cells import Settings
from tools.interval_methods import intervals, quantile_table
from tools.interval_studies import Cell, N, grid, population, simulate

EXACT = 100  # studies of a cell that compute the (slow, very wide) exact interval
COLUMNS = (
    *("mean", "effect", "records", "kind", "method", "studies", "reported"),
    *("population", "own", "se", "width", "unbounded"),
)


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
        text.append(f"\n## {records} records, {kind}: {' or '.join(map(str, studies))} studies a cell\n")
        text.append("| TE | " + " | ".join(f"M = {m}" for m in means) + " |")
        text.append("| --- " * (1 + len(means)) + "|")
        for effect in sorted({e for e, _ in cells}, key=float):
            shown = [_shown(by, (records, kind, effect, mean)) for mean in means]
            text.append(f"| {effect} | {' | '.join(shown)} |")
    return "\n".join(text) + "\n"


def _shown(by: Mapping[tuple[str, ...], Mapping[str, str]], cell: tuple[str, ...]) -> str:
    hull = by.get((*cell, "hull"))
    if hull is None or int(hull["reported"]) < 50:
        return "not reported"
    values = [float(by[(*cell, name)]["population"]) for name in ("both levels", "hull")]
    below = "**" if values[1] < 0.93 else ""
    return f"{values[0]:.3f} / {below}{values[1]:.3f}{below} ± {float(hull['se']):.3f}"


HEAD = """# Coverage of the intervals of M

Written by `python -m tools.interval_coverage`; tools/interval_studies.py says what is simulated. An entry is the share
of studies whose 95 % interval held the population's mean M: bootstrap percentile (both levels, 400 replicates) / the
hull, jaxmon's default, ± the Monte Carlo standard error of the hull's share; below 0.93 in bold. Cells in which fewer
than 50 studies reported a score are left out. `interval_coverage.csv` has the other methods (records only, delta, t,
Fieller, exact), widths, and how often the mean over the study's own records was held."""


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
