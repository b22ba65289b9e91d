"""The two-stage rule and its chain ids."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmon import adaptive, exact
from jaxmon.adaptive import Plan


def test_defaults_are_the_papers():
    assert Plan() == Plan(n=1000, tau=0.08, stage1=200, drop_below=0.03, full_arm=False)


@given(st.integers(1, 40), st.integers(0, 40), st.booleans())
def test_ids_of_all_stages_cover_both_batches_once(n, stage1, kept):
    plan = Plan(n=n, stage1=min(stage1, n))
    first, second = adaptive.first_ids(0, plan), adaptive.second_ids(kept, plan)
    drawn = [*first, *second]
    assert len(drawn) == len(set(drawn))
    if kept or plan.stage1 == 0:
        assert sorted(drawn) == list(range(2 * n))
    else:
        assert drawn == list(range(plan.stage1))
    assert list(adaptive.first_ids(1, plan)) == list(range(2 * n))
    # stage-1 chains of an X=0 arm never serve the estimation batch
    if plan.stage1:
        assert {adaptive.batch_of(i, plan) for i in first} == {"select"}
    sizes = [sum(adaptive.batch_of(i, plan) == b for i in drawn) for b in ("select", "estimate")]
    assert tuple(sizes) == adaptive.batch_sizes(kept or plan.stage1 == 0, plan)


@given(st.integers(0, 1000), st.integers(0, 200))
def test_rule_equals_fractions(k1, k0):
    te = Fraction(k1, 1000) - Fraction(k0, 200)
    assert bool(adaptive.keep(np.array(k1), np.array(k0), Plan())) == (te >= Fraction(3, 100))


def test_rule_on_arrays_and_with_the_full_arm():
    k0 = np.array([[0, 100], [94, 95]])
    kept = adaptive.keep(np.full((2, 2), 500), k0, Plan())
    assert kept.tolist() == [[True, False], [True, False]]
    full = adaptive.keep(np.full((2, 2), 1000), k0, Plan(full_arm=True))
    assert full.tolist() == kept.tolist()
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
