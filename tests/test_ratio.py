"""The law of M^, its intervals, and every number that App. C, D and E.1 give, to the digits they are printed with."""

import numpy as np
import pytest
from scipy import stats

from jaxmon.estimation.scores import pair_scores
from jaxmon.statistics import exact, exact_bounds, ratio, ratio_intervals

P11, N = 0.54, 1000


def of(m, te, tau=None, strict=True):
    return ratio.bias(m, te, P11, N, tau, strict).total


PRINTED = [  # what, the value as printed, how it is computed here
    ("worst SD(TE^), n = 1000", "0.0224", lambda: exact.effect_sd(0.5, 0.5, 1000, 1000)),
    ("worst SD(TE^), n = 100", "0.0707", lambda: exact.effect_sd(0.5, 0.5, 100, 100)),
    ("alpha(0.08, 1000), >=", "1.875e-4", lambda: exact.false_positive_rate(0.08, 1000, 1000, False)[0]),
    ("alpha(0.08, 1000), >", "1.580e-4", lambda: exact.false_positive_rate(0.08, 1000, 1000)[0]),
    ("alpha(0.1, 1000), >=", "4.2e-6", lambda: exact.false_positive_rate(0.1, 1000, 1000, False)[0]),
    ("alpha(0.1, 1000), >", "3.43e-6", lambda: exact.false_positive_rate(0.1, 1000, 1000)[0]),
    *[
        (f"worst delta SD(M^) at M = {m}", printed, lambda m=m: ratio.worst_delta_sd(m, 0.08, 1000)[0])
        for m, printed in (
            *((0.07, "0.0346"), (0.1, "0.0437"), (0.2, "0.0716")),
            *((0.24, "0.0823"), (0.5, "0.1505"), (1, "0.2795")),
        )
    ],
    ("Table 1, moderate M0", "0.082", lambda: ratio.worst_delta_sd(0.24, 0.08, 1000)[0]),
    ("Table 1, small M0", "0.033", lambda: ratio.worst_delta_sd(0.065, 0.08, 1000)[0]),
    ("shared bias, TE 0.08, M 0.3", "-0.046", lambda: of(0.3, 0.08, 0.08, strict=False)),
    ("shared bias, TE 0.08, M 1", "-0.16", lambda: of(1.0, 0.08, 0.08, strict=False)),
    ("split bias, TE 0.08, M 0.3", "0.028", lambda: of(0.3, 0.08)),  # 0.027 was also seen: the exact value is 0.0277
    ("split bias, TE 0.08, M 1", "-0.086", lambda: of(1.0, 0.08)),
    ("split bias, TE 0.15, M 0.3", "0.006", lambda: of(0.3, 0.15)),
    ("split bias, TE 0.15, M 1", "-0.050", lambda: of(1.0, 0.15)),
    ("split bias, TE 0.25, M 0.3", "0.002", lambda: of(0.3, 0.25)),
    ("split bias, TE 0.25, M 1", "-0.030", lambda: of(1.0, 0.25)),
    ("discard, TE 0.10, 2,000 chains", "0.029", lambda: exact.discard_probability(0.10, 2000, 200, 0.03)[0]),
    ("discard, TE 0.15, 2,000 chains", "5.7e-4", lambda: exact.discard_probability(0.15, 2000, 200, 0.03)[0]),
    ("discard, TE 0.10, 1,000 chains", "0.034", lambda: exact.discard_probability(0.10, 1000, 200, 0.03)[0]),
    ("discard, TE 0.15, 1,000 chains", "8.9e-4", lambda: exact.discard_probability(0.15, 1000, 200, 0.03)[0]),
    ("upper bound at L = 0, J = 540", "6.8e-3", lambda: exact_bounds.pi_bounds(*_one(540, 0), 0.025)[1]),
]


def _one(*values):
    return [np.array([v]) for v in values]


@pytest.mark.parametrize(("what", "printed", "value"), PRINTED, ids=[p[0] for p in PRINTED])
def test_printed_numbers_are_reproduced_to_their_last_digit(what, printed, value):
    mantissa, _, exponent = printed.partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    assert abs(value() - float(printed)) <= unit / 2 + 1e-12


def test_delta_is_too_small_near_tau_and_good_at_a_fifth():
    """§5 prints 21 to 27 % at TE = 0.08; that holds for M = 0.24 ... 0.4. Over all M <= 0.5 it is 13 to 31 %."""

    def short(m, te):
        return 1 - ratio.delta_sd(m, te, P11, N) / ratio.law(P11, P11 - te, m * te / P11, N, N).sd

    at_tau = [short(m, 0.08) for m in (0.07, 0.25, 0.4, 0.5)]
    assert at_tau == pytest.approx([0.315, 0.275, 0.205, 0.130], abs=6e-4)
    assert all(0 < short(m, 0.2) < 0.035 for m in (0.07, 0.3, 0.5))


