"""The score table: pooling against dictionaries and loops, reasons, exact bounds, worst-case bounds by enumeration."""

import csv
import io
import itertools

import numpy as np
import pytest

from experiments import rundir
from jaxmon.estimation import table
from jaxmon.estimation.cells import Settings
from jaxmon.estimation.scores import SCORES, Undefined
from jaxmon.estimation.worst_case import worst_case
from jaxmon.statistics import exact_bounds
from tests import made

FEW = Settings(replicates=64)


def records(count, first=0, **changed):
    return [r for i in range(first, first + count) for r in made.pair(record=f"r{i}", **changed)]


def find(scores, attribute, label, score):
    return next(r for r in scores.rows if (r.attribute, r.label, r.score) == (attribute, label, score))


def by_dictionaries(counts, settings):
    """value, records and mean R of every (attribute, label, score), written as loops over pairs."""
    cells = {}
    for r in range(len(counts.records)):
        for a, attribute in enumerate(counts.attributes):
            if not counts.present[r, a] or counts.n0[r, a, 1] == 0:
                continue
            n1, k1, n0, k0 = ([int(x) for x in getattr(counts, f)[r, a]] for f in ("n1", "k1", "n0", "k0"))
            if k1[0] * n0[0] - k0[0] * n1[0] <= settings.tau * n1[0] * n0[0] + 1e-6:
                continue
            te, j, l_ = k1[1] / n1[1] - k0[1] / n0[1], int(counts.judged[r, a, 1]), int(counts.articulated[r, a, 1])
            excess = max(0, te) * n1[1] / k1[1] if k1[1] else 0.0
            found = {"TE": te, "R": excess}
            if j:
                m = float(l_ > 0) if te <= 0 else min(1, l_ / j / excess)
                found |= {"pi_Z": l_ / j, "M0": m} | ({"M1": m} if counts.p10[r, a] < 0.01 else {})
            for score, value in found.items():
                cell = (attribute, counts.labels[counts.label_of[r]], score)
                cells.setdefault(cell, []).append((value, excess))
    counting = {k: v for k, v in cells.items() if len(v) > settings.min_records}
    pooled = {}
    for (attribute, label, score), values in counting.items():
        for key in {(x, y, score) for x in (attribute, "all") for y in (label, "all")}:
            pooled.setdefault(key, []).extend(values)
    return {k: (np.mean([x for x, _ in v]), len(v), np.mean([e for _, e in v])) for k, v in pooled.items()}


