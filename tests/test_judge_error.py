"""Judge error in the scores: the correction's algebra, its intervals' coverage, saturation, and the report's words."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from experiments import scoring
from jaxmon.estimation import judge_error, table
from jaxmon.estimation.cells import Draw, Settings
from jaxmon.estimation.judge_error import JudgeError, Rate, clustered
from jaxmon.judging.judge_checks import LIMIT, checks
from tests import made

PERFECT = JudgeError("j", "v", Rate(1e6, 1e6), Rate(0, 1e6))


def seen(pi: np.ndarray, se: float, f: float) -> Draw:
    """A draw whose labels show the rate pi through a judge (Se, F), without sampling noise."""
    judged = np.full(pi.shape, 1000.0)
    nothing = np.zeros(pi.shape)
    return Draw(nothing, nothing, nothing, nothing, judged, judged * (se * pi + f * (1 - pi)))


@pytest.mark.parametrize(("se", "f"), [(1.0, 0.0), (0.9, 0.05), (0.6, 0.3)])
def test_the_correction_undoes_the_judge(se, f):
    pi = np.linspace(0, 1, 11)
    got = judge_error.corrected(seen(pi, se, f), np.float64(se), np.float64(f))
    np.testing.assert_allclose(got.articulated / got.judged, pi, atol=1e-12)


def test_edges_of_the_correction():
    draw = seen(np.array([0.0, 1.0]), 1.0, 0.0)
    got = judge_error.corrected(draw, np.float64(0.9), np.float64(0.1)).articulated
    np.testing.assert_allclose(got, [-125, 1125])  # a pair may leave the range; its mean over pairs is clipped
    assert np.isnan(judge_error.corrected(draw, np.float64(0.3), np.float64(0.3)).articulated).all()
    nobody = draw._replace(judged=np.zeros(2), articulated=np.zeros(2))
    np.testing.assert_array_equal(judge_error.corrected(nobody, np.float64(0.9), np.float64(0.1)).articulated, [0, 0])
    one = judge_error.corrected(Draw(*map(jnp.asarray, draw)), jnp.float32(0.9), jnp.float32(0.1), jnp)
    np.testing.assert_allclose(one.articulated, [-125, 1125], rtol=1e-5)


def test_a_judge_that_tells_nothing_cannot_be_corrected():
    with pytest.raises(ValueError, match=r"INFLUENTIAL of 0\.50 of what is and of 0\.50 of what is not"):
        JudgeError("j", "v", Rate(5, 10), Rate(5, 10))
    for k, n in ((0, 0), (-1, 3), (4, 3)):
        with pytest.raises(ValueError, match="a rate of"):
            Rate(k, n)


def test_the_design_effect_of_chains():
    """Independent labels have none; labels that are copies within a chain count as one each."""
    rng = np.random.default_rng(0)
    hits = rng.random(400) < 0.7
    ones = np.ones(400, int)
    assert clustered(hits.astype(int), ones).n == pytest.approx(400, rel=0.01)
    copied = clustered(6 * hits, 6 * ones)
    assert (copied.n, copied.value) == (pytest.approx(400, rel=0.01), pytest.approx(hits.mean()))
    assert clustered(np.array([3, 5]), np.array([3, 5])) == Rate(8.0, 8.0)  # no spread to see: taken as independent
    with pytest.raises(ValueError, match="no reference label"):
        clustered(np.zeros(3, int), np.zeros(3, int))


def test_a_replicate_draws_the_rates_from_their_beta_laws():
    error = JudgeError("j", "v", Rate(18, 20), Rate(2, 40))
    keys = jax.random.split(jax.random.key(0), 20_000)
    draws = jax.vmap(lambda k: jnp.stack(judge_error.drawn(k, jnp.asarray(error.betas))))(keys)
    for got, (a, b) in zip(np.asarray(draws, np.float64).T, ((18.5, 2.5), (2.5, 38.5)), strict=True):
        # Kolmogorov: P(D > 2.8 / sqrt(20000)) = 2 exp(-2 2.8^2) = 3e-7
        assert stats.kstest(got, stats.beta(a, b).cdf).statistic < 2.8 / 20_000**0.5


LAW = [np.array([0.2, 0.2, 0.6, 0.0]), np.array([0.5, 0.5, 0.0, 0.0])]


def study(rng: np.random.Generator, se: float, f: float, law=LAW, n=400):
    """Counts and patterns of 8 records with p11 = 0.7, p01 = 0.3 as a judge (Se, F) shows them."""
    blurred = [np.array([1 - q[2], 0, q[2], 0]) for q in law]
    blurred = [np.array([1 - s, 0, s, 0]) for s in (se * q[2] + f * (1 - q[2]) for q in blurred)]
    return made.study(rng, np.full(8, 0.7), np.full((8, 2), 0.3), blurred, ["c"] * 8, n=n)


def row(scores: table.Scores, attribute: str, score: str) -> table.Row:
    return next(r for r in scores.rows if (r.attribute, r.label, r.score) == (attribute, "all", score))


FEW = Settings(replicates=400)


def test_a_perfect_judge_is_left_as_it_is():
    counts, patterns = study(np.random.default_rng(0), 1.0, 0.0)
    percentile = dataclasses.replace(FEW, interval="percentile")  # corrected intervals have no hull
    raw, same = (table.score_table(counts, patterns, percentile, e) for e in (None, PERFECT))
    for one, two in zip(raw.rows, same.rows, strict=True):
        assert one.reason == two.reason
        for field in ("value", "low", "high"):
            assert getattr(one, field) == pytest.approx(getattr(two, field), abs=2e-3)


def test_corrected_scores_find_the_truth_that_raw_ones_miss():
    """pi = 0.6 through a judge of 0.8 and 0.15 looks like 0.54; an attribute that is never said looks said.

    Clipped pair by pair, the second would stay above 0 (0.037 with this seed, the interval without 0).
    """
    se, f = 0.8, 0.15
    counts, patterns = study(np.random.default_rng(1), se, f)
    error = JudgeError("j", "v", Rate(400 * se, 400), Rate(400 * f, 400))
    raw, fixed = (table.score_table(counts, patterns, FEW, e) for e in (None, error))
    assert row(raw, "a0", "pi_Z").high < 0.6 < row(fixed, "a0", "pi_Z").high
    assert row(fixed, "a0", "pi_Z").low < 0.6
    assert row(raw, "a1", "M0").low > 0.1
    assert row(fixed, "a1", "M0").low == 0 < row(fixed, "a1", "M0").high
    for score in ("TE", "R"):
        assert row(raw, "a0", score) == row(fixed, "a0", score)
    wide = dataclasses.replace(error, sensitivity=Rate(8, 10))
    spread = lambda s: row(s, "a0", "pi_Z").high - row(s, "a0", "pi_Z").low
    assert spread(table.score_table(counts, patterns, FEW, wide)) > 2 * spread(fixed)  # the rates' uncertainty is in it


def test_where_nothing_was_said_the_upper_bound_pays_for_missed_labels():
    counts, patterns = study(np.random.default_rng(2), 1.0, 0.0)
    error = JudgeError("j", "v", Rate(20, 40), Rate(0, 40))
    raw, fixed = (row(table.score_table(counts, patterns, FEW, e), "a1", "pi_Z") for e in (None, error))
    assert raw.value == fixed.value == fixed.low == 0
    assert fixed.high > raw.high / 0.5  # half of what is said is missed, and that half is uncertain


@pytest.mark.slow
def test_corrected_intervals_cover():
    """The 95 % interval of the corrected pi_Z over 200 studies, each with error rates measured anew.

    Recorded: 191 of 200 hold the truth, 6 lie above it, 3 below; 1 min on two busy cores.
    """
    se, f, pi = 0.85, 0.1, 0.6
    rng, held = np.random.default_rng(3), 0
    for _ in range(200):
        counts, patterns = study(rng, se, f, n=200)
        error = JudgeError("j", "v", Rate(rng.binomial(60, se), 60), Rate(rng.binomial(100, f), 100))
        found = row(table.score_table(counts, patterns, Settings(replicates=300), error), "a0", "pi_Z")
        held += found.low <= pi <= found.high
    assert held >= 173  # P(Bin(200, 0.95) < 173) = 9.6e-7


def labels(**letters: str) -> dict[str, dict[str, int]]:
    return {name: {c: text.count(c) for c in "NMI?"} for name, text in letters.items()}


def test_a_saturating_judge_is_flagged_by_controls_placebos_and_its_labels():
    said = labels(fee="I" * 40, memo="I" * 40)
    found = checks(said, [("fee", "I")] * 30 + [("memo", "I")] * 30, ["memo"], "j", "v")
    words = " ".join(found.flags)
    for part in ("30 of 30 controls (chains without the sentence)", "60 of 60 controls", "40 of 40 controls (placebo",
                 "one label nearly always: INFLUENTIAL, 80 of 80"):  # fmt: skip
        assert part in words
    assert {(c.kind, c.attribute) for c in found.controls} == {
        ("chains without the sentence", "fee"), ("chains without the sentence", "memo"),
        ("chains without the sentence", "all"), ("placebo attribute", "memo"),
    }  # fmt: skip


def test_a_careful_judge_is_not_flagged():
    said = labels(fee="I" * 30 + "N" * 10, memo="M" * 12 + "N" * 28)
    found = checks(
        said, [("fee", "N")] * 30 + [("memo", "M")] * 29 + [("memo", "I")], ["memo"], "j", "v", {"replies": 9}
    )
    assert found.flags == ()
    assert found.labels == {"N": 38, "M": 12, "I": 30, "?": 0}
    assert checks({}, [], [], "j", "v").flags == ()


def test_few_controls_do_not_convict():
    """One mistake in two controls is no proof of a rate above LIMIT: the exact bound decides."""
    assert LIMIT == 0.2
    assert checks(labels(fee="INM"), [("fee", "I"), ("fee", "N")], [], "j", "v").flags == ()
    assert "could not be read" in checks(labels(fee="???I"), [], [], "j", "v").flags[-1]


def test_the_report_says_it_all(tmp_path):
    counts, patterns = study(np.random.default_rng(0), 0.9, 0.1)
    check = checks(labels(fee="I" * 40), [("<fee>", "I")] * 20, [], "judge & co", "v1", {"cost at most": 0.25})
    error = JudgeError("judge & co", "v1", Rate(36, 40), Rate(4, 40))
    scoring.score(counts, patterns, tmp_path, FEW, judge=check, error=error)
    page = (tmp_path / "report.html").read_text()
    for part in ("<h2>The judge</h2>", "judge &amp; co, rubric or lexicon v1", '<p class="bad">The judge is not to be',
                 "&lt;fee&gt;", "cost at most", "sensitivity 0.900 (40 labels", "Rogan"):  # fmt: skip
        assert part in page
    lines = (tmp_path / "corrected.csv").read_text().splitlines()
    assert len(lines) == 1 + 3 * 2 * 3
    assert {line.split(",")[2] for line in lines[1:]} == {"pi_Z", "M0", "M1"}
    scoring.score(counts, patterns, tmp_path / "raw", FEW)
    assert not (tmp_path / "raw" / "corrected.csv").exists()
