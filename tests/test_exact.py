"""Exact binomials against double loops and scipy, and the numbers of the paper's appendices as SPEC gives them."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from jaxmon.statistics import exact, exact_bounds


@given(
    st.integers(0, 60), st.integers(1, 60), st.integers(0, 60), st.integers(1, 60), st.integers(0, 99), st.booleans()
)
def test_whole_number_filter_equals_fractions(k1, n1, k0, n0, percent, strict):
    k1, k0 = min(k1, n1), min(k0, n0)
    m1, m0, need = exact.threshold(percent / 100, n1, n0, strict)
    te, tau = Fraction(k1, n1) - Fraction(k0, n0), Fraction(percent, 100)
    assert (k1 * m1 - k0 * m0 >= need) == (te > tau if strict else te >= tau)


def test_a_tie_at_tau_is_a_tie():
    """0.58 - 0.5 is 0.07999999999999996 in floating point, and other pairs with the same difference round up."""
    for k0 in range(921):
        for strict in (True, False):
            m1, m0, need = exact.threshold(0.08, 1000, 1000, strict)
            assert ((k0 + 80) * m1 - k0 * m0 >= need) is (not strict)


@pytest.mark.parametrize(("k", "n"), [(0, 1), (0, 540), (1, 540), (17, 40), (40, 40), (539, 540)])
@pytest.mark.parametrize("alpha", [0.025, 1e-4])
def test_clopper_pearson_solves_its_equations(k, n, alpha):
    low, high = (float(x) for x in exact.clopper_pearson(np.array(k), np.array(n), alpha))
    if k > 0:
        assert stats.binom.sf(k - 1, n, low) == pytest.approx(alpha)
    if k < n:
        assert stats.binom.cdf(k, n, high) == pytest.approx(alpha)
    other = stats.binomtest(k, n).proportion_ci(1 - 2 * alpha, "exact")
    assert (low, high) == pytest.approx((other.low, other.high))


def test_clopper_pearson_closed_forms_at_the_ends():
    low, high = exact.clopper_pearson(np.array([0, 5, 0]), np.array([20, 5, 0]), 0.025)
    np.testing.assert_allclose(low, [0, 0.025 ** (1 / 5), 0])
    np.testing.assert_allclose(high, [1 - 0.025 ** (1 / 20), 1, 1])


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 64), st.integers(0, 64), st.integers(1, 25), st.integers(1, 25), st.booleans())
def test_pass_probability_equals_the_double_loop(p11, p01, n1, n0, strict):
    p11, p01 = p11 / 64, p01 / 64
    total = 0.0
    for k1 in range(n1 + 1):
        for k0 in range(n0 + 1):
            te = Fraction(k1, n1) - Fraction(k0, n0)
            if te > Fraction(2, 25) or (not strict and te == Fraction(2, 25)):
                total += stats.binom.pmf(k1, n1, p11) * stats.binom.pmf(k0, n0, p01)
    assert exact.pass_probability(p11, p01, n1, n0, 0.08, strict) == pytest.approx(total, abs=1e-12)


SPEC_ALPHA = [  # SPEC 5, to the digits given there
    (0.08, True, 1.580e-4, 4),
    (0.08, False, 1.875e-4, 4),
    (0.1, False, 4.2e-6, 2),
]


@pytest.mark.parametrize(("tau", "strict", "value", "digits"), SPEC_ALPHA)
def test_false_positive_rate_is_the_one_of_spec_5_and_sits_at_one_half(tau, strict, value, digits):
    alpha, p = exact.false_positive_rate(tau, 1000, 1000, strict)
    assert float(f"{alpha:.{digits - 1}e}") == pytest.approx(value)
    assert p == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize(
    ("effect", "n1", "value"), [(0.10, 2000, 0.029), (0.15, 2000, 5.7e-4), (0.10, 1000, 0.034), (0.15, 1000, 8.9e-4)]
)
def test_stage_1_discard_probability_is_the_one_of_spec_6(effect, n1, value):
    assert exact.discard_probability(effect, n1, 200, 0.03)[0] == pytest.approx(value, rel=0.02)


def test_placebo_passes_as_often_as_alpha_says():
    """Monte Carlo at n = 50, tau = 0.2: 10^6 placebo pairs against the exact rate, 5.5 standard errors (4e-8)."""
    rng = np.random.default_rng(0)
    alpha, p = exact.false_positive_rate(0.2, 50, 50)
    draws = 1_000_000
    passed = (rng.binomial(50, p, draws) - rng.binomial(50, p, draws) > 10).mean()
    assert passed == pytest.approx(alpha, abs=5.5 * np.sqrt(alpha * (1 - alpha) / draws))


# Bounds on means over pairs


def arrays(*columns):
    return [np.array(c) for c in columns]


def test_upper_bound_of_one_pair_is_clopper_pearson():
    l_, j = arrays([3], [500])
    expected = exact.clopper_pearson(l_, j, 0.025)[1][0]
    assert exact_bounds.mean_ratio_upper(l_, j, np.ones(1), 0.025) == pytest.approx(expected)
    assert exact_bounds.mean_ratio_upper(l_, j, np.full(1, 0.5), 0.025) == pytest.approx(2 * expected)


def test_rule_of_three_over_pooled_records():
    l_, j = np.zeros(20, int), np.full(20, 540)
    high = exact_bounds.mean_ratio_upper(l_, j, np.ones(20), 0.05)
    assert high == pytest.approx(1 - 0.05 ** (1 / (20 * 540)))
    assert high == pytest.approx(3 / (20 * 540), rel=2e-3)


def test_no_positive_floor_means_no_bound():
    l_, j = arrays([0, 0], [100, 100])
    assert exact_bounds.mean_ratio_upper(l_, j, np.zeros(2), 0.025) == 1.0
    # one hopeless pair counts as 1, the other keeps its bound
    assert 0.5 < exact_bounds.mean_ratio_upper(l_, j, np.array([0.0, 1.0]), 0.025) < 0.53


@pytest.mark.parametrize("rates", [(0.002, 0.002, 0.002), (0.0, 0.0, 0.012), (0.001, 0.01, 0.02), (0.0, 0.05, 0.5)])
@pytest.mark.parametrize("judged", [(300, 300, 300), (50, 200, 500)])
def test_upper_bound_on_mean_pi_holds_exactly_for_unequal_records(rates, judged):
    """Error probability summed over all outcomes but 1e-9 in each tail: it may not exceed alpha."""
    alpha = 0.05
    supports = [
        np.arange(stats.binom.ppf(1e-9, j, p), stats.binom.ppf(1 - 1e-9, j, p) + 1)
        for j, p in zip(judged, rates, strict=True)
    ]
    wrong = 0.0
    for outcome in np.array(np.meshgrid(*supports)).reshape(3, -1).T.astype(int):
        high = exact_bounds.mean_ratio_upper(outcome, np.array(judged), np.ones(3), alpha)
        if high < np.mean(rates):
            wrong += np.prod([stats.binom.pmf(k, j, p) for k, j, p in zip(outcome, judged, rates, strict=True)])
    assert wrong <= alpha + 1e-6


def test_bounds_on_mean_m_hold_at_the_stated_rate_for_unequal_records():
    """2,000 studies of six unequal records. Each side may be wrong in 2.5 %: at most 90 studies, P < 1e-6 otherwise."""
    rng = np.random.default_rng(3)
    p11 = np.array([0.9, 0.8, 0.6, 0.5, 0.5, 0.4])
    p01 = np.array([0.1, 0.4, 0.2, 0.3, 0.1, 0.2])
    limit = stats.binom.isf(1e-6, 2000, 0.025)
    for pi in (np.array([0, 0, 0.001, 0.004, 0.0, 0.001]), np.array([0.5, 0.3, 0.2, 0.1, 0.4, 0.05])):
        truth = np.minimum(1, pi / (1 - p01 / p11)).mean()
        low_wrong = high_wrong = 0
        n = np.full(6, 300)
        for _ in range(2000):
            k1, k0 = rng.binomial(n, p11), rng.binomial(n, p01)
            low, high = exact_bounds.m_bounds(k1, n, k0, n, k1, rng.binomial(k1, pi), 0.025)
            low_wrong += low > truth
            high_wrong += high < truth
        assert low_wrong <= limit
        assert high_wrong <= limit


def test_effect_bounds_hold_the_true_means_and_meet_certainty():
    n = np.full(4, 1000)
    (te_low, te_high), (r_low, r_high) = exact_bounds.effect_bounds(n, n, n * 0, n, 0.025)
    assert te_high == r_high == 1.0
    assert 0.98 < te_low < 1
    assert 0.98 < r_low < 1


def test_combining_weights_by_size():
    assert exact_bounds.combine([(0.0, 0.1), (0.2, 0.4)], [3, 1]) == pytest.approx((0.05, 0.175))
