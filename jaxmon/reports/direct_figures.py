"""Figures of a direct-effect study, in the form of Figs. 18 (frozen), 19 (unfrozen), 20 (single chains), and windows.

Knows: arrays per attribute. Does not know: files; no global state.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from jaxmon.reports.direct_report import Effects

SINGLE = 12  # chains shown per attribute in the form of Fig. 20
COLOURS = ("#1b6ca8", "#c8553d", "#3a7d44", "#8e5ea2", "#b8860b", "#4a4a4a")


def curves(found: Sequence[Effects], kind: str) -> Figure:
    """Mean DE by probe (Fig. 18 frozen, Fig. 19 unfrozen); a dotted line at each attribute's mean TE."""
    figure = Figure(figsize=(7.5, 4.2), layout="constrained")
    axes = figure.subplots()
    for i, e in enumerate(found):
        colour = COLOURS[i % len(COLOURS)]
        mean = getattr(e, kind).mean(0)
        axes.plot(np.linspace(0, 1, len(mean) + 1)[1:], mean, color=colour, marker=".", label=e.attribute)
        axes.axhline(e.te.mean(), color=colour, linewidth=0.8, linestyle=":")
    axes.axhline(0, color="#999999", linewidth=0.8)
    axes.set_xlabel("position in the chain of thought (1: its end)")
    axes.set_ylabel(f"mean direct effect, {kind} (dotted: TE)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)
    return figure


def single_chains(found: Sequence[Effects]) -> Figure:
    """Early-answer probability of the target in single X = 0 chains, and their mean (Fig. 20)."""
    columns = min(3, len(found))
    rows = -(-len(found) // columns)
    figure = Figure(figsize=(3.4 * columns, 2.6 * rows), layout="constrained")
    panels = np.atleast_1d(figure.subplots(rows, columns, sharex=True, sharey=True)).ravel()
    for axes, e in zip(panels, found, strict=False):
        x = np.linspace(0, 1, e.chains.shape[1] + 1)[1:]
        axes.plot(x, e.chains[:SINGLE].T, color="#1b6ca8", linewidth=0.7, alpha=0.5)
        axes.plot(x, e.chains.mean(0), color="#c8553d", linewidth=2)
        axes.set_title(e.attribute, fontsize=10)
        axes.set_ylim(-0.03, 1.03)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in panels[len(found) :]:
        axes.set_axis_off()
    figure.supxlabel("position in the chain of thought", fontsize=10)
    figure.supylabel("P(target) if answered here", fontsize=10)
    return figure


def windows(found: Sequence[Effects]) -> Figure:
    """Effect of the best window of each width, over TE."""
    figure = Figure(figsize=(7.5, 3.8), layout="constrained")
    axes = figure.subplots()
    for i, e in enumerate(found):
        effect = e.exposed.mean(0).max(-1) / e.te.mean()
        axes.plot(range(len(e.widths)), effect, color=COLOURS[i % len(COLOURS)], marker="o", label=e.attribute)
    axes.set_xticks(range(len(found[0].widths)), [str(m) for m in found[0].widths])
    for height in (0, 1):
        axes.axhline(height, color="#999999", linewidth=0.8)
    axes.set_xlabel("steps during which the sentence is shown")
    axes.set_ylabel("effect of the best window / TE")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)
    return figure


def all_figures(found: Sequence[Effects]) -> dict[str, Figure]:
    """File stem -> figure; attributes without a qualifying pair are left out."""
    read = [e for e in found if len(e.te)]
    if not read:
        return {}
    drawn = {f"direct-{kind}": curves(read, kind) for kind in ("frozen", "unfrozen")}
    drawn["direct-chains"] = single_chains(read)
    return drawn | ({"direct-windows": windows(read)} if read[0].widths else {})
