"""Sampling rules: the paper's by name, exact figures against enumeration and simulation, the promised risks."""

import itertools

import numpy as np
import pytest
from scipy import stats

from jaxmon.rules import adaptive, operating, staged
from jaxmon.rules.adaptive import Plan
from jaxmon.statistics import exact


def test_the_papers_rule_by_name_decides_as_the_paper():
    plan = Plan(n=60, stage1=20)
    rule = staged.make("two_stage", plan)
    k1, k0 = np.meshgrid(np.arange(61), np.arange(21), indexing="ij")
    here = np.array([[staged.decide(a, b, 0, rule) for b in range(21)] for a in range(61)])
    np.testing.assert_array_equal(here == "go on", adaptive.keep(k1, k0, plan))
    assert set(here.flat) == {"go on", "drop"}
    assert (rule.looks, rule.always, staged.stops(0, rule)) == ((20,), True, False)
    assert staged.make("two_stage", Plan(stage1=0)).looks == ()
    with pytest.raises(ValueError, match="'three'"):
        staged.make("three", plan)


@pytest.mark.parametrize("n", [1, 7, 24, 300, 1000])
def test_looks_are_within_the_selection_batch_and_never_ask_for_less_than_the_filter_needs(n):
    rule = staged.staged(Plan(n=n, stage1=1))
    assert list(rule.looks) == sorted(set(rule.looks))
    assert rule.looks[-1] == n
    assert rule.looks[0] >= 1
    assert 1 <= rule.first <= n
    # after n chains no pair that passes TE^ > tau is dropped: K1 - K0 > tau n goes on
    k1 = np.arange(n + 1)
    assert (rule.most[-1] >= k1 - np.floor(0.08 * n + 1e-9) - 1).all()
    # a settled pair passes the filter, and is not dropped
    for m, most, enough in zip(rule.looks, rule.most, rule.enough, strict=True):
        m1, m0, need = exact.threshold(0.08, n, m)
        assert ((k1 * m1 - enough * m0 >= need) | (enough < 0)).all()
        assert (enough <= most).all()


def test_exact_figures_equal_enumeration():
    """n = 6, every path of chains one by one."""
    n, p11, p01 = 6, 0.7, np.array([0.4, 0.1])
    most = np.array([[-1, 0, 1, 1, 2, 2, 2], [-1, 0, 0, 1, 2, 3, 3]])
    enough = np.array([[-1, -1, -1, 0, 0, 0, 0], [-1, -1, -1, -1, 0, 0, 1]])
    rule = staged.Rule(n, 3, 1, (2, 5), most, enough, False)
    discard, passed, chains0, stopped, chains1 = np.zeros(2), np.zeros(2), np.zeros(2), 0.0, 0.0

    def arm(k1, p):
        kept = past = drawn = 0.0
        for path in itertools.product((0, 1), repeat=n):
            weight, end = p ** sum(path) * (1 - p) ** (n - sum(path)), n
            for look, m in enumerate((2, 5)):
                said = staged.decide(k1, sum(path[:m]), look, rule)
                if said != "go on":
                    end = m
                    break
            drawn += weight * (end + (said != "drop") * n)
            kept += weight * (said != "drop")
            past += weight * (said != "drop" and k1 / n - sum(path[:end]) / end > 0.08)
        return kept, past, drawn

    for path in itertools.product((0, 1), repeat=n):
        weight = p11 ** sum(path) * (1 - p11) ** (n - sum(path))
        if sum(path[:3]) < 1:
            stopped, discard, chains1 = stopped + weight, discard + weight, chains1 + 3 * weight
            continue
        kept, past, drawn = np.array([arm(sum(path), p) for p in p01]).T
        discard, passed = discard + weight * (1 - kept), passed + weight * past
        chains0 = chains0 + weight * drawn
        chains1 += weight * (12 - 6 * np.prod(1 - kept))
    found = operating.operate(rule, p11, p01)
    np.testing.assert_allclose(found.discard, discard, atol=1e-12)
    np.testing.assert_allclose(found.passed, passed, atol=1e-12)
    np.testing.assert_allclose(found.chains0, chains0, atol=1e-11)
    assert (found.stopped, found.chains1) == pytest.approx((stopped, chains1), abs=1e-11)


