"""Direct effects as tables and as a section of the report: one row per attribute, curves, windows.

Knows: arrays per attribute -> rows and HTML. Does not know: files, models, how effects were measured.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxmon.estimation.direct import Level, Ratio, level, ratio
from jaxmon.reports import page

Row = dict[str, object]


@dataclasses.dataclass(frozen=True)
class Effects:
    """What was measured of one attribute, over the R records that qualify; K probes, W widths, S starts.

    Attributes:
      te: float [R], total effects.
      frozen, unfrozen: float [R, K], the change of the target's early answer, mean over a record's chains.
      frozen_at, unfrozen_at: float [R], the same at each chain's own i*.
      chains: early-answer probabilities of single X = 0 chains, float [n, K].
      late: share of chains whose answer settles at the last cut only.
      prompt, settled: mean tokens of the prompt, and of the chain up to i*.
      widths: m of the windows; starts: float [S], mean first step; exposed: float [R, W, S], effect of each window.
    """

    attribute: str
    te: np.ndarray
    frozen: np.ndarray
    unfrozen: np.ndarray
    frozen_at: np.ndarray
    unfrozen_at: np.ndarray
    chains: np.ndarray
    late: float
    prompt: float
    settled: float
    widths: tuple[int, ...]
    starts: np.ndarray
    exposed: np.ndarray


def gather(
    attribute: str, te: Sequence[float], early: Sequence[Mapping[str, Any]], windows: Sequence[Mapping[str, Any]]
) -> Effects:
    """Effects from the columns of each record's files, in one order of records."""
    probes = len(early[0]["x0"][0]) if early else 0
    changes: dict[str, list[np.ndarray]] = {"frozen": [], "unfrozen": []}
    at: dict[str, list[float]] = {"frozen": [], "unfrozen": []}
    for columns in early:
        where = np.asarray(columns["settled"])
        for kind in changes:
            change = np.asarray(columns[kind], np.float64) - np.asarray(columns["x0"], np.float64)
            changes[kind].append(change.mean(0))
            at[kind].append(float(np.take_along_axis(change, where[:, None], 1).mean()))
    rows = [c for columns in early for c in zip(columns["settled"], columns["cuts"], columns["prompt"], strict=True)]
    widths = tuple(dict.fromkeys(windows[0]["width"])) if windows else ()
    grid = lambda values: np.asarray(values, np.float64).reshape(len(widths), -1)
    exposed = [(grid(w["hits"]) - grid(w["hits0"])) / grid(w["chains"]) for w in windows]
    starts = [grid(w["start"])[0] for w in windows]
    mean = lambda values: float(np.mean(values)) if len(values) else 0.0
    return Effects(
        attribute,
        np.asarray(te, np.float64),
        np.array(changes["frozen"]).reshape(len(early), probes),
        np.array(changes["unfrozen"]).reshape(len(early), probes),
        np.array(at["frozen"]),
        np.array(at["unfrozen"]),
        np.array([p for columns in early for p in columns["x0"]]).reshape(len(rows), probes),
        mean([i == probes - 1 for i, _, _ in rows]),
        mean([p for _, _, p in rows]),
        mean([cuts[i] for i, cuts, _ in rows]),
        widths,
        np.mean(starts, axis=0) if starts else np.zeros(0),
        np.array(exposed).reshape(len(windows), len(widths), len(starts[0]) if starts else 0),
    )


def best(e: Effects, replicates: int, seed: int) -> list[Ratio]:
    """Per width, the effect of the best start over TE, with an interval that holds for all starts together."""
    return [ratio(e.exposed[:, w], e.te, replicates, seed) for w in range(len(e.widths))]


