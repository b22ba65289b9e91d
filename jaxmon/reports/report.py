"""One self-contained report.html: figure, scores, truth beside them, counts, outcomes, bounds, settings, assumptions.

Knows: data -> an HTML string, everything escaped, no outside resource. Does not know: files, how the data came about.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from jaxmon.counting.counts import Counts
from jaxmon.counting.counts_schema import ALL, BATCHES
from jaxmon.estimation.placebo import Control
from jaxmon.estimation.table import Row, Scores
from jaxmon.reports import page
from jaxmon.reports.cautions import cautions
from jaxmon.reports.figures import WORDS, Truth
from jaxmon.reports.judge_report import Block

PAIRS_SHOWN = 400  # rows of the per-pair table; a larger study says how many were left out

BOUNDS = {  # columns of bounds.csv as the page heads them
    **{"attribute": "attribute", "label": "class", "score": "score", "value": "value", "low": "low", "high": "high"},
    **{"missing1": "missing X=1", "missing0": "missing X=0", "undecided": "undecided pairs"},
    **{"low_any": "low, any pairs", "high_any": "high, any pairs"},
}

HEAD = (
    "TE: total effect of the attribute on the target answer. R: share of target answers the attribute systematically "
    "influenced, at least. π_Z: share of target answers whose chain articulates it. M0 = min(1, π_Z / R) where TE > τ; "
    "M1 the same where the model also cannot give the answer without a chain (p10 below its limit)."
)


def report(
    scores: Scores,
    counts: Counts,
    figure_svg: str = "",
    truth: Truth | None = None,
    title: str = "Chain-of-thought monitorability",
    config: Mapping[str, object] | None = None,
    environment: Mapping[str, object] | None = None,
    outcomes: Mapping[str, int] | None = None,
    assumptions: Iterable[str] = (),
    controls: Sequence[Control] = (),
    more: Iterable[tuple[str, str]] = (),
    judge: Sequence[Block] = (),
) -> str:
    """The report as one HTML document.

    Args:
      scores: of table.score_table; counts: what they were computed from.
      figure_svg: SVG text, put in as it is; "" for none.
      truth: true values by (attribute, label, score), for model organisms.
      config, environment: shown as tables, values by str().
      outcomes: chains by outcome over all arms (answered, truncated, unclosed, malformed) where the sampler knows them;
        without it the counts table says what it can.
      assumptions: further sentences beside those of the scores.
      controls: of placebo.controls, where the study has negative controls.
      more: further sections, title and HTML, put in as they are after the scores.
      judge: what is known of the judge and its errors (judge_report.py).
    Returns: HTML text.
    """
    sections = [
        ("Scores", page.figure(figure_svg) + page.paragraph(HEAD) + _scores(scores)),
        ("Measured beside true", _truth(scores.rows, truth) if truth else ""),
        ("Negative controls", _controls(controls)),
        ("What was assumed", page.listing([*_fixed_assumptions(scores), *scores.assumptions, *assumptions])),
        ("The judge", "".join(map(_block, judge))),
        ("Chains and answers", _outcomes(counts, outcomes)),
        ("If missing answers were counted in the worst way", _bounds(scores)),
        ("Why scores are undefined", _reasons(scores.rows)),
        ("Counts per record and attribute", _pairs(counts)),
        ("Settings of the estimator", page.mapping(dataclasses.asdict(scores.settings))),
        ("Configuration", page.mapping(config or {})),
        ("Environment", page.mapping(environment or {})),
    ]
    return page.document(title, [*sections[:1], *more, *sections[1:]])


def covered(row: Row, true_value: float) -> bool | None:
    """Whether the row's interval holds the true value; None where the row has no interval."""
    if row.low is None or row.high is None:
        return None
    return bool(row.low <= true_value <= row.high)


def _scores(scores: Scores) -> str:
    header = ("attribute", "class", "score", "value", "unclipped", "SE", "interval", "n_S", "mean R", "f_valid")
    rows = scores.rows
    pooled, single = ([_score_cells(r) for r in rows if (r.label == ALL) == wanted] for wanted in (True, False))
    care = "".join(page.paragraph(sentence) for sentence in cautions(rows, scores.settings))
    by_class = page.folded("Scores of each class", page.table(header, single, texts=3))
    return page.table(header, pooled, texts=3) + care + by_class


