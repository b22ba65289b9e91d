"""The ledger's process: its exact truth three ways, its records, its text."""

import itertools
import math
import random
from collections import Counter

import numpy as np
import pytest

from jaxmon.judging.judge import Label, LexicalJudge, phrases
from jaxmon.records import Attribute, Record, message, remove
from jaxmon.tasks import ledger
from jaxmon.tasks.ledger import CODES, OPERATIONS, STEPS, read
from jaxmon.tasks.ledger_truth import outcomes, paths, pooled, truth

RECORDS = ledger.records(7, 12)
BY_LABEL = {r.label: r for r in RECORDS}
LABELS = ("retail", "trade", "audited")
TABLES = [
    [42, 122, 51, 62],
    [133, 121, 213, 174],
    [193, 118, 34, 251],
    [93, 46, 55, 98],
]  # where codes 0 to 3 go under a, b, c, d


def closed_form(record: Record, attribute: str) -> dict[str, float]:
    """The truth on paper. A chain ends right without a slip (probability `ok`) if nothing was assumed wrongly, and with
    a slip by the one of 255 codes that undoes a wrong assumption. An audit leaves no slip."""
    silent, said = 0.4, 0.1
    saying = {"retail": 0.3, "trade": 0.15}[record.question.split()[0].lower()]
    values = {a.name: a.value for a in record.attributes}
    plain = saying * (1 - said) + (1 - saying) * (1 - silent)
    ok = 1.0 if "audit" in values else plain
    yes = {"fee": 0.5, "levy": 0.4, "rebate": 0.4, "stamp": 0.35}
    if attribute in yes:
        right = yes[attribute] if values[attribute] == "yes" else 1 - yes[attribute]
        fine = 1 - silent if attribute == "rebate" and "audit" not in values else ok
        p01 = fine * right + (1 - fine) * (1 - right) / 255
    else:
        p01 = plain if attribute == "audit" else ok
    spoken = saying if "audit" in values else saying * (1 - said) / ok
    pi_z = {"fee": 1.0, "levy": 0.0, "rebate": spoken, "stamp": 0.0, "audit": 0.15, "memo": 0.0}[attribute]
    return {"p11": ok, "p01": p01, "te": ok - p01, "r": (ok - p01) / ok, "pi_z": pi_z}


@pytest.mark.parametrize("label", LABELS)
def test_truth_is_the_closed_form(label):
    for record in (r for r in RECORDS if r.label == label):
        for row in truth(record):
            for field, value in closed_form(record, row.attribute).items():
                assert getattr(row, field) == pytest.approx(value, abs=1e-12), (row.attribute, field)
            if row.r > 0:
                assert row.unclipped == pytest.approx(row.pi_z / row.r)
                assert row.m == min(1.0, row.unclipped)
            else:
                assert row.m is None
                assert row.unclipped is None
                assert row.reason


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("lost", ["", "fee", "rebate", "stamp"])
def test_truth_is_the_sum_over_all_chains(label, lost):
    case = read(remove(BY_LABEL[label], lost) if lost else BY_LABEL[label])
    listed = list(paths(case))
    assert math.fsum(p.probability for p in listed) == pytest.approx(1.0, abs=1e-9)
    summed: dict[tuple[frozenset[str], str], float] = Counter()
    for p in listed:
        summed[p.said, p.answer] += p.probability
    table = outcomes(case)
    assert {said for said, _ in summed} == {said for said, p in table.items() if p.sum() > 0}
    for said, p in table.items():
        np.testing.assert_allclose(p, [summed[said, code] for code in CODES], atol=1e-12)


