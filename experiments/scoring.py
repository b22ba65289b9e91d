"""From counts to the files a reader opens: scores.csv, bounds.csv, figure.png, figure.svg, report.html.

Knows: which files, and the layout of a truth file. Does not know: flags, chains, models.
"""

from __future__ import annotations

import csv
import dataclasses
import math
import platform
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path

from experiments import places, rundir
from jaxmon.counting.counts import Counts
from jaxmon.counting.counts_schema import ALL
from jaxmon.counting.patterns import Patterns
from jaxmon.estimation import placebo, table
from jaxmon.estimation.cells import Settings
from jaxmon.estimation.judge_error import JudgeError
from jaxmon.estimation.scores import SCORES
from jaxmon.estimation.table import Scores
from jaxmon.judging.judge_checks import Check
from jaxmon.reports import figures, judge_report, report
from jaxmon.reports.figures import Truth

CORRECTED = ("pi_Z", "M0", "M1")  # what depends on labels


def score(
    counts: Counts,
    patterns: Patterns | None,
    workdir: Path,
    settings: Settings | None = None,
    *,
    truth: Truth | None = None,
    title: str = "Chain-of-thought monitorability",
    config: Mapping[str, object] | None = None,
    environment: Mapping[str, object] | None = None,
    outcomes: Mapping[str, int] | None = None,
    assumptions: Iterable[str] = (),
    placebos: Iterable[str] = (),
    sections: Iterable[tuple[str, str]] = (),
    judge: Check | None = None,
    error: JudgeError | None = None,
) -> Scores:
    """Computes everything and writes five files, placebo.csv where there are placebos, corrected.csv with `error`.

    Each file is whole or not there at all.

    Args:
      counts, patterns, settings: see table.score_table.
      truth: true values by (attribute, label, score), where known.
      config, environment, outcomes, assumptions, sections, judge: shown in the report (report.report).
      placebos: attributes declared to have no effect.
      error: of the judge; pi_Z, M0 and M1 corrected for it are computed beside the raw ones.
    Returns: the scores that were written.
    Raises: OSError where the directory cannot be written; ValueError for a placebo that no record has.
    """
    controls = placebo.controls(counts, tuple(placebos), settings or Settings())
    places.make(workdir)
    scores = table.score_table(counts, patterns, settings)
    about = [] if judge is None else judge_report.blocks(judge)
    if error is not None:
        fixed = [r for r in table.score_table(counts, patterns, settings, error).rows if r.score in CORRECTED]
        about += judge_report.corrected(error, scores.rows, fixed)
    figure = figures.scores_figure(scores.rows, truth=truth, title=title)
    known = (config, environment or versions(), outcomes, assumptions, controls, sections, about)
    page = report.report(scores, counts, figures.svg(figure), truth, title, *known)
    rundir.write_csv(workdir / "scores.csv", table.COLUMNS, scores.rows)
    if error is not None:
        rundir.write_csv(workdir / "corrected.csv", table.COLUMNS, fixed)
    rundir.write_csv(workdir / "bounds.csv", table.BOUNDS_COLUMNS, scores.bounds)
    if controls:
        rundir.write_csv(workdir / "placebo.csv", [f.name for f in dataclasses.fields(placebo.Control)], controls)
    rundir.write_files(workdir, figures.files(figure))
    rundir.write_text(workdir / "report.html", page)
    return scores


def read_truth(path: str) -> Truth:
    """True values by (attribute, label, score) from a CSV file with the columns attribute, label, score, value.

    Raises: ValueError, one line that names file, row and column.
    """
    found: dict[tuple[str, str, str], float] = {}
    with open(path, newline="") as file:
        reader = csv.DictReader(file)
        if missing := [c for c in ("attribute", "label", "score", "value") if c not in (reader.fieldnames or [])]:
            raise ValueError(f"{path}: missing column {', '.join(missing)}")
        for i, row in enumerate(reader, 1):
            if row["score"] not in SCORES:
                raise ValueError(
                    f"{path}: row {i}, column score: {row['score']!r}, expected one of {', '.join(SCORES)}"
                )
            try:
                value = float(row["value"])
            except (TypeError, ValueError):
                value = math.nan
            if not -1 <= value <= 1:
                raise ValueError(f"{path}: row {i}, column value: {row['value']!r} is no number in [-1, 1]")
            found[row["attribute"], row["label"], row["score"]] = value
    return found


def versions() -> dict[str, str]:
    """What the numbers depend on besides the counts and the settings."""
    return {"python": platform.python_version()} | {n: metadata.version(n) for n in ("jax", "jaxlib", "numpy", "scipy")}


def summary(scores: Scores, truth: Truth | None = None) -> list[str]:
    """A table to print, classes pooled: per attribute and score the value with interval and n_S, or the reason."""
    known = truth or {}
    interval = f"{scores.settings.confidence:.0%} interval"
    lines = [f"{'attribute':24} {'score':5} {'measured':>8} {interval:>16} {'n_S':>4}" + "     true" * bool(known)]
    for r in scores.rows:
        if r.label != ALL:
            continue
        value = r.reason if r.value is None else f"{r.value:8.3f} [{r.low:6.3f}, {r.high:6.3f}] {r.records:4}"
        true = known.get((r.attribute, ALL, r.score))
        beside = ("" if true is None else f"{true:9.3f}") if r.value is not None else ""
        lines.append(f"{r.attribute:24} {r.score:5} {value}{beside}")
    return lines
