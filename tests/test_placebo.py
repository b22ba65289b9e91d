"""Negative controls: counted against loops, set beside the exact alpha, found in report and files."""

import csv
import re

import numpy as np
import pytest
from scipy import stats

from experiments import scoring
from jaxmon.estimation import placebo, table
from jaxmon.estimation.cells import Settings
from jaxmon.reports import report
from jaxmon.statistics import exact
from jaxmon.tasks import registry
from tests import made

FEW = Settings(replicates=16)


def study():
    """Four pairs of a placebo: one passes by chance, one ties at tau, one is far below, one was dropped at stage 1."""
    rows = []
    for i, k0 in enumerate((40, 42, 60)):
        rows += made.pair(record=f"r{i}", attribute="memo", n1=100, k1=50, n0=100, k0=k0, judged=50, l=0)
    rows.append(made.row("r3", "memo", n1=100, k1=50, n0=20, k0=12, judged=50, l=0))
    rows.append(made.row("r3", "memo", batch="estimate", n1=100, k1=50, n0=0, k0=0, judged=50, l=0))
    rows += made.pair(record="r0", attribute="fee", n1=100, k1=50, n0=100, k0=10, judged=50, l=20)
    return made.make(rows)


def test_passes_are_counted_and_set_beside_alpha():
    (found,) = placebo.controls(study(), ["memo"], FEW)
    assert (found.pairs, found.dropped, found.passed, found.rate) == (4, 1, 1, 0.25)  # 0.08 is not above tau
    alpha = exact.false_positive_rate(0.08, 100, 100)[0]
    assert found.alpha == pytest.approx(alpha)  # the dropped pair would have had 100 chains
    measured = [180 / 400, 184 / 400, 220 / 400, 112 / 220]
    assert found.expected == pytest.approx(np.mean([exact.pass_probability(p, p, 100, 100, 0.08) for p in measured]))
    assert found.tail == pytest.approx(1 - (1 - alpha) ** 4)
    assert (found.low, found.high) == pytest.approx(tuple(stats.binomtest(1, 4).proportion_ci(0.95, "exact")))
    at_least = placebo.controls(study(), ["memo"], Settings(strict=False))[0]
    assert at_least.passed == 2
    assert at_least.alpha > found.alpha


def test_where_every_pair_was_dropped_the_arms_are_what_they_are():
    rows = [made.row("r0", "memo", n0=200, k0=110), made.row("r0", "memo", batch="estimate", n0=0, k0=0)]
    (found,) = placebo.controls(made.make(rows), ["memo"], FEW)
    assert (found.pairs, found.dropped, found.passed) == (1, 1, 0)
    assert found.alpha == pytest.approx(exact.false_positive_rate(0.08, 1000, 200)[0])
    assert found.tail == 1.0


def test_measured_rate_of_true_placebos_agrees_with_the_exact_one():
    """1,000 pairs at n = 100: passes are Bin(1000, expected); outside 5.3 standard errors once in 10^7."""
    rng = np.random.default_rng(0)
    rows = []
    for i, p in enumerate(rng.uniform(0.3, 0.7, 1000)):
        k1, k0 = rng.binomial(100, p, 2)
        rows += made.pair(record=f"r{i}", n1=100, k1=int(k1), n0=100, k0=int(k0), judged=0, l=0)
    (found,) = placebo.controls(made.make(rows), ["a"], FEW)
    spread = (found.expected * (1 - found.expected) / found.pairs) ** 0.5
    assert abs(found.rate - found.expected) < 5.3 * spread + 0.02  # 0.02: p is measured by the very chains that pass
    assert found.expected <= found.alpha


def test_the_report_and_the_files_hold_the_controls(tmp_path):
    counts = study()
    scoring.score(counts, None, tmp_path, FEW, placebos=["memo"])
    with (tmp_path / "placebo.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["attribute"], row["passed"], row["rate"]) == ("memo", "1", "0.25")
    text = re.sub(r"<[^>]+>", " ", (tmp_path / "report.html").read_text())
    assert re.search(r"Negative controls.*memo\s+4\s+1\s+1\s+0\.2500", text, re.DOTALL)
    assert "Negative controls" not in report.report(table.score_table(counts, None, FEW), counts)


def test_a_placebo_that_is_not_there_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(ValueError, match="no record has the placebo 'stars' \\(they have memo, fee\\)"):
        scoring.score(study(), None, tmp_path / "out", FEW, placebos=["stars"])
    assert not (tmp_path / "out").exists()


def test_a_task_declares_its_placebos_as_data():
    assert registry.load("ledger", (), registry.Request("", 1, 0)).placebos == ("memo",)
