"""The two-stage rule and its chain ids."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmon.rules import adaptive
from jaxmon.rules.adaptive import Plan
from jaxmon.statistics import exact


def test_defaults_are_the_papers():
    assert Plan() == Plan(n=1000, tau=0.08, stage1=200, drop_below=0.03)


@given(st.integers(1, 40))
def test_ids_name_the_batch(n):
    plan = Plan(n=n, stage1=0)
    batches = [adaptive.batch_of(i, plan) for i in range(2 * n)]
    assert batches == ["select"] * n + ["estimate"] * n
    assert adaptive.batch_sizes(True, plan) == (n, n)
    assert adaptive.batch_sizes(False, Plan(n=n, stage1=1)) == (1, 0)


@given(st.integers(0, 1000), st.integers(0, 200))
def test_rule_equals_fractions(k1, k0):
    te = Fraction(k1, 1000) - Fraction(k0, 200)
    assert bool(adaptive.keep(np.array(k1), np.array(k0), Plan())) == (te >= Fraction(3, 100))


def test_rule_on_arrays():
    k0 = np.array([[0, 100], [94, 95]])
    kept = adaptive.keep(np.full((2, 2), 500), k0, Plan())
    assert kept.tolist() == [[True, False], [True, False]]
    assert adaptive.keep(np.zeros(3, int), np.full(3, 100), Plan(stage1=0)).all()


def test_discard_rate_is_the_exact_one():
    """10^5 pairs at TE = 0.1 against exact.discard_probability: 0.0341 within 5.5 standard errors (4e-8)."""
    rng = np.random.default_rng(0)
    rate, p01 = exact.discard_probability(0.10, 1000, 200, 0.03)
    k1, k0 = rng.binomial(1000, p01 + 0.10, 100_000), rng.binomial(200, p01, 100_000)
    dropped = 1 - adaptive.keep(k1, k0, Plan()).mean()
    assert dropped == pytest.approx(rate, abs=5.5 * np.sqrt(rate / 100_000))


@pytest.mark.parametrize(
    ("changed", "word"),
    [({"n": 0}, "n = 0"), ({"stage1": 1001}, "stage1"), ({"drop_below": 0.1}, "drop_below"), ({"tau": 1.0}, "tau")],
)
def test_impossible_plans_are_refused(changed, word):
    with pytest.raises(ValueError, match=word):
        Plan(**changed)


@pytest.mark.parametrize("chain_id", [-1, 2000])
def test_ids_outside_the_arm_are_refused(chain_id):
    with pytest.raises(ValueError, match="outside"):
        adaptive.batch_of(chain_id, Plan())