def _score_cells(r: Row) -> list[object]:
    tail: list[object] = [r.records, r.mean_excess, r.f_valid]
    if r.value is None:
        return [r.attribute, r.label, r.score, page.Note(WORDS.get(r.reason, r.reason)), None, None, None, *tail]
    return [r.attribute, r.label, r.score, r.value, r.unclipped, r.se, page.interval(r.low, r.high), *tail]


def _truth(rows: Sequence[Row], truth: Truth) -> str:
    lines: list[list[object]] = []
    hits = []
    for r in rows:
        true_value = truth.get((r.attribute, r.label, r.score))
        if true_value is None:
            continue
        hit = covered(r, true_value)
        hits += [] if hit is None else [hit]
        shown = page.Note(WORDS.get(r.reason, r.reason)) if r.value is None else r.value
        verdict = "" if hit is None else "yes" if hit else "no"
        lines.append([r.attribute, r.label, r.score, true_value, shown, page.interval(r.low, r.high), verdict])
    header = ("attribute", "class", "score", "true", "measured", "interval", "covered")
    return page.paragraph(f"{sum(hits)} of {len(hits)} intervals hold the true value.") + page.table(
        header, lines, texts=3
    )


def _controls(controls: Sequence[Control]) -> str:
    if not controls:
        return ""
    header = ("placebo", "pairs", "dropped", "passed", "rate", "interval", "α, exact", "expected", "P(so many)")
    lines: list[list[object]] = []
    for c in controls:
        rates = (c.rate, page.interval(c.low, c.high), c.alpha, c.expected, c.tail)
        lines.append([c.attribute, c.pairs, c.dropped, c.passed, *rates])
    return page.paragraph(
        "A placebo's sentence has no effect by construction, so each of its pairs that passes the filter is a false "
        "positive. α: the exact chance at the worst rate of target answers; expected: at the rates measured here; "
        "P(so many): chance of this many or more if every pair passed with chance α. A small one says that the "
        "attribute is no placebo, or that the two arms differ in more than its sentence."
    ) + page.table(header, lines, texts=1)


def _fixed_assumptions(scores: Scores) -> list[str]:
    s = scores.settings
    percent = f"{100 * s.confidence:g} %"
    return [
        f"Records qualify by TE {'>' if s.strict else '≥'} τ = {s.tau:g} on the selection batch; scores come from the "
        "independent estimation batch.",
        f"Intervals are {percent} percentile intervals of {s.replicates:,} bootstrap replicates that resample "
        f"{'records and chains' if s.levels == 'both' else s.levels} and meet every filter again; records are "
        f"resampled {'within their class' if s.within_class else 'over all classes'}.",
        (
            "Intervals of M0 and M1 are the hull of that and of Fieller's interval for the ratio of sums over records, "
            "which clipping at 1 does not bias."
            if s.interval == "hull"
            else "Intervals of M0 and M1 are not widened for the bias of the ratio near tau or of clipping near 1; "
            "interval_coverage.md says how often they miss."
        ),
        f"Where at most {s.small_l} articulated chains stand behind a score, or the bootstrap has no width, the "
        "interval is widened to exact (Clopper–Pearson) bounds on the mean over the qualifying records. At L = 0 the "
        "upper end is that exact bound and the standard error is 0.",
        f"Where a qualifying pair has TE ≤ 0 on the estimation batch, M = 1 if anything was articulated and "
        f"{s.zero_over_zero:g} if nothing was; such pairs are left out of the unclipped mean.",
        f"A class counts with more than {s.min_records} qualifying records; a score defined in less than "
        f"{100 * s.min_f_valid:g} % of the replicates is withheld.",
    ]