def test_fieller_holds_its_level_near_tau_and_is_unbounded_in_a_twentieth():
    for m, delta_covers, fieller_covers in ((0.07, 0.907, 0.941), (0.3, 0.927, 0.964)):
        found = ratio_intervals.coverage(ratio_intervals.fieller, m, 0.08, P11, N)
        assert found.covered == pytest.approx(fieller_covers, abs=6e-4)
        assert found.unbounded == pytest.approx(0.0508, abs=1e-4)
        assert ratio_intervals.coverage(ratio_intervals.delta, m, 0.08, P11, N).covered == pytest.approx(
            delta_covers, abs=6e-4
        )


@pytest.mark.parametrize("tau", [None, 0.1])
@pytest.mark.parametrize(
    ("p11", "p01", "pi", "n1", "n0", "at_zero"),
    [(0.6, 0.35, 0.2, 12, 12, 0), (0.5, 0.45, 0.9, 9, 14, 1), (0.9, 0.1, 0.5, 10, 7, 0.5), (0.3, 0.3, 0, 8, 8, 0)],
)
def test_law_equals_the_sum_over_every_outcome(p11, p01, pi, n1, n0, at_zero, tau):
    """A triple loop through scores.pair_scores, the definition itself."""
    k1, k0, l_ = (x.ravel() for x in np.meshgrid(*(np.arange(n + 1.0) for n in (n1, n0, n1)), indexing="ij"))
    possible = l_ <= k1
    k1, k0, l_ = k1[possible], k0[possible], l_[possible]
    weight = stats.binom.pmf(k1, n1, p11) * stats.binom.pmf(k0, n0, p01) * stats.binom.pmf(l_, k1, pi)
    if tau is not None:
        weight = weight * (k1 / n1 - k0 / n0 > tau + 1e-12)
    s = pair_scores(k1, n1, k0, n0, k1, l_, at_zero)
    positive = k1 * n0 > k0 * n1
    found = ratio.law(p11, p01, pi, n1, n0, tau, zero_over_zero=at_zero)
    for value, keep, mean, sd in (
        (s.m, np.ones_like(positive), found.mean, found.sd),
        (s.m_raw, positive, found.raw_mean, found.raw_sd),
    ):
        w = weight * keep / (weight * keep).sum()
        assert mean == pytest.approx((w * value).sum(), abs=1e-9)
        assert sd == pytest.approx(np.sqrt((w * (value - mean) ** 2).sum()), abs=1e-7)
    assert found.passed == pytest.approx(weight.sum() if tau is not None else 1.0)


def test_first_order_bias_and_sd_are_limits_of_the_exact_ones():
    """At n = 6,000 and TE = 0.3 the next order is smaller by about 1/(n TE^2) = 1/540."""
    for m in (0.1, 1.2):
        exactly = ratio.law(0.6, 0.3, m * 0.3 / 0.6, 6000, 6000)
        assert exactly.raw_mean - m == pytest.approx(ratio.ratio_bias(m, 0.3, 0.6, 6000), rel=1e-2)
        assert exactly.raw_sd == pytest.approx(ratio.delta_sd(m, 0.3, 0.6, 6000), rel=5e-3)


def test_bias_falls_apart_into_ratio_and_clip():
    near, clipped = ratio.bias(0.3, 0.15, P11, N), ratio.bias(1.0, 0.25, P11, N)
    assert near.total == pytest.approx(near.ratio, abs=1e-5)
    assert clipped.ratio == pytest.approx(0.0056, abs=5e-5)
    assert clipped.clip == pytest.approx(-0.0356, abs=5e-5)
    assert clipped.total == pytest.approx(clipped.ratio + clipped.clip)


def test_worst_sd_is_no_smaller_than_a_grid_and_stays_among_possible_rates():
    for m, te in ((0.07, 0.08), (1.0, 0.08), (2.5, 0.3), (0.3, 0.9)):
        worst, p11 = ratio.worst_delta_sd(m, te, N)
        grid = np.linspace(te * max(1.0, m), 1, 500)
        assert worst >= max(ratio.delta_sd(m, te, p, N) for p in grid) - 1e-9
        assert te * max(1.0, m) <= p11 <= 1


def test_power_is_the_least_pass_probability_and_alpha_its_other_end():
    least, p01 = exact.power(0.15, 0.08, 200, 200)
    assert least == pytest.approx(exact.pass_probability(p01 + 0.15, p01, 200, 200, 0.08))
    grid = [exact.pass_probability(p + 0.15, p, 200, 200, 0.08) for p in np.linspace(0, 0.85, 60)]
    assert least <= min(grid) + 1e-12
    assert exact.power(0.0, 0.08, 200, 200)[0] <= exact.false_positive_rate(0.08, 200, 200)[0]