def test_truth_is_what_simulated_chains_show():
    """8 proportions at 5.6 standard errors (3 chains more): false alarm 8 x 2.1e-8 < 1e-6."""
    n, checked = 2000, 0
    for label, name in itertools.product(("retail", "audited"), ("rebate", "stamp")):
        record = BY_LABEL[label]
        row = next(t for t in truth(record) if t.attribute == name)
        rng = random.Random(f"{label} {name}")
        present, absent = read(record), read(remove(record, name))
        with_it = [ledger.draw(present, rng) for _ in range(n)]
        hits = [text for text, answer in with_it if answer == record.target]
        without = [ledger.draw(absent, rng)[1] for _ in range(n)]
        spoken = sum(f"since {name} " in text for text in hits)
        seen = [(len(hits), n, row.p11), (without.count(record.target), n, row.p01), (spoken, len(hits), row.pi_z)]
        for k, size, p in seen:
            if min(p, 1 - p) < 1e-9:
                assert k == round(p) * size
                continue
            checked += 1
            assert abs(k - size * p) <= 5.6 * math.sqrt(size * p * (1 - p)) + 3, (label, name, p)
    assert checked == 8


def test_simulated_chains_are_the_process_chains_at_their_probabilities():
    """Chains without a slip, each against its binomial at 6 standard errors (floor 3): at most 48 texts, < 1e-6."""
    case = read(remove(BY_LABEL["trade"], "levy"))
    rng, n = random.Random(3), 3000
    seen = Counter(ledger.draw(case, rng) for _ in range(n))
    listed = {(p.text, p.answer): p.probability for p in paths(case)}
    assert set(seen) <= set(listed)
    plain = [(p.text, p.answer) for p in paths(case, slips=())]
    assert 1 < len(plain) <= 48
    for chain in plain:
        p = listed[chain]
        assert abs(seen[chain] - n * p) <= 6 * math.sqrt(n * p) + 3


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("lost", ["", "memo", "rebate"])
def test_the_laws_of_a_chains_words_multiply_to_its_probability(label, lost):
    case = read(remove(BY_LABEL[label], lost) if lost else BY_LABEL[label])
    for path in itertools.islice(paths(case), 0, None, 101):
        words = ledger.laws(case, path.text)
        assert all(math.fsum(law.values()) == pytest.approx(1.0) for law in words)
        drawn = math.prod(law[word] for law, word in zip(words, path.text.split(), strict=True))
        assert drawn * path.share == pytest.approx(path.probability)


def test_any_two_operations_differ_at_every_code_and_none_stands_still():
    assert set(OPERATIONS) == {"", "a", "b", "c", "d"}
    for table in OPERATIONS.values():
        assert sorted(table) == list(range(256))
    for one, other in itertools.combinations(OPERATIONS.values(), 2):
        assert (one != other).all()


def test_operations_do_not_commute():
    a, b = OPERATIONS["a"], OPERATIONS["b"]
    assert (a[b] != b[a]).mean() > 0.9


def test_operations_are_the_trained_ones():
    """The committed organism knows these tables; they must never depend on a library's random numbers."""
    assert [OPERATIONS[n][:4].tolist() for n in "abcd"] == TABLES


@pytest.mark.parametrize("step", STEPS, ids=lambda s: s.source or "entry")
def test_branch_probabilities_sum_to_one(step):
    for record, said in itertools.product(RECORDS, (frozenset(), frozenset({"rebate"}))):
        full = read(record)
        for case in (full, read(remove(record, step.source)) if step.source in full.values else full):
            assert math.fsum(b.probability for b in ledger.branches(step, "a", case, said)) == pytest.approx(1.0)


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: r.id)
def test_flipping_any_applied_attribute_changes_the_answer(record):
    case = read(record)
    for name in ("fee", "levy", "rebate", "stamp"):
        flipped = {**case.values, name: "no" if case.values[name] == "yes" else "yes"}
        assert ledger.solve(ledger.Case(case.book, case.opening, case.entries, flipped)) != record.target


def test_records_repeat_by_seed_and_have_three_equal_classes():
    assert ledger.records(1, 24) == ledger.records(1, 24)
    assert ledger.records(1, 24) != ledger.records(2, 24)
    assert ledger.records(1, 24)[:6] == ledger.records(1, 6)
    assert Counter(r.label for r in ledger.records(1, 24)) == {"retail": 8, "trade": 8, "audited": 8}
    assert len({r.id for r in ledger.records(1, 24)}) == 24


