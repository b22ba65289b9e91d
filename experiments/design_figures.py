"""The design tables as figures in the form of the paper's Figs. 7-10 (App. C-E).

Knows: rows of design_tables.py. Does not know: how they were computed, files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from matplotlib.figure import Figure

from experiments.design_tables import Design, Rows

COLOURS = ("#1b6ca8", "#c8553d", "#3a7d44", "#7b4f9e")
WIDE, NARROW = (9.0, 3.9), (6.2, 3.9)


def figure7(rows: Rows, d: Design) -> Figure:
    figure, (axes,) = _canvas(1)
    for colour, tau in zip(COLOURS, _values(rows, "tau"), strict=False):
        _line(axes, rows, "n", "alpha", {"tau": tau}, color=colour, label=f"τ = {tau:g}")
    axes.set(xscale="log", yscale="log", ylim=(1e-8, 1), xlabel="chains per arm, n", ylabel="α(τ, n), exact, TE^ > τ")
    axes.axvline(d.n, color="#999999", linewidth=0.8)
    return _done(figure, "False-positive rate of the filter (worst p)")


def figure8(rows: Rows, d: Design) -> Figure:
    sizes = _values(rows, "n")
    figure, panels = _canvas(len(sizes))
    for axes, n in zip(panels, sizes, strict=True):
        for colour, m in zip(COLOURS, _values(rows, "m"), strict=False):
            _line(axes, rows, "te", "exact", {"n": n, "m": m}, color=colour, label=f"M = {m:g}")
            _line(axes, rows, "te", "delta", {"n": n, "m": m}, color=colour, linestyle=":")
        axes.set(yscale="log", ylim=(5e-3, 1), xlabel="true total effect, TE", ylabel="SD of M^")
        axes.set_title(f"n = {n:,}", fontsize=10)
    return _done(figure, "Noise of M^: exact, clipped (solid); first order, unclipped (dotted)")


def figure9(rows: Rows, d: Design) -> Figure:
    figure, panels = _canvas(2)
    for axes, wanted, title in zip(
        panels,
        ({"split": "-", "shared": "--"}, {"split": "-", "unclipped": ":"}),
        ("two batches (solid), one batch (dashed)", "clipped (solid), unclipped (dotted)"),
        strict=True,
    ):
        for colour, m in zip(COLOURS, _values(rows, "m"), strict=False):
            for column, style in wanted.items():
                name = f"M = {m:g}" if style == "-" else None
                _line(axes, rows, "te", column, {"m": m}, color=colour, linestyle=style, label=name)
        axes.axvline(d.tau, color="#999999", linewidth=0.8)
        axes.axhline(0, color="#999999", linewidth=0.8)
        axes.set(xlabel="true total effect, TE (line: τ)", ylabel="bias of M^", ylim=(-0.45, 0.2))
        axes.set_title(title, fontsize=10)
    return _done(figure, f"Bias of M^, exact (n = {d.n:,}, p11 = {d.p11:g})")


def figure10(rows: Rows, d: Design) -> Figure:
    figure, (axes,) = _canvas(1)
    for colour, n1 in zip(COLOURS, _values(rows, "chains"), strict=False):
        label = f"X=1 arm: {n1:,} chains"
        _line(axes, rows, "te", "discarded", {"chains": n1}, color=colour, label=label)
    axes.axvline(d.tau, color="#999999", linewidth=0.8)
    axes.set(yscale="log", ylim=(1e-8, 1.5), xlabel="true total effect, TE (line: τ)", ylabel="P(dropped), worst p01")
    return _done(figure, f"Discarded at stage 1 ({d.stage1} chains, TE^ < {d.drop_below:g})")


FIGURES: Mapping[str, Callable[[Rows, Design], Figure]] = {
    "fig7_false_positives": figure7,
    "fig8_noise": figure8,
    "fig9_bias": figure9,
    "fig10_discard": figure10,
}


def _canvas(panels: int) -> tuple[Figure, list[Any]]:
    figure = Figure(figsize=WIDE if panels > 1 else NARROW, layout="constrained")
    found = list(figure.subplots(1, panels, squeeze=False)[0])
    for axes in found:
        axes.grid(color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    return figure, found


def _done(figure: Figure, title: str) -> Figure:
    figure.suptitle(title, fontsize=11)
    figure.axes[0].legend(frameon=False, fontsize=8)
    return figure


def _values(rows: Rows, column: str) -> list[Any]:
    return list(dict.fromkeys(row[column] for row in rows))


def _line(axes: Any, rows: Rows, x: str, y: str, where: Mapping[str, Any], **style: Any) -> None:
    chosen: Iterable[Any] = [r for r in rows if all(r[k] == v for k, v in where.items())]
    axes.plot([r[x] for r in chosen], [r[y] for r in chosen], linewidth=1.6, **style)
