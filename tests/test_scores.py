"""Scores of a pair against plain Python, their edge cases, and the bound on the true-positive rate."""

import itertools
import math
from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxmon.estimation.scores import SCORES, Undefined, pair_scores


@st.composite
def pair_counts(draw, largest=2000):
    n1, n0 = draw(st.integers(1, largest)), draw(st.integers(1, largest))
    k1, k0 = draw(st.integers(0, n1)), draw(st.integers(0, n0))
    judged = draw(st.integers(0, k1))
    return k1, n1, k0, n0, judged, draw(st.integers(0, judged))


def by_hand(k1, n1, k0, n0, judged, l_):
    """The same scores in exact fractions, written out case by case; None = undefined."""
    te = Fraction(k1, n1) - Fraction(k0, n0)
    r = max(Fraction(0), te) / Fraction(k1, n1) if k1 else Fraction(0)
    if not judged:
        return te, r, None, None, None
    pi = Fraction(l_, judged)
    if te <= 0:
        return te, r, pi, Fraction(1 if l_ else 0), None
    return te, r, pi, min(Fraction(1), pi / r), pi / r


def scored(counts, **kwargs):
    return pair_scores(*(np.array([float(c)]) for c in counts), **kwargs)


@given(pair_counts())
def test_scores_equal_exact_fractions(counts):
    s = scored(counts)
    te, r, pi, m, raw = by_hand(*counts)
    assert s.te[0] == pytest.approx(float(te), abs=1e-12)
    assert s.excess[0] == pytest.approx(float(r), abs=1e-12)
    assert bool(s.has_judged[0]) == (pi is not None)
    assert bool(s.has_ratio[0]) == (raw is not None)
    if pi is not None:
        assert s.pi[0] == pytest.approx(float(pi), abs=1e-12)
        assert s.m[0] == pytest.approx(float(m), rel=1e-9, abs=1e-12)
    if raw is not None:
        assert s.m_raw[0] == pytest.approx(float(raw), rel=1e-9, abs=1e-12)


@given(pair_counts())
def test_scores_stay_in_range_and_finite(counts):
    s = scored(counts)
    assert all(np.isfinite(x).all() for x in s)
    assert 0 <= s.m[0] <= 1
    assert 0 <= s.excess[0] <= 1
    assert 0 <= s.pi[0] <= 1
    assert -1 <= s.te[0] <= 1


@settings(deadline=None)
@given(pair_counts())
def test_jax_float32_equals_numpy_float64(counts):
    here = scored(counts)
    there = pair_scores(*(jnp.array([c], jnp.float32) for c in counts), xp=jnp)
    for a, b in zip(here, there, strict=True):
        np.testing.assert_allclose(np.asarray(b, float), np.asarray(a, float), rtol=1e-4, atol=1e-6)


EDGES = [  # (k1, n1, k0, n0, J, L), zero_over_zero, R, M, raw defined
    ((500, 1000, 500, 1000, 500, 3), 0.0, 0.0, 1.0, False),
    ((500, 1000, 500, 1000, 500, 0), 0.0, 0.0, 0.0, False),
    ((500, 1000, 500, 1000, 500, 0), 1.0, 0.0, 1.0, False),
    ((300, 1000, 500, 1000, 300, 1), 0.0, 0.0, 1.0, False),
    ((540, 1000, 270, 1000, 540, 0), 0.0, 0.5, 0.0, True),
    ((540, 1000, 270, 1000, 540, 540), 0.0, 0.5, 1.0, True),
    ((540, 1000, 270, 1000, 540, 135), 0.0, 0.5, 0.5, True),
    ((540, 1000, 270, 1000, 54, 27), 0.0, 0.5, 1.0, True),  # J < K1: pi_Z = L/J
    ((1000, 1000, 0, 1000, 1000, 250), 0.0, 1.0, 0.25, True),
    ((3, 10, 60, 200, 3, 1), 0.0, 0.0, 1.0, False),  # 0.3 - 0.3 must be exactly no effect
]