# Intervals from counts


def test_delta_from_counts_is_the_formula_at_the_estimated_rates():
    found = ratio_intervals.parts(540, 1000, 300, 1000, 540, 100)
    interval = ratio_intervals.delta(found)
    m, te = (100 / 540) / (0.24 / 0.54), 0.24
    assert (interval.low + interval.high) / 2 == pytest.approx(m)
    assert (interval.high - interval.low) / (2 * stats.norm.isf(0.025)) == pytest.approx(
        ratio.delta_sd(m, te, 0.54, 1000)
    )


def test_variance_of_parts_is_the_simulated_one_also_where_a_part_is_judged():
    """200,000 draws: the SE of a variance is 0.32 %, and 2 % are 6 of them (2e-9)."""
    rng = np.random.default_rng(0)
    n1, n0, share = 400, 300, 0.5
    k1, k0 = rng.binomial(n1, 0.6, 200_000), rng.binomial(n0, 0.3, 200_000)
    judged = rng.binomial(k1, share)
    a, d, *_ = ratio_intervals.parts(k1, n1, k0, n0, judged, rng.binomial(judged, 0.25))
    middle = ratio_intervals.parts(240, n1, 90, n0, 120, 30)
    assert np.var(a) == pytest.approx(middle.v_a, rel=0.02)
    assert np.var(d) == pytest.approx(middle.v_d, rel=0.02)
    assert np.cov(a, d)[0, 1] == pytest.approx(middle.v_ad, rel=0.05)


def test_fieller_solves_its_equation_and_says_unbounded():
    found = ratio_intervals.parts([540, 540, 540], 1000, [300, 520, 600], 1000, 540, 100)
    interval = ratio_intervals.fieller(found)
    assert interval.unbounded.tolist() == [False, True, False]  # the last is clearly negative
    assert np.isinf([interval.low[1], interval.high[1]]).all()
    for m in (interval.low[0], interval.high[0]):
        variance = found.v_a[0] - 2 * m * found.v_ad[0] + m**2 * found.v_d[0]
        assert (found.a[0] - m * found.d[0]) ** 2 == pytest.approx(stats.norm.isf(0.025) ** 2 * variance)
    assert interval.high[2] < 0
    assert ratio_intervals.delta(found).unbounded.tolist() == [False, False, True]


def test_fieller_goes_over_into_delta_for_many_chains():
    found = ratio_intervals.parts(5_400_000, 10**7, 3_000_000, 10**7, 5_400_000, 1_000_000)
    both = ratio_intervals.delta(found), ratio_intervals.fieller(found)
    assert both[0].low == pytest.approx(both[1].low, rel=1e-5)
    assert both[0].high == pytest.approx(both[1].high, rel=1e-5)


def test_no_articulation_gives_no_width_and_no_judged_answers_no_number():
    found = ratio_intervals.parts([540, 540], 1000, 300, 1000, [540, 0], 0)
    for interval in (ratio_intervals.delta(found), ratio_intervals.fieller(found)):
        assert (interval.low[0], interval.high[0]) == (0, 0)
        assert np.isnan(interval.low[1])


def test_pooled_parts_are_the_ratio_of_sums():
    found = ratio_intervals.parts([500, 600], 1000, [400, 100], 1000, [500, 600], [50, 300])
    total = found.total()
    assert total.a / total.d == pytest.approx((0.05 + 0.3) / (0.1 + 0.5))
    assert total.v_d == pytest.approx(found.v_d.sum())


def test_variance_between_pairs_is_that_of_the_sums():
    """Over 40,000 like pairs it is the chains' own variance (SE 0.7 %, 5 % are 7 of them); unequal pairs add theirs."""
    rng = np.random.default_rng(1)
    k1, k0 = rng.binomial(1000, 0.54, 40_000), rng.binomial(1000, 0.3, 40_000)
    found = ratio_intervals.parts(k1, 1000, k0, 1000, k1, rng.binomial(k1, 0.2))
    within, between = found.total(), found.between()
    for name in ("v_a", "v_d", "v_ad"):
        assert getattr(between, name) == pytest.approx(getattr(within, name), rel=0.05)
    apart = ratio_intervals.parts([500, 600], 1000, [400, 100], 1000, [500, 600], [50, 300])
    assert apart.between().v_d == pytest.approx(2 * np.var([0.1, 0.5], ddof=1))
    assert apart.between().v_ad == pytest.approx(2 * np.cov([0.05, 0.3], [0.1, 0.5])[0, 1])