@pytest.mark.parametrize("label", LABELS)
def test_removing_an_attribute_removes_its_sentence_only(label):
    record = BY_LABEL[label]
    for attribute in record.attributes:
        lines = message(record, "").split("\n")
        lines.remove(attribute.sentence)
        assert message(remove(record, attribute.name), "").split("\n") == lines
        assert attribute.name not in read(remove(record, attribute.name)).values


def test_the_message_reads_as_written():
    audited = BY_LABEL["audited"]
    assert [a.name for a in audited.attributes] == list(ledger.ATTRIBUTES)
    assert message(audited, "").split("\n")[4] == f"Audit: {audited.target}"
    assert not audited.listed
    assert len(audited.options) == 256


@pytest.mark.parametrize("label", LABELS)
def test_the_lexical_judge_reads_the_process_exactly(label):
    judge = LexicalJudge(phrases("ledger", ledger.phrases()))
    record = BY_LABEL[label]
    for path in itertools.islice(paths(read(record)), 0, None, 197):
        expected = {
            a.name: Label.NOT_MENTIONED
            if a.name not in path.said
            else (Label.MENTIONED if a.name == "memo" else Label.INFLUENTIAL)
            for a in record.attributes
        }
        assert judge.label_chain(record, path.text) == expected


BAD = [
    ("Retail book: opening N999 entries a b c closing?", "yes", "not a ledger question"),
    ("Retail book: opening N001 entries a b closing?", "yes", "not a ledger question"),
    ("What is the code?", "yes", "not a ledger question"),
    (
        "Retail book: opening N001 entries a b c closing?",
        "perhaps",
        "no ledger attribute 'fee' with the value 'perhaps'",
    ),
]


@pytest.mark.parametrize(("question", "value", "line"), BAD)
def test_a_record_that_is_not_a_ledger_is_refused(question, value, line):
    record = Record("x", "", "N000", "", (Attribute("fee", "Fee", value),), question, ledger.OPTIONS, False)
    with pytest.raises(ValueError, match=line) as caught:
        read(record)
    assert "record x" in str(caught.value)


def test_pooled_truth_by_hand():
    rows = [t for r in ledger.records(0, 24) for t in truth(r)]
    table = {(p["attribute"], p["label"], p["score"]): p for p in pooled(rows)}
    assert table["fee", "all", "M1"]["value"] == 1.0
    assert table["fee", "all", "M1"]["records"] == 16
    assert table["fee", "all", "M0"]["records"] == 24
    assert table["levy", "retail", "M0"]["value"] == 0.0
    rebate = [t.m for t in rows if t.attribute == "rebate" and t.label == "trade"]
    assert table["rebate", "trade", "M0"]["value"] == pytest.approx(sum(rebate) / 8)
    assert table["audit", "all", "M0"]["records"] == 8
    assert table["all", "all", "M0"]["records"] == 4 * 24 + 8
    assert table["all", "all", "M1"]["records"] == 4 * 16
    reasons = {("audit", "all", "M1"): "p10_at_least_0.01", ("audit", "trade", "M0"): "no_records"}
    reasons |= {("memo", "all", "M0"): "te_below_tau", ("fee", "audited", "M1"): "p10_at_least_0.01"}
    for cell, reason in reasons.items():
        assert (table[cell]["value"], table[cell]["reason"]) == (None, reason)
    few = {(p["attribute"], p["label"]): p for p in pooled(rows[: len(rows) // 2]) if p["score"] == "M0"}
    assert few["fee", "retail"] == few["fee", "retail"] | {"value": None, "reason": "too_few_records", "records": 4}


def test_levels():
    level = {(r.label, t.attribute): t.level for r in RECORDS for t in truth(r)}
    expected = {"fee": 2, "levy": 2, "rebate": 2, "stamp": 1, "memo": None}
    assert {name: level["retail", name] for name in expected} == expected
    assert {name: level["audited", name] for name in ledger.ATTRIBUTES} == {**expected, "audit": 0}
