"""A record's course: against the plain loop over its stages, for any rule and any counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmon import arms
from jaxmon.arms import X1, x0
from jaxmon.rules import staged
from jaxmon.rules.adaptive import Plan
from jaxmon.rules.course import course

NAMES = ("fee", "tip", "levy")


def plain_loop(names, rule, ruled_out, hits):
    """Chains per arm, written down as the stages are told (App. E.1): X = 1 first, then look after look."""
    n, drawn = rule.n, dict.fromkeys((X1, *map(x0, names)), frozenset())

    def draw(arm, first, stop):
        drawn[arm] |= set(range(first, stop))
        return sum(hits[arm][first:stop])

    k1 = draw(X1, 0, rule.first)
    if k1 < rule.least or ruled_out:
        return drawn
    k1 += draw(X1, rule.first, n)
    going, settled, done = {x0(name): 0 for name in names}, [], 0
    for look, m in enumerate(rule.looks):
        for arm in list(going):
            going[arm] += draw(arm, done, m)
            word = staged.decide(k1, going[arm], look, rule)
            if word != "go on":
                del going[arm]
                settled += [arm] if word == "settle" else []
        done = m
    for arm in going:
        draw(arm, done, 2 * n)
    for arm in settled:
        draw(arm, n, 2 * n)
    if rule.always or going or settled:
        draw(X1, n, 2 * n)
    return drawn


def follow(names, rule, ruled_out, hits):
    """Chains per arm as the course asks for them, what it spares, and the number of its steps."""
    drawn, spared, steps = dict.fromkeys((X1, *map(x0, names)), frozenset()), 0, 0
    going = course(names, rule, ruled_out)
    step = next(going)
    while True:
        spared, steps = spared + step.spared, steps + bool(step.wanted)
        for arm, ids in step.wanted.items():
            assert drawn[arm].isdisjoint(ids)  # nothing is asked for twice
            drawn[arm] |= set(ids)
        try:
            step = going.send({arm: sum(hits[arm][i] for i in ids) for arm, ids in step.wanted.items()})
        except StopIteration:
            return drawn, spared, steps


@given(
    st.sampled_from(["two_stage", "staged"]),
    st.integers(1, 40),
    st.floats(0.05, 0.9),
    st.booleans(),
    st.lists(st.floats(0, 1), min_size=4, max_size=4),
    st.integers(0, 99),
    st.data(),
)
def test_any_course_draws_what_the_plain_loop_draws(name, n, tau, ruled_out, p, seed, data):
    rule = staged.make(name, Plan(n, tau, data.draw(st.integers(0, n)), 0.0))
    random = np.random.default_rng(seed)
    hits = {arm: (random.random(2 * n) < q).tolist() for arm, q in zip((X1, *map(x0, NAMES)), p, strict=True)}
    drawn, spared, steps = follow(NAMES, rule, ruled_out, hits)
    assert drawn == plain_loop(NAMES, rule, ruled_out, hits)
    assert spared + sum(map(len, drawn.values())) == 2 * n * (1 + len(NAMES))
    assert steps <= len(rule.looks) + 2


def test_nothing_waits_without_need():
    """Two stages are two steps: what no count decides is asked for at once."""
    hits = {arm: [1] * 20 for arm in (X1, *map(x0, NAMES))}
    for plan, steps in ((Plan(10, 0.08, 4, -1.0), 2), (Plan(10, 0.08, 0), 1)):
        assert follow(NAMES, staged.make("two_stage", plan), False, hits)[2] == steps


@pytest.mark.parametrize(
    ("seconds", "rate", "size"),
    [(0, 5, 1000), (60, 0, 1000), (60, 5, 300), (60, 0.1, 200), (3600, 5, 1000), (60.9, 4.99, 303)],
)
def test_units_of_a_number_of_seconds(seconds, rate, size):
    assert arms.unit_size(1000, 200, seconds, rate) == size
    assert arms.unit_size(100, 200, seconds, rate) == 100
