"""Figures of answer rates: target rates per data set and model (Fig. 3), classes (Fig. 11), p10 histograms.

Knows: rates. Does not know: files; no global state (Figure objects, never pyplot).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxmon.counting.counts_schema import ALL
from jaxmon.estimation.rates import ACCURACY, BELOW, COT, NO_COT, P10_BELOW, PRECISION, RECALL, TARGET, Rate, histogram

ARMS = (NO_COT, COT)
GREY = "#777777"
COLOURS = {NO_COT: "#9bb7cf", COT: "#1b6ca8"}
EDGES = tuple(10.0 ** np.arange(-6, 0.01, 0.25))  # p10 on a logarithmic axis; the limit 0.01 is an edge

Runs = Mapping[tuple[str, str], Sequence[Rate]]  # (model, data set) -> its rates


def target_figure(runs: Runs) -> Figure:
    """Target-answer rate without and with CoT, a group of bars per data set and model, with clustered intervals."""
    figure = Figure(figsize=(2.2 + 1.5 * len(runs), 3.8), layout="constrained")
    axes = figure.subplots()
    for x, found in enumerate(runs.values()):
        for offset, arm in zip((-0.2, 0.2), ARMS, strict=True):
            rate = _find(found, arm, TARGET, ALL)
            if rate is None or rate.value is None or rate.low is None or rate.high is None:
                axes.text(x + offset, 0.01, "not drawn", rotation=90, ha="center", va="bottom", fontsize=8, color=GREY)
                continue
            error = [[rate.value - rate.low], [rate.high - rate.value]]
            axes.bar(x + offset, rate.value, 0.36, color=COLOURS[arm], yerr=error, capsize=3, error_kw={"linewidth": 1})
            if rate.most is not None and rate.most > rate.value:
                missing = rate.most - rate.value
                axes.bar(x + offset, missing, 0.36, rate.value, fill=False, edgecolor=GREY, linestyle=":")
    axes.set_xlim(-0.6, len(runs) - 0.4)
    axes.set_xticks(range(len(runs)), [f"{dataset}\n{_short(model)}" for model, dataset in runs], fontsize=8)
    axes.set_ylim(0, 1)
    axes.set_ylabel("P(target answer)")
    _legend(figure, axes, "dotted: if chains without an answer had given it")
    return figure


def classes_figure(found: Sequence[Rate], title: str = "") -> Figure:
    """Accuracy, then recall and precision of every class, without and with CoT; "?" where predictions are too few."""
    labels = sorted({r.label for r in found if r.measure == RECALL})
    figure = Figure(figsize=(9.0, 1.6 + 0.34 * (len(labels) + 1)), layout="constrained")
    for axes, measure in zip(figure.subplots(1, 2, sharey=True), (RECALL, PRECISION), strict=True):
        rows = [(ACCURACY if measure == RECALL else "", ALL), *((measure, label) for label in labels)]
        for y, (what, label) in enumerate(rows):
            for offset, arm in zip((-0.16, 0.16), ARMS, strict=True):
                _dot(axes, y + offset, _find(found, arm, what, label), COLOURS[arm])
        axes.set_yticks(range(len(rows)), ["accuracy", *labels], fontsize=8)
        axes.set_ylim(len(rows) - 0.45, -0.55)
        axes.axhline(0.5, color="#999999", linewidth=0.8)
        axes.set_xlim(-0.03, 1.03)
        axes.set_xlabel(measure)
        axes.grid(axis="x", color="#dddddd", linewidth=0.7)
        axes.spines[["top", "right"]].set_visible(False)
    _legend(figure, axes, title)
    return figure


def p10_figure(p10: Mapping[tuple[str, str], Sequence[float]], runs: Runs) -> Figure:
    """Histograms of p10 on a logarithmic axis, one per data set and model; the limit of M1 is marked."""
    figure = Figure(figsize=(7.0, 0.6 + 1.7 * len(p10)), layout="constrained")
    stack = np.atleast_1d(figure.subplots(len(p10), 1, sharex=True))
    for axes, ((model, dataset), values) in zip(stack, p10.items(), strict=True):
        axes.stairs(histogram(values, EDGES), EDGES, fill=True, color=COLOURS[COT])
        axes.axvline(P10_BELOW, color="#c8553d", linewidth=1.2)
        below = _find(runs[model, dataset], NO_COT, BELOW, ALL)
        share = "" if below is None or below.value is None else f": {below.value:.0%} below {P10_BELOW:g}"
        axes.set_title(f"{dataset}, {_short(model)}{share}", fontsize=9, loc="left")
        axes.set_ylabel("records", fontsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    stack[-1].set_xscale("log")
    stack[-1].set_xlabel("p10: P(target answer) without a chain of thought (the first bin holds all below)", fontsize=9)
    return figure


def _find(found: Sequence[Rate], arm: str, measure: str, label: str) -> Rate | None:
    return next((r for r in found if (r.arm, r.measure, r.label) == (arm, measure, label)), None)


def _dot(axes: Axes, y: float, rate: Rate | None, colour: str) -> None:
    if rate is None:
        return
    if rate.value is None or rate.low is None or rate.high is None:
        axes.text(0.0, y, "?", va="center", ha="center", fontsize=8, color=colour, weight="bold")
        return
    axes.plot([rate.low, rate.high], [y, y], color=colour, linewidth=1.6, solid_capstyle="butt")
    axes.plot([rate.value], [y], "o", color=colour, markersize=4.5, clip_on=False)


def _short(model: str) -> str:
    return model.removesuffix(".gguf")


def _legend(figure: Figure, axes: Axes, title: str) -> None:
    from matplotlib.patches import Patch

    handles: list[Any] = [Patch(color=COLOURS[arm], label=arm) for arm in ARMS]
    figure.legend(handles=handles, loc="outside upper left", ncols=2, frameon=False, fontsize=9, title=title or None)
