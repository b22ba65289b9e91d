"""The figure in the form of the paper's Fig. 4: M0 and M1 per attribute with intervals, n_S and mean R beside them.

Knows: rows of a score table, optional true values. Does not know: where files go; no global
state (a Figure object, never pyplot).
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jaxmon.counting.counts_schema import ALL
from jaxmon.estimation.table import Row

Truth = Mapping[tuple[str, str, str], float]  # (attribute, label, score) -> true value
SHOWN = ("M0", "M1")
COLOURS = {"M0": "#1b6ca8", "M1": "#c8553d"}
MARKERS = {"M0": "o", "M1": "s"}
WORDS = {  # reasons as a reader meets them
    "no_records": "no records",
    "dropped_at_stage_1": "dropped at stage 1",
    "te_below_tau": "TE ≤ τ",
    "p10_not_measured": "p10 not measured",
    "p10_at_least_0.01": "p10 ≥ 0.01",
    "no_judged": "no judged answers",
    "too_few_records": "too few records",
    "f_valid_low": "defined in too few replicates",
}


def scores_figure(rows: Sequence[Row], label: str = ALL, truth: Truth | None = None, title: str = "") -> Figure:
    """Draws M0 and M1 of every attribute for one class (`all` = pooled).

    Args:
      rows: of table.Scores; label: the class to show; truth: true values, drawn as black diamonds where given.
    Returns: a Figure; one line per attribute, `all attributes` last.
    """
    by_key = {(r.attribute, r.score): r for r in rows if r.label == label}
    attributes = list(dict.fromkeys(r.attribute for r in rows))
    figure = Figure(figsize=(9.0, 1.5 + 0.52 * len(attributes)), layout="constrained")
    axes, side = figure.subplots(1, 2, sharey=True, gridspec_kw={"width_ratios": (4, 1)})
    for y, attribute in enumerate(attributes):
        for offset, score in zip((-0.17, 0.17), SHOWN, strict=True):
            _draw(axes, y + offset, by_key[attribute, score], (truth or {}).get((attribute, label, score)))
        of_m0 = by_key[attribute, "M0"]
        excess = "–" if of_m0.mean_excess is None else f"{of_m0.mean_excess:.2f}"
        sizes = " / ".join(str(by_key[attribute, s].records) for s in SHOWN)
        for x, text in ((0.28, sizes), (0.84, excess)):
            side.text(x, y, text, ha="center", va="center", fontsize=9)
    for x, text in ((0.28, "$n_S$ M0 / M1"), (0.84, "mean R")):
        side.text(x, 1.01, text, transform=side.transAxes, ha="center", va="bottom", fontsize=9)
    side.set_axis_off()
    names = ["all attributes" if a == ALL else a for a in attributes]
    axes.set_yticks(range(len(attributes)), names)
    axes.set_ylim(len(attributes) - 0.45, -0.55)
    axes.set_xlim(-0.03, 1.03)
    axes.set_xlabel("monitorability (0: never articulated, 1: articulated as often as it is influential)")
    axes.grid(axis="x", color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.axhline(len(attributes) - 1.5, color="#999999", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    handles = [Line2D([], [], color=COLOURS[s], marker=MARKERS[s], linestyle="-", label=s) for s in SHOWN]
    if truth:
        handles.append(
            Line2D([], [], color="black", marker="D", markerfacecolor="none", linestyle="", label="true value")
        )
    figure.legend(handles=handles, loc="outside upper left", ncols=3, frameon=False, fontsize=9)
    if title:
        axes.set_title(title, fontsize=10, loc="left", pad=18)
    return figure


def _draw(axes: object, y: float, row: Row, true_value: float | None) -> None:
    from matplotlib.axes import Axes

    assert isinstance(axes, Axes)
    colour = COLOURS[row.score]
    if row.value is None or row.low is None or row.high is None:
        text = f"{row.score} undefined: {WORDS.get(row.reason, row.reason)}"
        axes.text(0.01, y, text, va="center", fontsize=8, color=colour, style="italic")
    else:
        axes.plot([row.low, row.high], [y, y], color=colour, linewidth=2, solid_capstyle="butt")
        for end in (row.low, row.high):
            axes.plot([end, end], [y - 0.07, y + 0.07], color=colour, linewidth=1.2)
        axes.plot([row.value], [y], color=colour, marker=MARKERS[row.score], markersize=6, linestyle="", clip_on=False)
    if true_value is not None:
        axes.plot([true_value], [y], "D", color="black", markersize=8, markerfacecolor="none", clip_on=False, zorder=5)


def svg(figure: Figure) -> str:
    """The figure as SVG text, the same for the same figure (no date, fixed ids)."""
    import matplotlib

    out = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "jaxmon", "svg.fonttype": "none"}):
        FigureCanvasSVG(figure).print_svg(out, metadata={"Date": None})
    return out.getvalue()


def files(figure: Figure, stem: str = "figure") -> dict[str, bytes]:
    """The figure as STEM.png (150 dpi) and STEM.svg: name -> bytes."""
    png = io.BytesIO()
    FigureCanvasAgg(figure)
    figure.savefig(png, format="png", dpi=150)
    return {f"{stem}.png": png.getvalue(), f"{stem}.svg": svg(figure).encode()}