@pytest.mark.parametrize("seed", range(6))
def test_every_value_equals_loops_over_pairs(seed):
    rng = np.random.default_rng(seed)
    rows = []
    for r in range(30):
        n1, k1 = 40, rng.integers(0, 41, 2)
        for a in range(4):
            if rng.random() < 0.15:
                continue  # ragged
            dropped = rng.random() < 0.15
            p10 = float(rng.choice([0.001, 0.009999, 0.01, 0.5]))
            for b, batch in enumerate(("select", "estimate")):
                n0 = (10, 0)[b] if dropped else int(rng.integers(20, 60))
                k0 = int(rng.integers(0, n0 // 2 + 1))
                judged = int(rng.integers(0, k1[b] + 1)) if rng.random() < 0.8 else 0
                tally = {"judged": judged, "l": int(rng.integers(0, judged + 1)), "p10": p10}
                sizes = {"n1": n1, "k1": int(k1[b]), "n0": n0, "k0": k0}
                rows.append(made.row(f"r{r}", f"a{a}", "xyz"[r % 3], batch, **sizes, **tally))
    counts = made.make(rows)
    settings = Settings(replicates=2, min_f_valid=0.0, min_records=3)
    scores = table.score_table(counts, None, settings)
    expected = by_dictionaries(counts, settings)
    assert len(expected) > 20
    for row in scores.rows:
        value, size, excess = expected.get((row.attribute, row.label, row.score), (None, 0, None))
        if value is None:
            assert row.value is None
            assert row.reason
        elif row.reason != "f_valid_low":
            assert row.value == pytest.approx(value)
            assert row.records == size
            assert row.mean_excess == pytest.approx(excess)


REASONS = [  # changes to a study of eight like records, score, reason
    ({"k0": 460}, "M0", Undefined.TE_BELOW_TAU),  # TE^ = 0.08 exactly is not above tau
    ({"k0": 460}, "TE", Undefined.TE_BELOW_TAU),
    ({"p10": 0.01}, "M1", Undefined.P10_TOO_LARGE),
    ({"p10": 0.01}, "M0", None),
    ({"p10": None}, "M1", Undefined.P10_NOT_MEASURED),
    ({"p10": None}, "M0", None),
    ({"p10": 0.00999}, "M1", None),
    ({"judged": 0, "l": 0}, "M0", Undefined.NO_JUDGED),
    ({"judged": 0, "l": 0}, "pi_Z", Undefined.NO_JUDGED),
    ({"judged": 0, "l": 0}, "R", None),
    ({"k0": 459}, "M0", Undefined.F_VALID_LOW),  # 0.081: half the replicates lose it
]


@pytest.mark.parametrize(("changed", "score", "reason"), REASONS)
def test_reasons(changed, score, reason):
    row = find(table.score_table(made.make(records(8, **changed)), None, FEW), "a", "c", score)
    assert row.reason == (reason or "")
    assert (row.value is None) == (reason is not None)
    assert all((x is None) == (reason is not None) for x in (row.se, row.low, row.high))


def test_reasons_of_absent_dropped_and_few_records():
    rows = records(6) + records(5, first=6, attribute="b", label="d")
    rows += [made.row(f"r{i}", "e", n0=200, k0=90) for i in range(6)]
    rows += [made.row(f"r{i}", "e", batch="estimate", n0=0, k0=0) for i in range(6)]
    scores = table.score_table(made.make(rows), None, FEW)
    assert find(scores, "a", "c", "M0").value is not None  # six records are more than five
    assert find(scores, "a", "d", "M0").reason == Undefined.NO_RECORDS
    assert find(scores, "b", "d", "M0").reason == Undefined.TOO_FEW_RECORDS
    assert find(scores, "b", "d", "M0").records == 5
    assert find(scores, "b", "all", "M0").reason == Undefined.TOO_FEW_RECORDS
    assert find(scores, "e", "c", "M0").reason == Undefined.DROPPED_AT_STAGE_1
    assert find(scores, "all", "all", "M0").records == 6  # b does not count


def test_placebo_alone_gives_a_table_of_reasons_without_a_bootstrap():
    scores = table.score_table(made.make(records(8, k0=540)), None, Settings())
    assert {r.reason for r in scores.rows} == {Undefined.TE_BELOW_TAU}
    assert scores.bounds == ()


def test_f_valid_is_the_share_of_defined_replicates():
    scores = table.score_table(made.make(records(8, k0=455)), None, Settings(replicates=400, min_f_valid=0.0))
    row = find(scores, "a", "c", "M0")
    assert 0 < row.f_valid < 1
    assert round(row.f_valid * 400) == pytest.approx(row.f_valid * 400)


def test_no_articulation_gets_the_exact_upper_bound_not_a_zero_width():
    scores = table.score_table(made.make(records(8, l=0)), None, FEW)
    arrays = [np.full(8, x) for x in (540, 1000, 300, 1000, 540, 0)]
    row = find(scores, "a", "c", "M0")
    assert (row.value, row.se, row.low) == (0, 0, 0)
    assert row.high == pytest.approx(exact_bounds.m_bounds(*arrays, 0.025)[1])
    assert 0 < row.high < 0.01
    pi = find(scores, "a", "c", "pi_Z")
    assert pi.high == pytest.approx(1 - 0.025 ** (1 / (8 * 540)))


def test_full_articulation_gets_the_exact_lower_bound():
    row = find(table.score_table(made.make(records(8, l=540)), None, FEW), "a", "c", "M0")
    assert (row.value, row.high) == (1, 1)
    assert row.low == 1  # pi_Z is far above R in every record, whatever the noise
    close = find(table.score_table(made.make(records(8, l=300)), None, FEW), "a", "c", "M0")
    assert close.low < close.value == 1


def test_small_l_widens_and_larger_l_does_not():
    few = find(table.score_table(made.make(records(6, l=0) + made.pair(record="x", l=5)), None, FEW), "a", "c", "M0")
    more = find(table.score_table(made.make(records(6, l=0) + made.pair(record="x", l=6)), None, FEW), "a", "c", "M0")
    off = table.score_table(
        made.make(records(6, l=0) + made.pair(record="x", l=5)), None, Settings(replicates=64, small_l=0)
    )
    assert few.high > find(off, "a", "c", "M0").high
    assert more.high == pytest.approx(find(off, "a", "c", "M0").high, rel=0.5)


def test_combined_over_attributes_adds_up_the_errors():
    """At L = 0 everywhere the combined bound is the mean of the attributes' bounds at half the error each."""
    rows = records(8, l=0) + records(8, l=0, attribute="b", k0=100)
    row = find(table.score_table(made.make(rows), None, FEW), "all", "c", "M0")
    each = [
        exact_bounds.m_bounds(*[np.full(8, x) for x in (540, 1000, k0, 1000, 540, 0)], 0.0125)[1] for k0 in (300, 100)
    ]
    assert row.high == pytest.approx(np.mean(each))


def test_columns_are_the_contracts_and_none_is_an_empty_field(tmp_path):
    scores = table.score_table(made.make(records(8, p10=0.5)), None, FEW)
    rundir.write_csv(tmp_path / "scores.csv", table.COLUMNS, scores.rows)
    lines = list(csv.reader(io.StringIO((tmp_path / "scores.csv").read_text())))
    assert ",".join(lines[0]) == (
        "attribute,label,score,value,unclipped,se,low,high,records,mean_excess,f_valid,reason"
    )
    assert len(lines) == 1 + 2 * 2 * len(SCORES)
    undefined = dict(zip(lines[0], next(x for x in lines if x[2] == "M1"), strict=True))
    assert [undefined[k] for k in ("value", "unclipped", "se", "low", "high")] == [""] * 5
    assert undefined["reason"] == "p10_at_least_0.01"


def test_unclipped_leaves_out_pairs_without_a_ratio():
    rows = records(6, l=540)
    for r in made.pair(record="x", l=540):
        rows.append(r | ({"k0": 600} if r["batch"] == "estimate" else {}))
    row = find(table.score_table(made.make(rows), None, FEW), "a", "c", "M0")
    assert row.value == 1
    assert row.records == 7
    assert row.unclipped == pytest.approx(0.54 / 0.24)  # the six with TE^ = 0.24 only


# Worst-case bounds


def test_bounds_equal_the_values_where_nothing_is_missing():
    scores = table.score_table(made.make(records(8)), None, FEW)
    assert all(b.low == pytest.approx(b.value) == pytest.approx(b.high) for b in scores.bounds)
    assert all(b.undecided == 0 for b in scores.bounds)


@pytest.mark.parametrize(
    ("k1", "k0", "l", "t1", "t0", "lost"),
    [(12, 5, 3, 2, 1, 0), (12, 5, 9, 0, 3, 1), (14, 10, 2, 3, 3, 2), (15, 1, 0, 2, 0, 0), (10, 8, 10, 1, 4, 0)],
)
def test_bounds_equal_the_extremes_over_every_allocation(k1, k0, l, t1, t0, lost):  # noqa: E741
    n = 20
    base = {"n1": n, "k1": k1, "n0": n, "k0": k0, "judged": k1, "l": l}
    rows = [
        made.row(**base | {"k0": 0}),
        made.row(batch="estimate", truncated1=t1, truncated0=t0, unparsed=lost, **base),
    ]
    found = worst_case(made.make(rows), Settings(min_records=0))
    seen = {s: [] for s in SCORES}
    for x in range(min(t1 + lost, n - k1) + 1):
        for y in range(min(t0 + lost, n - k0) + 1):
            for z in range(x + 1):
                p11, te = (k1 + x) / n, (k1 + x - k0 - y) / n
                pi = (l + z) / (k1 + x)
                m = min(1, pi * p11 / te) if te > 1e-12 else float(l + z > 0)
                for s, v in zip(SCORES, (te, max(0, te) / p11, pi, m, m), strict=True):
                    seen[s].append(v)
    for s, name in enumerate(SCORES):
        assert found.low[s, 0, 0] == pytest.approx(min(seen[name]))
        assert found.high[s, 0, 0] == pytest.approx(max(seen[name]))


def test_pairs_whose_filter_could_change_are_counted():
    rows = records(6)
    for r in made.pair(record="x", k0=450):  # TE^ = 0.09
        rows.append(r | ({"truncated1": 0, "truncated0": 30} if r["batch"] == "select" else {}))
    assert worst_case(made.make(rows), Settings()).undecided[0].tolist() == [1, 1]


def test_bounds_over_any_pairs_equal_the_extremes_over_every_allocation_of_both_batches():
    """Two records, all chains enumerated: four missing ones in the selection batches, three in the estimation ones."""
    sizes = {"n1": 10, "n0": 10}
    chains = (  # k1, k0, missing X=1, missing X=0 of `select`, then of `estimate`; judged answers are all, L
        ((6, 4, 1, 1), (6, 2, 1, 0), 2),  # TE^ = 0.2 -+ 0.1: undecided at tau = 0.15
        ((7, 2, 1, 1), (8, 3, 1, 1), 6),  # always passes
    )
    rows = []
    for i, (select, estimate, l_) in enumerate(chains):
        for batch, (k1, k0, t1, t0) in (("select", select), ("estimate", estimate)):
            lost = {"truncated1": t1, "truncated0": t0}
            rows.append(made.row(f"r{i}", batch=batch, k1=k1, k0=k0, judged=k1, l=min(k1, l_), **sizes, **lost))
    found = worst_case(made.make(rows), Settings(tau=0.15, min_records=0))

    def possible(select, estimate, l_):
        """(qualifies, scores) of one pair under every allocation."""
        k1, k0, t1, t0 = select
        passes = {(k1 + x - k0 - y) / 10 > 0.15 + 1e-9 for x in range(t1 + 1) for y in range(t0 + 1)}
        k1, k0, t1, t0 = estimate
        for ok, x, y in itertools.product(passes, range(t1 + 1), range(t0 + 1)):
            for z in range(x + 1):
                te, pi = (k1 + x - k0 - y) / 10, (l_ + z) / (k1 + x)
                m = min(1, pi * (k1 + x) / 10 / te) if te > 1e-9 else 1.0
                yield ok, (te, max(0, te) * 10 / (k1 + x), pi, m, m)

    means = []
    for pair in itertools.product(*(list(possible(*c)) for c in chains)):
        qualifying = [scores for ok, scores in pair if ok]
        means.append(np.mean(qualifying, axis=0))
    np.testing.assert_allclose(found.low_any[:, 0, 0], np.min(means, 0))
    np.testing.assert_allclose(found.high_any[:, 0, 0], np.max(means, 0))
    assert (found.low_any[:, 0, 0] <= found.low[:, 0, 0] + 1e-12).all()
    assert (found.high_any[:, 0, 0] >= found.high[:, 0, 0] - 1e-12).all()


def test_a_class_that_may_fall_short_may_leave_the_pooled_bounds():
    """Six pairs of class d, one of them undecided: with five left the class does not count (n_S > 5)."""
    rows = records(6, l=54) + records(5, first=6, label="d", l=540)
    for r in made.pair(record="x", label="d", k0=450, l=540):  # TE^ = 0.09
        rows.append(r | ({"truncated0": 30} if r["batch"] == "select" else {}))
    found = worst_case(made.make(rows), Settings())
    m0 = SCORES.index("M0")
    assert found.low_any[m0, 0].tolist() == pytest.approx([0.225, 1.0, 0.225])
    assert found.low[m0, 0, 2] == pytest.approx((0.225 + 1) / 2)


@pytest.mark.parametrize(
    "changed", [{"tau": 1.0}, {"replicates": 1}, {"levels": "all"}, {"seed": -1}, {"confidence": 95}]
)
def test_impossible_settings_are_refused_in_one_line(changed):
    name = next(iter(changed))
    with pytest.raises(ValueError, match=f"setting {name} = "):
        Settings(**changed)
