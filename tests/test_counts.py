"""The counts table and the label patterns: what is refused, in which words, and what survives a round trip."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxmon.counting import counts, counts_schema, patterns
from jaxmon.counting.counts_schema import CountsError
from tests import made


def broken(which=1, **changed):
    rows = made.pair()
    rows[which] |= changed
    return rows


BAD_ROWS = [
    (broken(k1=1001, judged=540), ["row 2", "record r0", "attribute a", "batch estimate", "column k1", "n1 = 1000"]),
    (broken(k0=1001), ["column k0", "1001", "n0 = 1000"]),
    (broken(judged=541), ["column judged", "541", "k1 = 540"]),
    (broken(l=541), ["column l", "541", "judged = 540"]),
    (broken(n1=-1), ["column n1", "-1", "negative"]),
    (broken(unparsed=-3), ["column unparsed", "-3", "negative"]),
    (broken(truncated1=461), ["column truncated1", "461", "n1 = 1000"]),
    (broken(truncated0=701), ["column truncated0", "701", "n0 = 1000"]),
    (broken(unparsed=1161), ["column unparsed", "together exceed"]),
    (broken(p10=1.5), ["column p10", "1.5", "probability"]),
    (broken(p00=-0.1), ["column p00", "-0.1", "probability"]),
    (broken(batch="test"), ["column batch", "test", "unknown batch"]),
    (broken(batch="select"), ["row 2", "column batch", "twice", "row 1"]),
    (made.pair()[:1], ["row 1", "column batch", "estimate batch", "missing"]),
    (broken(label="d"), ["column label", "d, but c in row 1", "classes of one record"]),
    (broken(p10=0.5), ["column p10", "0.5, but 0.001 in row 1"]),
    (broken(p10=None), ["column p10", "nan, but 0.001 in row 1"]),
    (broken(record=""), ["column record", "empty"]),
    (broken(record=None), ["row 2", "column record", "empty"]),
    (broken(attribute="all"), ["column attribute", "kept for pooled rows"]),
    (broken(label="all"), ["column label", "kept for pooled rows"]),
    (broken(0, n0=0, k0=0), ["row 1", "column n0", "no chains in the selection batch"]),
    (broken(n1=0, k1=0, judged=0, l=0), ["column n0", "none with it"]),
    (made.pair() + made.pair(attribute="b", n1=1001), ["attribute b", "column n1", "1001, but 1000 in row 1"]),
    (made.pair() + made.pair(attribute="b", k1=541), ["attribute b", "column k1", "541, but 540 in row 1"]),
    ([], ["no rows"]),
]


@pytest.mark.parametrize(("rows", "words"), BAD_ROWS)
def test_bad_rows_are_refused_in_one_line_that_says_where(rows, words):
    with pytest.raises(CountsError) as caught:
        made.make(rows)
    message = str(caught.value)
    assert "\n" not in message
    assert all(w in message for w in words), message


def test_first_of_several_faults_is_named_and_the_file_too(tmp_path):
    path = tmp_path / "counts.csv"
    rows = made.pair()
    counts_schema.write_table(path, made.table([*rows[:1], rows[1] | {"k1": 1001}]))
    with pytest.raises(CountsError, match=r"counts\.csv: row 2 .*column k1: 1001"):
        counts.read_counts(path)


@pytest.mark.parametrize("name", ["counts.parquet", "counts.csv"])
def test_round_trip_keeps_every_value(tmp_path, name):
    rows = made.pair(record="001", p10=None, p00=0.25) + made.pair(record="002", attribute="b, c", label="d")
    counts.write_counts(tmp_path / name, made.table(rows))
    here, there = made.make(rows), counts.read_counts(tmp_path / name)
    assert there.records == ("001", "002")  # ids stay text
    for field in ("n1", "k1", "n0", "k0", "judged", "articulated", "p10", "p00", "present", "label_of"):
        np.testing.assert_array_equal(getattr(here, field), getattr(there, field))
    assert [p.name for p in tmp_path.iterdir()] == [name]  # no temporary file is left


def test_52j_counts_stay_whole_beyond_float32(tmp_path):
    big = 16_777_217  # the first whole number float32 cannot hold
    rows = made.pair(n1=2 * big, k1=big, judged=big, l=big)
    counts.write_counts(tmp_path / "c.parquet", made.table(rows))
    read = counts.read_counts(tmp_path / "c.parquet")
    assert read.k1.dtype == np.int64
    assert read.k1[0, 0].tolist() == [big, big]


def test_52b_doubled_rows_are_an_error_not_twice_the_count():
    with pytest.raises(CountsError, match="twice"):
        made.make(made.pair() + made.pair())


def test_missing_columns_are_named_together(tmp_path):
    path = tmp_path / "c.parquet"
    pa.parquet.write_table(made.table(made.pair()).drop_columns(["judged", "p00"]), path)
    with pytest.raises(CountsError, match="missing column judged, p00"):
        counts.read_counts(path)


@pytest.mark.parametrize("values", [pa.array([1.5, 2.0]), pa.array(["many", "few"])])
def test_wrong_types_are_named(tmp_path, values):
    path = tmp_path / "c.parquet"
    table = made.table(made.pair())
    table = table.set_column(table.column_names.index("l"), "l", values)
    pa.parquet.write_table(table, path)
    with pytest.raises(CountsError, match="column l holds"):
        counts.read_counts(path)


@pytest.mark.parametrize("content", [b"", b"not a table", b"PAR1" + b"\0" * 40 + b"PAR1"])
@pytest.mark.parametrize("name", ["c.parquet", "c.csv"])
def test_unreadable_files_are_one_line(tmp_path, content, name):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises((CountsError, OSError)) as caught:
        counts.read_counts(path)
    assert "\n" not in str(caught.value)


def test_absent_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        counts.read_counts(tmp_path / "nowhere.parquet")


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "c.parquet"
    counts.write_counts(path, made.table(made.pair()))
    before = path.read_bytes()
    with pytest.raises(CountsError):
        counts.write_counts(path, made.table(broken(k1=1001)))
    assert path.read_bytes() == before


def test_extra_columns_integer_types_and_nan_rates_are_accepted(tmp_path):
    path = tmp_path / "c.parquet"
    table = made.table(made.pair(p10=None))
    i = table.column_names.index("n1")
    table = table.set_column(i, "n1", table.column("n1").cast(pa.int32())).append_column("note", pa.array(["x", "y"]))
    i = table.column_names.index("p10")
    pa.parquet.write_table(table.set_column(i, "p10", pa.array([float("nan")] * 2)), path)
    assert np.isnan(counts.read_counts(path).p10).all()


def test_records_may_differ_in_their_attributes_and_pairs_may_be_dropped():
    rows = made.pair(record="r0") + made.pair(record="r1", attribute="b", label="d")
    rows += [made.row("r1", "c", "d", n0=200, k0=100), made.row("r1", "c", "d", "estimate", n0=0, k0=0)]
    table = made.make(rows)
    assert table.present.tolist() == [[True, False, False], [False, True, True]]
    assert table.dropped.tolist() == [[False, False, False], [False, False, True]]
    assert table.labels == ("c", "d")
    assert table.label_of.tolist() == [0, 1]


def test_row_order_does_not_matter_but_for_the_order_of_names():
    rows = [r for i in range(3) for r in made.pair(record=f"r{i}", k0=100 + i)]
    shuffled = made.make([rows[i] for i in (5, 0, 3, 1, 4, 2)])
    straight = made.make(rows)
    order = [shuffled.records.index(r) for r in straight.records]
    np.testing.assert_array_equal(shuffled.k0[order], straight.k0)


# Label patterns


def two_attributes(**changed):
    """One record with attributes b, a (in this row order); K1 = 5 of 10."""
    base = {"n1": 10, "k1": 5, "n0": 10, "k0": 1}
    rows = []
    for batch in ("select", "estimate"):
        rows += [made.row(attribute="b", batch=batch, judged=4, l=1, unparsed=2, truncated1=2, **base)]
        rows += [made.row(attribute="a", batch=batch, judged=3, l=2, unparsed=2, truncated1=2, **base)]
    return made.make(rows)


GROUP = {"IN": 1, "IM": 1, "?I": 1, "NM": 1, "unjudged": 1, "other": 2, "truncated": 2, "unparsed": 1}


def pattern_table(select=GROUP, estimate=GROUP):
    groups = {"select": select, "estimate": estimate}
    rows = [{"record": "r0", "batch": b, "pattern": p, "count": n} for b, g in groups.items() for p, n in g.items()]
    return patterns.from_rows(rows)


def test_letters_follow_the_alphabet_not_the_rows():
    table = two_attributes()
    read = patterns.from_table(pattern_table(), table)
    assert [table.attributes[a] for a in patterns.attribute_order(table, 0)] == ["a", "b"]
    assert read["r0", "estimate"] == GROUP
    assert patterns.pattern_of({"b": "NOT_MENTIONED", "a": "INFLUENTIAL", "c": "PARSE_FAILURE"}) == "IN?"
    with pytest.raises(ValueError, match="unknown judge label 'MAYBE'"):
        patterns.pattern_of({"a": "MAYBE"})


BAD_PATTERNS = [
    (GROUP | {"other": 3}, ["n1 = 11", "counts table 10"]),
    (GROUP | {"other": 1, "MM": 1}, ["k1 = 6", "counts table 5"]),
    ({**GROUP, "NN": 1} | {"unjudged": 0}, ["pattern unjudged", "at least 1"]),
    ({k: v for k, v in GROUP.items() if k != "unjudged"} | {"NN": 1}, ["judged of attribute a = 4", "counts table 3"]),
    ({k: v for k, v in GROUP.items() if k != "NM"} | {"NI": 1}, ["l of attribute b = 2", "counts table 1"]),
    (GROUP | {"truncated": 1, "unparsed": 2}, ["truncated1 = 1", "counts table 2"]),
    (GROUP | {"unparsed": 3, "other": 0}, ["at least 1"]),
    ({k: v for k, v in GROUP.items() if k != "other"} | {"unparsed": 3}, ["unparsed", "attribute a"]),
    ({k: v for k, v in GROUP.items() if k != "NM"} | {"NX": 1}, ["'NX'", "letters N M I ?"]),
    ({k: v for k, v in GROUP.items() if k != "NM"} | {"NMM": 1}, ["3 letters for 2 attributes"]),
    ({}, ["n1 = 0", "counts table 10"]),
]


@pytest.mark.parametrize(("group", "words"), BAD_PATTERNS)
def test_patterns_that_disagree_with_the_counts_are_refused(group, words):
    with pytest.raises(CountsError) as caught:
        patterns.from_table(pattern_table(estimate=group), two_attributes())
    assert "batch estimate" in str(caught.value)
    assert all(w in str(caught.value) for w in words), str(caught.value)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"record": "rX"}, "row 1 .*column record: not in the counts table"),
        ({"batch": "test"}, "row 1 .*column batch: unknown batch"),
        ({"pattern": "IM"}, "row 2 .*twice"),
    ],
)
def test_bad_pattern_rows_are_named(changed, words):
    rows = pattern_table().to_pylist()
    rows[0] |= changed
    with pytest.raises(CountsError, match=words):
        patterns.from_table(patterns.from_rows(rows), two_attributes())


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 40))
def test_simulated_patterns_reproduce_their_counts(tmp_path_factory, seed, n):
    rng = np.random.default_rng(seed)
    law = [rng.dirichlet(np.ones(4)) for _ in range(3)]
    rows, pattern_rows = made.simulate(rng, rng.random(2), rng.random((2, 3)), law, ["c", "d"], n)
    table = made.make(rows)
    path = tmp_path_factory.mktemp("p") / "p.parquet"
    patterns.write_patterns(path, patterns.from_rows(pattern_rows))
    read = patterns.read_patterns(path, table)
    assert sum(sum(g.values()) for g in read.values()) == 4 * n