def test_the_papers_discard_rate_is_the_known_one():
    two = staged.two_stage(Plan())
    for effect in (0.10, 0.15):
        rate, p01 = exact.discard_probability(effect, 1000, 200, 0.03)
        found = operating.operate(two, p01 + effect, np.array([p01]))
        assert found.discard[0] == pytest.approx(rate, rel=1e-6)
        assert found.chains0[0] == pytest.approx(200 + 1800 * (1 - rate))
        assert found.chains1 == pytest.approx(2000)


@pytest.mark.parametrize(("effect", "most"), [(0.10, 0.03), (0.15, 0.001)])
def test_many_looks_keep_the_papers_risks(effect, most):
    """The worst of 41 values of p01, exact; the paper's own rule with 1,000 chains has 0.034 and 0.0009."""
    rate, _ = operating.worst_discard(staged.staged(Plan()), effect)
    assert rate <= most


def test_settling_lets_hardly_more_null_pairs_past_the_filter():
    """Exact alpha of the filter at p01 = 1/2 and tau = 0.08; without settling it is the plain filter's 1.5e-4."""
    rule = staged.staged(Plan())
    plain = operating.operate(staged.two_stage(Plan()), 0.5, np.array([0.5])).passed[0]
    for p in (0.3, 0.5, 0.8):
        assert operating.operate(rule, p, np.array([p])).passed[0] < 1.7e-4
    assert plain == pytest.approx(1.52e-4, rel=0.01)


def test_a_clear_effect_costs_little_more_than_its_estimation_batch():
    found = operating.operate(staged.staged(Plan()), 0.5, np.array([0.3]))
    assert found.discard[0] < 1e-5
    assert found.chains0[0] < 1200


def test_null_pairs_cost_less_than_half():
    two, many = staged.two_stage(Plan()), staged.staged(Plan())
    for p in (0.05, 0.2, 0.5, 0.8, 0.95):
        null = np.array([p])
        assert operating.operate(many, p, null).chains0[0] < 0.5 * operating.operate(two, p, null).chains0[0]


def test_the_estimation_batch_keeps_its_law():
    """Simulated end to end with chains as truth values: given that it is drawn, K0 and K1 of the estimation batch are
    Bin(n, p), whatever the selection batch did. Chi-square at 5e-7 each."""
    rng = np.random.default_rng(0)
    n, p11, p01 = 40, 0.5, 0.45
    rule = staged.staged(Plan(n=n, stage1=8), settled=1.0)
    one, zero = rng.random((20_000, 2 * n)) < p11, rng.random((20_000, 2 * n)) < p01
    k1, going, kept = one[:, :n].sum(1), np.ones(len(one), bool), np.zeros(len(one), bool)
    for look, m in enumerate(rule.looks):
        k0 = zero[:, :m].sum(1)
        going &= k0 <= rule.most[look, k1]
        kept |= going & (k0 <= rule.enough[look, k1])
        going &= ~kept
    assert kept.any()
    assert going.any()
    kept |= going
    exactly = operating.operate(rule, p11, np.array([p01])).discard[0]
    assert 1 - kept.mean() == pytest.approx(exactly, abs=5 * np.sqrt(exactly * (1 - exactly) / len(one)))
    for batch, p in ((one, p11), (zero, p01)):
        k = batch[kept, n:].sum(1)
        cells = np.array([stats.binom.cdf(b, n, p) for b in (15, 18, 20, 22, 25, n)])
        expected = np.diff(np.append(0, cells)) * len(k)
        seen = np.histogram(k, [-1, 15.5, 18.5, 20.5, 22.5, 25.5, n + 1])[0]
        assert stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), 5) > 5e-7