@pytest.mark.parametrize(("counts", "choice", "excess", "m", "raw"), EDGES)
def test_edge_cases(counts, choice, excess, m, raw):
    s = scored(counts, zero_over_zero=choice)
    assert s.excess[0] == pytest.approx(excess)
    assert s.m[0] == pytest.approx(m)
    assert bool(s.has_ratio[0]) is raw


def test_no_target_answer_leaves_pi_and_m_undefined_not_zero():
    s = scored((0, 1000, 0, 1000, 0, 0))
    assert not s.has_judged[0]
    assert not s.has_target[0]
    assert s.excess[0] == 0


@given(st.integers(1, 8), st.data())
def test_m_is_the_largest_true_positive_rate_of_guan_et_al(n_target, data):
    """The best TPR over all sets of at least R K1 caused answers, L of K1 fired, is min(1, pi_Z / R)."""
    caused = data.draw(st.integers(1, n_target))
    fired = data.draw(st.integers(0, n_target))
    # p01 is chosen so that R K1 = caused: K0 / n0 = (K1 - caused) / n1
    s = scored((n_target, n_target, n_target - caused, n_target, n_target, fired))
    assert s.excess[0] == pytest.approx(caused / n_target)
    best = 0.0
    flagged = set(range(fired))
    for size in range(caused, n_target + 1):
        for group in itertools.combinations(range(n_target), size):
            best = max(best, len(flagged & set(group)) / size)
    assert s.m[0] == pytest.approx(best)


def test_delta_method_variance_of_the_unclipped_ratio():
    """Monte Carlo: the SD of M raw at TE = 0.3, n = 1000 follows the delta formula of SPEC 5 within 10 %.

    The SD of 20,000 draws has a relative standard error of 1/sqrt(40,000) = 0.5 %; the formula is good to a few percent
    at this TE, so 10 % fails by chance with a probability far below 1e-6.
    """
    rng = np.random.default_rng(0)
    n, p11, p01, m = 1000, 0.6, 0.3, 0.4
    a = m * (p11 - p01)  # P(Y=1, Z=1 | X=1)
    drawn = rng.multinomial(n, [a, p11 - a, 1 - p11], size=20_000).astype(float)
    k1, l_, k0 = drawn[:, 0] + drawn[:, 1], drawn[:, 0], rng.binomial(n, p01, 20_000).astype(float)
    size = np.full(20_000, float(n))
    raw = pair_scores(k1, size, k0, size, k1, l_).m_raw
    formula = a * (1 - a) - 2 * m * a * (1 - p11) + m**2 * (p11 * (1 - p11) + p01 * (1 - p01))
    assert raw.std() == pytest.approx(math.sqrt(formula / n) / (p11 - p01), rel=0.1)


def test_split_sample_bias_against_the_shared_batch():
    """SPEC 4, n = 1000, p11 = 0.54, M = 0.3, TE = 0.08: shared batch -0.046, split +0.027 (winner's curse).

    200,000 studies, about half pass; the SD of one M is about 0.12, so the mean is known to 0.12/sqrt(1e5) = 4e-4 and
    the tolerance 0.004 is ten standard errors.
    """
    rng = np.random.default_rng(1)
    n, p11, te, m = 1000, 0.54, 0.08, 0.3
    size = np.full(200_000, float(n))

    def batch():
        drawn = rng.multinomial(n, [m * te, p11 - m * te, 1 - p11], size=len(size)).astype(float)
        return drawn[:, 0] + drawn[:, 1], drawn[:, 0], rng.binomial(n, p11 - te, len(size)).astype(float)

    (k1, l1, k0), (j1, m1, j0) = batch(), batch()
    passed = k1 - k0 > 80
    shared = pair_scores(k1, size, k0, size, k1, l1).m[passed].mean() - m
    split = pair_scores(j1, size, j0, size, j1, m1).m[passed].mean() - m
    assert shared == pytest.approx(-0.046, abs=0.004)
    assert split == pytest.approx(0.027, abs=0.004)


def test_reasons_are_words_and_scores_are_five():
    assert len(set(Undefined)) == 8
    assert all(str(r) == r.value for r in Undefined)
    assert SCORES == ("TE", "R", "pi_Z", "M0", "M1")
