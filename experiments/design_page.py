"""Writes the design of a study: a CSV per table, a PNG and an SVG per figure, and one self-contained design.html.

Knows: which files, and the words around the tables. Does not know: flags, formulas.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from experiments import places, rundir
from experiments.design_figures import FIGURES
from experiments.design_tables import TABLES, Design, Rows
from jaxmon.reports import figures, page

HEADINGS = {
    "table1": "Table 1: noise and error rates",
    "fig7_false_positives": "Fig. 7: false-positive rate of the filter",
    "fig8_noise": "Fig. 8: noise of M",
    "fig9_bias": "Fig. 9: bias of M, shared and split sample",
    "fig10_discard": "Fig. 10: pairs lost at stage 1",
    "sources": "Where sources disagree",
}
WORDS = {
    "table1": "Worst cases over the unknown rates. alpha: chance that a pair without effect passes the filter, for "
    "TE^ > tau (above) or TE^ >= tau (at_least). power: least chance that a pair of this true effect passes. sd_m: SD "
    "of M^ at TE = tau, worst to first order (delta) and exact at the same p11, for two values of M (last section).",
    "fig7_false_positives": "Exact binomial sums, the supremum over p; it lies at p = 0.5.",
    "fig8_noise": "Solid: the score as it is used, clipped at 1, summed over all outcomes. Dotted: first order.",
    "fig9_bias": "One batch for filter and score biases M downwards near tau: a lucky K1 - K0 passes the filter and "
    "inflates the denominator. Two batches leave a ratio bias of order 1/n (dotted) and the clip bias near M = 1.",
    "fig10_discard": "The chance that a pair is given up at stage 1 although its effect is real, at the worst p01.",
    "sources": "Computed values are for n = 1000, by the functions that the rest of this page uses.",
}


def write(root: Path, d: Design) -> dict[str, Rows]:
    """Computes every table and writes all files, each whole or not at all; returns the tables.

    Raises: OSError where the directory cannot be written.
    """
    places.make(root)
    tables = {name: compute(d) for name, compute in TABLES.items()}
    drawn = {name: draw(tables[name], d) for name, draw in FIGURES.items()}
    sections = []
    for name in ("table1", *FIGURES, "sources"):
        rows = tables[name]
        shown = page.table(list(rows[0]), [list(r.values()) for r in rows], texts=0)
        if name == "sources":
            shown = page.listing(
                "{what}. Printed: {printed}. Computed: {computed}. {reading}".format(**r) for r in rows
            )
        if name in drawn:
            rundir.write_files(root, figures.files(drawn[name], name))
            shown = page.figure(figures.svg(drawn[name])) + page.folded("The numbers", shown)
        sections.append((HEADINGS[name], page.paragraph(WORDS[name]) + shown))
    sections.append(("The design", page.mapping(dataclasses.asdict(d))))
    for name, rows in tables.items():
        rundir.write_csv(root / f"{name}.csv", list(rows[0]), rows)
    rundir.write_text(root / "design.html", page.document("Design of a monitorability study", sections))
    return tables