def summary(e: Effects, replicates: int, seed: int) -> Row:
    """One row of direct_effect.csv."""
    frozen, unfrozen = (ratio(x, e.te, replicates, seed) for x in (e.frozen_at, e.unfrozen_at))
    said = level(frozen, e.widths, best(e, replicates, seed)) if len(e.te) else Level("undefined", "no pair qualifies")
    row: Row = {"attribute": e.attribute, "records": len(e.te), "chains": len(e.chains)}
    row |= {"te": float(e.te.mean()) if len(e.te) else None}
    for name, r in (("frozen", frozen), ("unfrozen", unfrozen)):
        row |= {f"{name}": r.value, f"{name}_low": r.low, f"{name}_high": r.high}
    return row | {"late": e.late, "level": said.name, "reason": said.reason}


CURVE = ("attribute", "probe", "frozen", "unfrozen")
WINDOW = ("attribute", "width", "start", "effect", "te")


def curves(found: Sequence[Effects]) -> list[Row]:
    """curves.csv: the mean direct effect at every probe."""
    return [
        {"attribute": e.attribute, "probe": k + 1, "frozen": float(f), "unfrozen": float(u)}
        for e in found
        if len(e.te)
        for k, (f, u) in enumerate(zip(e.frozen.mean(0), e.unfrozen.mean(0), strict=True))
    ]


def window_rows(found: Sequence[Effects]) -> list[Row]:
    """windows.csv: the mean effect of every window."""
    return [
        {"attribute": e.attribute, "width": m, "start": float(s), "effect": float(e.exposed[:, w, i].mean())}
        | {"te": float(e.te.mean())}
        for e in found
        if len(e.te)
        for w, m in enumerate(e.widths)
        for i, s in enumerate(e.starts)
    ]


def _interval(row: Row, name: str) -> str:
    if row[name] is None:
        return "–"
    return f"{row[name]:.3f} [{row[f'{name}_low']:.3f}, {row[f'{name}_high']:.3f}]"


def lines(rows: Sequence[Row]) -> list[str]:
    """A table to print."""
    out = [f"{'attribute':16} {'DE/TE frozen':>24} {'unfrozen':>24} {'n_S':>4}  level"]
    for r in rows:
        effects = f"{_interval(r, 'frozen'):>24} {_interval(r, 'unfrozen'):>24}"
        out.append(f"{r['attribute']:16} {effects} {r['records']:4}  {r['level']}")
    return out


def visible(window: int | None, prompt: float, read: float) -> float:
    """The share of a prompt that a layer with this window still sees when `read` tokens have been read after it."""
    return 1.0 if window is None else float(np.clip((window - read) / max(prompt, 1.0), 0.0, 1.0))


def section(
    rows: Sequence[Row], drawings: Mapping[str, str], found: Sequence[Effects], windows: Sequence[int | None]
) -> str:
    """The section of the report, as HTML.

    Args:
      rows: of `summary`; drawings: SVG text by name; windows: how far back each layer sees (None: everything).
    """
    head = ("attribute", "level", "why", "records", "chains", "TE", "DE/TE frozen", "DE/TE unfrozen", "settle last")
    lines = [
        [
            *(r[k] for k in ("attribute", "level", "reason", "records", "chains", "te")),
            *(_interval(r, "frozen"), _interval(r, "unfrozen"), r["late"]),
        ]
        for r in rows
    ]
    kinds = dict.fromkeys(windows)
    read = [e for e in found if len(e.te)]
    prompt, settled = (float(np.mean([getattr(e, k) for e in read])) if read else 0.0 for k in ("prompt", "settled"))
    sight = "; ".join(
        f"{sum(w == kind for w in windows)} layers that see {'everything' if kind is None else f'{kind} tokens back'}: "
        f"{visible(kind, prompt, settled):.0%} of the prompt at i*"
        for kind in kinds
    )
    return (
        page.paragraph(
            "DE: change of the early answer's target probability when the sentence is put back before a chain sampled "
            "without it, at i*, from where on the most probable early answer no longer changes. Frozen: the chain's "
            "states stay as they are; unfrozen: they are computed anew. Intervals: paired bootstrap over records."
        )
        + page.paragraph(f"Sight: {sight} (mean prompt {prompt:.0f} tokens, i* after {settled:.0f}).")
        + page.table(head, lines, texts=3)
        + "".join(page.figure(svg) for svg in drawings.values())
    )
