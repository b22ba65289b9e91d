"""`python -m experiments.design`: the tables are the functions', the page is whole, disagreements are computed."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from experiments import design_figures, design_page, design_tables
from experiments.design_tables import Design
from jaxmon.statistics import exact, ratio
from tests.test_report import Checker

ROOT = Path(__file__).resolve().parent.parent
SMALL = Design(n=60, stage1=20, points=3)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("design")
    return root, design_page.write(root / "new", SMALL)


def test_every_table_and_figure_is_written_and_the_page_is_self_contained(made):
    root, tables = made
    names = {p.name for p in (root / "new").iterdir()}
    assert names == {f"{t}.csv" for t in tables} | {
        f"{f}.{kind}" for f in design_figures.FIGURES for kind in ("png", "svg")
    } | {"design.html"}
    checker = Checker()
    text = (root / "new/design.html").read_text()
    checker.feed(text)
    assert checker.open == []
    assert not {"script", "link", "iframe", "img"} & {tag for tag, _ in checker.seen}
    assert text.count("<svg") == 4
    for name, rows in tables.items():
        with (root / f"new/{name}.csv").open(newline="") as file:
            found = list(csv.DictReader(file))
        assert [list(r) for r in found] == [list(r) for r in rows]
        assert [[float(r[k]) for k in r if k in ("n", "te", "alpha")] for r in found] == [
            pytest.approx([float(r[k]) for k in r if k in ("n", "te", "alpha")], rel=1e-5) for r in rows
        ]


def test_rows_are_the_functions_values(made):
    _, tables = made
    row = next(r for r in tables["table1"] if (r["n"], r["tau"]) == (60, 0.08))
    assert row["sd_te"] == pytest.approx((2 * 0.25 / 60) ** 0.5)
    assert row["alpha_above"] == exact.false_positive_rate(0.08, 60, 60)[0]
    assert row["alpha_at_least"] == exact.false_positive_rate(0.08, 60, 60, False)[0]
    assert row["power_0.15"] == exact.power(0.15, 0.08, 60, 60)[0]
    assert row["sd_m_moderate_delta"] == ratio.worst_delta_sd(0.24, 0.08, 60)[0]
    last = tables["fig9_bias"][-1]
    assert last["shared"] == ratio.bias(1.0, 0.3, 0.54, 60, 0.08).total
    assert last["split"] == ratio.bias(1.0, 0.3, 0.54, 60).total
    assert {r["chains"] for r in tables["fig10_discard"]} == {60, 120}
    assert {r["n"] for r in tables["fig7_false_positives"]} >= {60}


def test_figures_draw_the_rows(made):
    _, tables = made
    figure = design_figures.figure9(tables["fig9_bias"], SMALL)
    drawn = [np.asarray(line.get_ydata()) for line in figure.axes[0].lines]
    for m in (0.07, 1.0):
        for column in ("split", "shared"):
            rows = [r[column] for r in tables["fig9_bias"] if r["m"] == m]
            assert any(len(y) == len(rows) and np.allclose(y, rows) for y in drawn)


def test_disagreements_are_stated_with_computed_values():
    rows = {r["what"]: r["computed"] for r in design_tables.sources(SMALL)}
    assert "tau = 0.08: 0.0001875 (>=), 0.000158 (>)" in rows["alpha(0.1, 1000) or alpha(0.08, 1000)"]
    assert "tau = 0.1: 4.23e-06 (>=), 3.43e-06 (>)" in rows["alpha(0.1, 1000) or alpha(0.08, 1000)"]
    noise = rows["SD of M in Table 1, small and moderate M0"]
    for fits in ("0.065: 0.0330 to", "0.24: 0.0823 to", "0.034: 0.0224 to first order, 0.0333", "0.0821 exact"):
        assert fits in noise


@pytest.mark.parametrize(
    "changed", [{"n": 5}, {"tau": 0.6}, {"stage1": 1001}, {"drop_below": 0.09}, {"p11": 0.05}, {"points": 1}]
)
def test_impossible_designs_are_refused_in_one_line(changed):
    with pytest.raises(ValueError, match=f"design {next(iter(changed))} = "):
        Design(**changed)


def test_the_program_runs_and_says_what_is_wrong(tmp_path):
    def run(*given):
        command = [sys.executable, "-m", "experiments.design", *given]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=os.environ)

    done = run(f"--workdir={tmp_path}/out", "--n=60", "--stage1=20", "--points=2")
    assert done.returncode == 0, done.stderr
    assert "n=60  tau=0.08  sd_te=0.09129" in done.stdout
    wrong = run(f"--workdir={tmp_path}/other", "--n=60")
    assert (wrong.returncode, wrong.stderr.strip()) == (1, "error: design stage1 = 200: expected 1 to n = 60")
    assert not (tmp_path / "other").exists()