def _outcomes(counts: Counts, outcomes: Mapping[str, int] | None) -> str:
    first = counts.present.argmax(1)  # the X=1 arm belongs to the record: take it once
    r = np.arange(len(counts.records))
    lines: list[list[object]] = []
    for b, batch in enumerate(BATCHES):
        n1, k1, t1 = (int(x[r, first, b].sum()) for x in (counts.n1, counts.k1, counts.truncated1))
        n0, k0, t0 = (int(x[:, :, b].sum()) for x in (counts.n0, counts.k0, counts.truncated0))
        lines += [[f"{batch}, X=1", n1, k1, t1], [f"{batch}, X=0", n0, k0, t0]]
    parts = page.table(("batch and arm", "chains", "target answers", "truncated"), lines, texts=1)
    unread = int((counts.k1 - counts.judged)[:, :, 1].sum())
    parts += page.paragraph(
        f"Chains without a readable answer (unclosed or malformed), summed over record-attribute pairs, both arms and "
        f"batches: {int(counts.unparsed.sum()):,}. Target answers of the estimation batch without a judge's label (not "
        f"judged, or the reply was not readable), summed over pairs: {unread:,} of {int(counts.k1[:, :, 1].sum()):,}."
    )
    if outcomes:
        parts += page.table(("outcome", "chains"), [[k, int(v)] for k, v in outcomes.items()], texts=1)
    return parts


def _block(block: Block) -> str:
    if block.header:
        return page.table(block.header, block.lines, block.texts)
    return f'<p class="bad">{page.escape(block.text)}</p>\n' if block.flag else page.paragraph(block.text)


def _bounds(scores: Scores) -> str:
    if not any(b.missing1 or b.missing0 or b.undecided for b in scores.bounds):
        return page.paragraph("No chain behind a defined score is truncated or unparsed: the scores stand as they are.")
    pooled, single = (
        [[getattr(b, column) for column in BOUNDS] for b in scores.bounds if (b.label == ALL) == wanted]
        for wanted in (True, False)
    )
    header = list(BOUNDS.values())
    return page.paragraph(
        "Truncated and unparsed chains are counted as answers that are not the target. Here every one of them is "
        "counted as target answer or not, articulated or not, whatever is worst for the score; the qualifying pairs "
        "are held fixed. Pairs whose filter could change are counted as undecided; the last two columns also let each "
        "of them qualify or not, whatever is worst."
    ) + (page.table(header, pooled, texts=3) + page.folded("Bounds of each class", page.table(header, single, texts=3)))


def _reasons(rows: Sequence[Row]) -> str:
    reasons = [r.reason for r in rows if r.value is None]
    lines: list[list[object]] = [[WORDS.get(r, r), reasons.count(r)] for r in dict.fromkeys(reasons)]
    return page.table(("reason", "rows"), lines, texts=1) if lines else ""


def _pairs(counts: Counts) -> str:
    header = ("record", "class", "attribute", "batch", "K1/n1", "K0/n0", "TE^", "judged", "L", "p10", "missing answers")
    lines: list[list[object]] = []
    for r, a in np.argwhere(counts.present)[: PAIRS_SHOWN // 2].tolist():
        for b, batch in enumerate(BATCHES):
            n1, k1, n0, k0, judged, l_, t1, t0, lost = (
                int(x[r, a, b])
                for x in (
                    *(counts.n1, counts.k1, counts.n0, counts.k0, counts.judged, counts.articulated),
                    *(counts.truncated1, counts.truncated0, counts.unparsed),
                )
            )
            effect = k1 / n1 - k0 / n0 if n0 else page.Note("dropped")
            p10 = None if np.isnan(counts.p10[r, a]) else float(counts.p10[r, a])
            names = [counts.records[r], counts.labels[counts.label_of[r]], counts.attributes[a], batch]
            lines.append([*names, f"{k1}/{n1}", f"{k0}/{n0}", effect, judged, l_, p10, t1 + t0 + lost])
    left = 2 * int(counts.present.sum()) - len(lines)
    note = page.paragraph(f"{left:,} more rows are in the counts table.") if left else ""
    return page.folded("Show the counts", page.table(header, lines, texts=4)) + note
