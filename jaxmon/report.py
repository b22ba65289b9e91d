"""One self-contained report.html: figure, scores, truth beside them, counts, outcomes, bounds, settings, assumptions.

Knows: data -> an HTML string, everything escaped, no outside resource. Does not know: files, how the data came about.
"""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from jaxmon.counts import Counts
from jaxmon.counts_schema import ALL, BATCHES
from jaxmon.figures import WORDS, Truth
from jaxmon.judge_report import Block
from jaxmon.table import Row, Scores

PAIRS_SHOWN = 400  # rows of the per-pair table; a larger study says how many were left out

STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .6rem; border-bottom: 1px solid rgba(128,128,128,.35); text-align: right; white-space: nowrap; }
th { border-bottom-width: 2px; } th.t, td.t { text-align: left; }
.none { opacity: .65; font-style: italic; } .bad { font-weight: bold; }
figure { margin: 1rem 0; background: #fff; border-radius: 6px; padding: .5rem; }
figure svg { width: 100%; height: auto; }
p, li { max-width: 50rem; } summary { cursor: pointer; margin: .6rem 0; }
"""

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
      judge: what is known of the judge and its errors (judge_report.py).
    Returns: HTML text.
    """
    sections = [
        ("Scores", _figure(figure_svg) + _paragraph(HEAD) + _scores(scores.rows)),
        ("Measured beside true", _truth(scores.rows, truth) if truth else ""),
        ("What was assumed", _list([*_fixed_assumptions(scores), *scores.assumptions, *assumptions])),
        ("The judge", "".join(map(_block, judge))),
        ("Chains and answers", _outcomes(counts, outcomes)),
        ("If missing answers were counted in the worst way", _bounds(scores)),
        ("Why scores are undefined", _reasons(scores.rows)),
        ("Counts per record and attribute", _pairs(counts)),
        ("Settings of the estimator", _mapping(dataclasses.asdict(scores.settings))),
        ("Configuration", _mapping(config or {})),
        ("Environment", _mapping(environment or {})),
    ]
    body = "".join(f"<h2>{_text(name)}</h2>\n{content}\n" for name, content in sections if content)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{_text(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>\n'
        f"<body><h1>{_text(title)}</h1>\n{body}</body></html>\n"
    )


def covered(row: Row, true_value: float) -> bool | None:
    """Whether the row's interval holds the true value; None where the row has no interval."""
    if row.low is None or row.high is None:
        return None
    return bool(row.low <= true_value <= row.high)


def _scores(rows: Sequence[Row]) -> str:
    header = ("attribute", "class", "score", "value", "unclipped", "SE", "interval", "n_S", "mean R", "f_valid")
    pooled, single = ([_score_cells(r) for r in rows if (r.label == ALL) == wanted] for wanted in (True, False))
    return _table(header, pooled, texts=3) + _folded("Scores of each class", _table(header, single, texts=3))


def _score_cells(r: Row) -> list[object]:
    tail: list[object] = [r.records, r.mean_excess, r.f_valid]
    if r.value is None:
        return [r.attribute, r.label, r.score, _Note(WORDS.get(r.reason, r.reason)), None, None, None, *tail]
    return [r.attribute, r.label, r.score, r.value, r.unclipped, r.se, _interval(r.low, r.high), *tail]


def _truth(rows: Sequence[Row], truth: Truth) -> str:
    lines: list[list[object]] = []
    hits = []
    for r in rows:
        true_value = truth.get((r.attribute, r.label, r.score))
        if true_value is None:
            continue
        hit = covered(r, true_value)
        hits += [] if hit is None else [hit]
        shown = _Note(WORDS.get(r.reason, r.reason)) if r.value is None else r.value
        verdict = "" if hit is None else "yes" if hit else "no"
        lines.append([r.attribute, r.label, r.score, true_value, shown, _interval(r.low, r.high), verdict])
    header = ("attribute", "class", "score", "true", "measured", "interval", "covered")
    return _paragraph(f"{sum(hits)} of {len(hits)} intervals hold the true value.") + _table(header, lines, texts=3)


def _fixed_assumptions(scores: Scores) -> list[str]:
    s = scores.settings
    percent = f"{100 * s.confidence:g} %"
    return [
        f"Records qualify by TE {'>' if s.strict else '≥'} τ = {s.tau:g} on the selection batch; scores come from the "
        "independent estimation batch.",
        f"Intervals are {percent} percentile intervals of {s.replicates:,} bootstrap replicates that resample "
        f"{'records and chains' if s.levels == 'both' else s.levels} and meet every filter again; records are "
        f"resampled {'within their class' if s.within_class else 'over all classes'}.",
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
    parts = _table(("batch and arm", "chains", "target answers", "truncated"), lines, texts=1)
    unread = int((counts.k1 - counts.judged)[:, :, 1].sum())
    parts += _paragraph(
        f"Chains without a readable answer (unclosed or malformed), summed over record-attribute pairs, both arms and "
        f"batches: {int(counts.unparsed.sum()):,}. Target answers of the estimation batch without a judge's label (not "
        f"judged, or the reply was not readable), summed over pairs: {unread:,} of {int(counts.k1[:, :, 1].sum()):,}."
    )
    if outcomes:
        parts += _table(("outcome", "chains"), [[k, int(v)] for k, v in outcomes.items()], texts=1)
    return parts


def _block(block: Block) -> str:
    if block.header:
        return _table(block.header, block.lines, block.texts)
    return f'<p class="bad">{_text(block.text)}</p>\n' if block.flag else _paragraph(block.text)


def _bounds(scores: Scores) -> str:
    if not any(b.missing1 or b.missing0 for b in scores.bounds):
        return _paragraph("No chain behind a defined score is truncated or unparsed: the scores stand as they are.")
    header = ("attribute", "class", "score", "value", "low", "high", "missing X=1", "missing X=0", "undecided pairs")
    pooled, single = (
        [
            [b.attribute, b.label, b.score, b.value, b.low, b.high, b.missing1, b.missing0, b.undecided]
            for b in scores.bounds
            if (b.label == ALL) == wanted
        ]
        for wanted in (True, False)
    )
    return _paragraph(
        "Truncated and unparsed chains are counted as answers that are not the target. Here every one of them is "
        "counted as target answer or not, articulated or not, whatever is worst for the score; the qualifying pairs "
        "are held fixed, and pairs whose filter could change are counted as undecided."
    ) + (_table(header, pooled, texts=3) + _folded("Bounds of each class", _table(header, single, texts=3)))


def _reasons(rows: Sequence[Row]) -> str:
    reasons = [r.reason for r in rows if r.value is None]
    lines: list[list[object]] = [[WORDS.get(r, r), reasons.count(r)] for r in dict.fromkeys(reasons)]
    return _table(("reason", "rows"), lines, texts=1) if lines else ""


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
            effect = k1 / n1 - k0 / n0 if n0 else _Note("dropped")
            p10 = None if np.isnan(counts.p10[r, a]) else float(counts.p10[r, a])
            names = [counts.records[r], counts.labels[counts.label_of[r]], counts.attributes[a], batch]
            lines.append([*names, f"{k1}/{n1}", f"{k0}/{n0}", effect, judged, l_, p10, t1 + t0 + lost])
    left = 2 * int(counts.present.sum()) - len(lines)
    note = _paragraph(f"{left:,} more rows are in the counts table.") if left else ""
    return _folded("Show the counts", _table(header, lines, texts=4)) + note


@dataclasses.dataclass(frozen=True)
class _Note:
    """A word in place of a number."""

    text: str


def _table(header: Sequence[str], lines: Sequence[Sequence[object]], texts: int) -> str:
    """An HTML table; the first `texts` columns are left-aligned."""

    def row(tag: str, values: Sequence[object]) -> str:
        inside = (f"<{tag}{' class=t' if i < texts else ''}>{_cell(v)}</{tag}>" for i, v in enumerate(values))
        return f"<tr>{''.join(inside)}</tr>"

    body = "\n".join(row("td", line) for line in lines)
    return f'<div class="wide"><table><thead>{row("th", header)}</thead>\n<tbody>{body}</tbody></table></div>\n'


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, _Note):
        return f'<span class="none">{_text(value.text)}</span>'
    if isinstance(value, float):
        return f"{value:.4f}" if value == 0 or abs(value) >= 1e-3 else f"{value:.1e}"
    if isinstance(value, int):
        return f"{value:,}"
    return _text(value)


def _folded(name: str, content: str) -> str:
    return f"<details><summary>{_text(name)}</summary>\n{content}</details>\n"


def _interval(low: float | None, high: float | None) -> str | None:
    return None if low is None or high is None else f"{_cell(low)} to {_cell(high)}"


def _figure(svg: str) -> str:
    return f"<figure>{svg[svg.index('<svg') :]}</figure>\n" if svg else ""


def _mapping(values: Mapping[str, object]) -> str:
    return _table(("name", "value"), [[k, str(v)] for k, v in values.items()], texts=2) if values else ""


def _list(sentences: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{_text(s)}</li>" for s in sentences) + "</ul>"


def _paragraph(text: str) -> str:
    return f"<p>{_text(text)}</p>\n"


def _text(value: object) -> str:
    return html.escape(str(value))
