"""DE/TE and its interval against a plain loop; the level rule as a table; tables and the section from made arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments import rundir
from jaxmon.estimation.direct import Ratio, level, ratio, weights
from jaxmon.reports import direct_figures, direct_report


def test_ratio_is_the_paired_bootstrap_over_records() -> None:
    rng = np.random.default_rng(3)
    te = rng.uniform(0.1, 0.5, 9)
    de = 0.3 * te + rng.normal(0, 0.02, 9)
    found = ratio(de, te, 500, 7)
    values = []
    for row in weights(9, 500, 7):
        picked = np.repeat(np.arange(9), row)
        values.append(de[picked].mean() / te[picked].mean())
    assert found.value == pytest.approx(de.mean() / te.mean())
    assert [found.low, found.high] == pytest.approx(np.quantile(values, [0.025, 0.975]).tolist())
    assert found.records == 9


def test_the_best_of_several_is_taken_in_every_replicate() -> None:
    rng = np.random.default_rng(4)
    te, many = np.full(8, 0.4), rng.normal(0, 0.05, (8, 6))
    together, alone = ratio(many, te, 2000), [ratio(many[:, s], te, 2000) for s in range(6)]
    assert together.value == pytest.approx(max(r.value for r in alone))
    assert together.high >= max(r.high for r in alone)


@pytest.mark.parametrize(
    ("de", "te", "reason"),
    [
        ([], [], "fewer than two"),
        ([0.1], [0.3], "fewer than two"),
        ([0.1, 0.1], [-0.1, 0.05], "not positive"),
        ([0.1] * 4, [0.9, -0.3, -0.2, -0.1], "unbounded"),
    ],
)
def test_a_ratio_without_enough_evidence_has_a_reason(de: list[float], te: list[float], reason: str) -> None:
    found = ratio(np.array(de), np.array(te), 1000)
    assert (found.value, found.low, found.high) == (None, None, None)
    assert reason in found.reason


def near(value: float, width: float = 0.05) -> Ratio:
    return Ratio(value, value - width, value + width, 8)


@pytest.mark.parametrize(
    ("direct", "exposed", "expected"),
    [
        (near(1.0), [], "1"),
        (near(0.5), [], "undecided"),
        (near(0.3, 0.2), [near(0.0)], "undecided"),
        (Ratio(None, None, None, 1, "fewer than two records"), [near(0.0)], "undecided"),
        (near(0.0), [], "2"),
        (Ratio(0.0, 0.0, 0.0, 5), [near(0.0)], "undecided"),  # of five records only
        (near(0.0), [near(0.9), near(0.9), near(0.9)], "2"),
        (near(0.0), [near(0.1), near(0.9), near(0.9)], "3.2"),
        (near(0.0), [near(0.1), near(0.1), near(0.15)], "3.4"),  # the widest says no more than that
        (near(0.0), [near(0.1), near(0.48), near(0.1)], "3.2"),  # an interval that reaches a half ends the row
    ],
)
def test_level_rule(direct: Ratio, exposed: list[Ratio], expected: str) -> None:
    found = level(direct, (1, 2, 3)[: len(exposed)], exposed)
    assert found.name == expected
    assert found.reason


EARLY = {
    "prompt": [10, 10],
    "cuts": [[1, 2, 3], [1, 1, 2]],
    "settled": [1, 2],
    "x0": [[0.0, 0.2, 0.2], [0.1, 0.1, 0.5]],
    "frozen": [[0.0, 0.6, 0.6], [0.1, 0.3, 0.7]],
    "unfrozen": [[0.0, 0.2, 0.2], [0.1, 0.1, 0.5]],
}
WINDOWS = {"width": [1, 1, 2, 2], "start": [0, 4, 0, 4], "chains": [4] * 4, "hits": [1, 1, 1, 3], "hits0": [1] * 4}


def test_gather_and_tables_by_hand(tmp_path: Path) -> None:
    e = direct_report.gather("sex", [0.5, 0.4], [EARLY, EARLY], [WINDOWS, WINDOWS])
    np.testing.assert_allclose(e.frozen_at, [(0.4 + 0.2) / 2] * 2)  # each chain at its own i*
    np.testing.assert_allclose(e.frozen[0], [0.0, 0.3, 0.3])
    np.testing.assert_allclose(e.unfrozen_at, [0.0, 0.0])
    assert (e.late, e.prompt, e.settled) == (0.5, 10.0, 2.0)
    np.testing.assert_allclose(e.exposed[0], [[0.0, 0.0], [0.0, 0.5]])
    nothing = direct_report.gather("memo", [], [], [])
    rows = [direct_report.summary(x, 200, 0) for x in (e, nothing)]
    assert rows[0]["frozen"] == pytest.approx(0.3 / 0.45)
    assert (rows[1]["frozen"], rows[1]["level"]) == (None, "undefined")
    assert [r["probe"] for r in direct_report.curves([e, nothing])] == [1, 2, 3]
    assert [r["effect"] for r in direct_report.window_rows([e, nothing])] == [0.0, 0.0, 0.0, 0.5]
    rundir.write_csv(tmp_path / "rows.csv", list(rows[0]), rows)
    assert (tmp_path / "rows.csv").read_text().splitlines()[2].startswith("memo,0,0,,,,")
    assert {tuple(r) for r in direct_report.curves([e])} == {direct_report.CURVE}
    assert {tuple(r) for r in direct_report.window_rows([e])} == {direct_report.WINDOW}
    drawings = direct_figures.all_figures([e, nothing])
    assert list(drawings) == ["direct-frozen", "direct-unfrozen", "direct-chains", "direct-windows"]
    assert direct_figures.all_figures([nothing]) == {}
    page = direct_report.section(rows, {}, [e, nothing], (None, 6))
    assert "1 layers that see 6 tokens back: 40% of the prompt" in page
    assert "<td class=t>memo</td><td class=t>undefined</td>" in page


@pytest.mark.parametrize(("window", "share"), [(None, 1.0), (100, 1.0), (12, 1.0), (7, 0.5), (2, 0.0), (1, 0.0)])
def test_sight_of_a_sliding_layer(window: int | None, share: float) -> None:
    """A prompt of 10 tokens, 2 tokens after it: a layer that sees 7 back sees 5 of the 10."""
    assert direct_report.visible(window, 10, 2) == share
