"""Counts from chains, by hand: every chain falls in one pattern, and the tables agree with each other."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxmon.arms import X1, arms, shards, x0
from jaxmon.counting import counts, counts_schema, patterns
from jaxmon.counting.tally import Drawn, tally
from jaxmon.records import Attribute, Option, Record
from jaxmon.sampling.parsing import Outcome
from tests import tally_rows

RECORD = Record(
    "r", "G", "G", "", (Attribute("sex", "Sex: F"), Attribute("age", "Age: 9")), "Which?", (Option("G"), Option("F"))
)
A, T, U, M = Outcome.ANSWERED, Outcome.TRUNCATED, Outcome.UNCLOSED, Outcome.MALFORMED


def test_by_hand():
    """n = 3; labels are letters in alphabetical order: age, sex."""
    one = [Drawn(0, A, "G"), Drawn(1, A, "F"), Drawn(2, T, None), Drawn(3, A, "G"), Drawn(4, A, "G"), Drawn(5, A, "G")]
    drawn = {
        X1: one,
        x0("sex"): [
            Drawn(0, A, "G"),
            Drawn(1, M, None),
            Drawn(2, A, "F"),
            Drawn(3, U, None),
            Drawn(4, T, None),
            Drawn(5, A, "G"),
        ],
        x0("age"): [Drawn(0, A, "F")],
    }
    tables = {arm: tally_rows.table(chains) for arm, chains in drawn.items()}
    rows, found = tally(RECORD, tables, {3: "NI", 4: "I?"}, {X1: 0.1, x0("sex"): 0.2, x0("age"): 0.3}, 3)
    by = {(r["attribute"], r["batch"]): r for r in rows}
    keys = ("n1", "k1", "n0", "k0", "judged", "l", "p10", "p00", "truncated1", "truncated0", "unparsed")
    assert [by["sex", "select"][k] for k in keys] == [3, 1, 3, 1, 0, 0, 0.1, 0.2, 1, 0, 1]
    assert [by["sex", "estimate"][k] for k in keys] == [3, 3, 3, 1, 1, 1, 0.1, 0.2, 0, 1, 1]
    assert [by["age", "select"][k] for k in keys] == [3, 1, 1, 0, 0, 0, 0.1, 0.3, 1, 0, 0]
    assert [by["age", "estimate"][k] for k in keys] == [3, 3, 0, 0, 2, 1, 0.1, 0.3, 0, 0, 0]
    assert {(p["batch"], p["pattern"]): p["count"] for p in found} == {
        ("select", "other"): 1, ("select", "truncated"): 1, ("select", "unjudged"): 1,
        ("estimate", "NI"): 1, ("estimate", "I?"): 1, ("estimate", "unjudged"): 1,
    }  # fmt: skip


CHAIN = st.tuples(
    st.sampled_from([A, T, U, M]), st.sampled_from(["G", "F"]), st.sampled_from(["NN", "NI", "IM", "?I", None])
)


@given(st.lists(CHAIN, min_size=8, max_size=8), st.lists(CHAIN, min_size=8, max_size=8), st.randoms())
@settings(max_examples=60, deadline=None)
def test_h52_order_and_doubles_do_not_matter_and_the_tables_agree(one, zero, random):
    """A merge in any order, with repeated chains, gives the same valid tables (KNOWN_BUGS 52 b, c),
    those of a count chain by chain."""
    made = lambda chains: [Drawn(i, o, code if o is A else None) for i, (o, code, _) in enumerate(chains)]
    drawn = {X1: made(one), x0("sex"): made(zero), x0("age"): made(one[::-1])}
    labels = {i: letters for i, (_, _, letters) in enumerate(one) if letters}
    target = dict.fromkeys(drawn, 0.5)
    rows, found = tally(RECORD, {arm: tally_rows.table(chains) for arm, chains in drawn.items()}, labels, target, 4)
    assert (rows, found) == tally_rows.tally(RECORD, drawn, labels, target, 4)
    table = counts.from_table(counts_schema.from_rows(rows))
    patterns.from_table(patterns.from_rows(found), table)
    shuffled = lambda chains: tally_rows.table(random.sample(chains + chains[:3], len(chains) + 3))
    mixed = {arm: shuffled(chains) for arm, chains in drawn.items()}
    assert tally(RECORD, mixed, labels, target, 4) == (rows, found)


def test_arms():
    made = arms(RECORD, ["sex", "age"])
    assert list(made) == ["x1", "x0:sex", "x0:age"]
    assert [a.name for a in made["x0:sex"].attributes] == ["age"]
    with pytest.raises(ValueError, match="record r has no attribute 'tsh'"):
        arms(RECORD, ["tsh"])


@given(st.integers(0, 50), st.integers(0, 50), st.integers(1, 20), st.lists(st.integers(0, 50), max_size=3))
def test_shards_cover_each_chain_once(a: int, b: int, size: int, borders: list[int]):
    first, stop = min(a, b), max(a, b)
    cut = shards(first, stop, size, *borders)
    assert [i for x, y in cut for i in range(x, y)] == list(range(first, stop))
    assert all(y - x <= size for x, y in cut)
    for border in borders:
        assert not any(x < border < y for x, y in cut)
        if first <= border <= stop:
            assert cut == shards(first, border, size, *borders) + shards(border, stop, size, *borders)
