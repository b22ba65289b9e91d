"""The thyroid task: a small invented file in the raw format; the counts of SPEC §11 where the real file is there."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmon.records import message, remove
from jaxmon.tasks import thyroid
from jaxmon.tasks.thyroid import raw, wording
from tests.thyroid_files import SMALL, real_file

LINES = SMALL.read_text().splitlines()
ROW = LINES[1]


def test_selection_keeps_single_letters_of_large_classes_in_file_order():
    everyone = raw.read(SMALL, None)
    assert len(everyone) == len(LINES) == 16
    assert Counter(p.diagnosis for p in raw.select(everyone, 0)) == {"G": 4, "K": 3, "S": 2, "A": 1}
    assert Counter(p.diagnosis for p in raw.select(everyone, 2)) == {"G": 4, "K": 3}  # more than 2
    assert Counter(p.diagnosis for p in raw.select(everyone, 3)) == {"G": 4}
    assert [p.id for p in raw.select(everyone, 2)] == [p.id for p in everyone if p.diagnosis in ("G", "K")]


def test_a_record_reads_as_plain_english():
    first = thyroid.records(SMALL, None, more_than=1)[0]
    assert (first.id, first.label, first.target) == ("thyroid-900000008", "G", "G")
    assert message(first, "Say it.").splitlines() == [
        "A patient was referred for thyroid tests. The patient's record:",
        "The patient is 44 years old.",
        "The patient is female.",
        "The patient is not on thyroxine.",
        "The request does not query whether the patient is on thyroxine.",
        "The patient is not on antithyroid medication.",
        "The patient is not sick.",
        "The patient is not pregnant.",
        "The patient has not had thyroid surgery.",
        "The patient has not had I131 treatment.",
        "The request does not query hypothyroidism.",
        "The request does not query hyperthyroidism.",
        "The patient does not take lithium.",
        "The patient has no goitre.",
        "The patient has no tumor.",
        "The patient is hypopituitary.",
        "The record notes no psychiatric condition.",
        "The thyroid-stimulating hormone (TSH) is 9.6 mIU/L.",
        "The triiodothyronine (T3) is 3 nmol/L.",
        "The total thyroxine (TT4) is 123 nmol/L.",
        "The thyroxine uptake (T4U) is 0.65.",
        "The free thyroxine index (FTI) is 93.",
        "Which of these diagnoses fits the patient best?",
        "G: compensated hypothyroid (hypothyroid conditions)",
        "K: concurrent non-thyroidal illness (general health)",
        "S: elevated TBG (miscellaneous)",
        "Say it.",
    ]


def test_unknown_values_have_no_sentence():
    by_id = {p.id: p for p in raw.read(SMALL, None)}
    rows = {re.search(r"\[(\d+)\]", line)[1]: line.split(",") for line in LINES}
    for id, fields in rows.items():
        known = by_id[id].values
        assert ("age" in known) == (fields[0] not in ("?", "455"))
        assert ("sex" in known) == (fields[1] != "?")
        assert [known[flag] for flag in raw.FLAGS] == fields[2:16]
        for lab, value in zip(raw.LABS, fields[17:28:2], strict=True):
            assert (lab in known) == (value != "?")
            assert lab not in known or float(known[lab]) == pytest.approx(float(value), rel=2e-6)


def test_every_sentence_names_its_attribute_alone():
    values = dict.fromkeys(raw.ATTRIBUTES, "t") | dict.fromkeys(raw.LABS, "9.6") | {"age": "41", "sex": "F"}
    known = [wording.sentence(n, values[n]) for n in raw.ATTRIBUTES]
    denied = [wording.sentence(n, "f") for n in raw.FLAGS]
    assert len(set(known + denied)) == 22 + 14
    assert wording.sentence("age", "1") == "The patient is 1 year old."
    assert wording.sentence("TSH", "9.6") == "The thyroid-stimulating hormone (TSH) is 9.6 mIU/L."
    assert wording.sentence("FTI", "109") == "The free thyroxine index (FTI) is 109."
    assert wording.sentence("pregnant", "f") == "The patient is not pregnant."
    assert set(wording.FLAG_SENTENCES) == set(raw.FLAGS)
    assert set(wording.LAB_WORDS) == set(raw.LABS)
    assert len(raw.ATTRIBUTES) == 22


TIDY = {
    "9.599999": "9.6",
    "10.599999": "10.6",
    "0.005": "0.005",
    "530": "530",
    "1.10": "1.1",
    "0": "0",
    "007": "7",
    "0.00001": "0.00001",
    "1234567": "1234570",
    "2.0": "2",
}


@pytest.mark.parametrize("number", TIDY)
def test_float_noise(number):
    assert raw.tidy(number) == TIDY[number]


@given(st.integers(0, 999), st.integers(0, 3))
def test_tidy_keeps_what_the_source_meant(digits, places):
    """A number of up to three digits survives a passage through single precision and six decimals."""
    import numpy as np

    meant = digits / 10**places
    noisy = np.format_float_positional(np.float32(meant) * np.float32(0.9999999), trim="-")
    assert float(raw.tidy(noisy)) == float(raw.tidy(repr(meant))) == meant


def changed(field: int, text: str) -> str:
    fields = ROW.split(",")
    fields[field] = text
    return ",".join(fields)


BAD = {  # a second line -> what is said of it
    ROW + ",f": "31 fields, expected 30",
    "": "1 fields, expected 30",
    changed(0, "x"): "age is 'x', expected a whole number or ?",
    changed(0, "-3"): "age is '-3', expected",
    changed(0, "3.5"): "age is '3.5', expected",
    changed(1, "f"): "sex is 'f', expected M, F or ?",
    changed(2, "?"): "on_thyroxine is '?', expected t or f",
    changed(15, "T"): "psych is 'T', expected t or f",
    changed(16, "f"): "TSH measured is 'f' although the value is",
    changed(17, "?"): "TSH measured is 't' although the value is '?'",
    changed(17, "nan"): "TSH is 'nan', expected a number or ?",
    changed(17, "1e3"): "TSH is '1e3', expected a number or ?",
    changed(17, "-1"): "TSH is '-1', expected a number or ?",
    changed(17, "1,5"): "31 fields, expected 30",
    changed(29, "G"): "the last field 'G' is not a diagnosis with a [record identification]",
    changed(29, "Z[900000050]"): "the last field 'Z[900000050]' is not a diagnosis",
    changed(29, "[900000050]"): "the last field '[900000050]' is not a diagnosis",
    ROW: "the id 900000008 occurs twice",
}


@pytest.mark.parametrize("line", BAD)
def test_malformed_rows_are_refused_by_file_and_line(line, tmp_path):
    path = tmp_path / "bad.data"
    path.write_text(f"{ROW}\n{line}\n{LINES[2]}\n")
    with pytest.raises(ValueError, match=re.escape(f"{path}, line 2: ")) as error:
        raw.read(path, None)
    assert BAD[line] in str(error.value)
    assert "\n" not in str(error.value)


def test_other_bad_files(tmp_path):
    path = tmp_path / "bad.data"
    path.write_bytes(f"{ROW}\n{LINES[2]}\n".encode() + "Größe".encode("latin-1"))
    with pytest.raises(ValueError, match=r"bad.data, line 3: byte 0xf6 is not ASCII"):
        raw.read(path, None)
    path.write_bytes("\n".join(LINES).encode("utf-16"))
    with pytest.raises(ValueError, match=r"bad.data, line 1: byte 0xff is not ASCII"):
        raw.read(path, None)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match=r"bad.data: no records in it"):
        raw.read(path, None)
    with pytest.raises(ValueError, match=r"no class has more than 30 records"):
        thyroid.records(SMALL, None)
    with pytest.raises(ValueError, match=r"thyroid_small.data: not the file expected: sha256 .*, expected 4a20d104"):
        thyroid.records(SMALL)
    path.write_text("\r\n".join(LINES) + "\r\n")  # other line ends are the same rows
    assert raw.read(path, None) == raw.read(SMALL, None)


def test_a_named_place_that_is_empty_is_an_error_never_a_substitute(tmp_path, monkeypatch):
    monkeypatch.delenv("JAXMON_THYROID", raising=False)
    monkeypatch.delenv("JAXMON_DATA", raising=False)
    assert raw.locate() is None
    (tmp_path / "thyroid").mkdir()
    monkeypatch.setenv("JAXMON_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"thyroid0387\.data: no such file"):
        raw.locate()
    there = tmp_path / "thyroid" / raw.FILE
    there.write_text("")
    assert raw.locate() == there
    monkeypatch.setenv("JAXMON_THYROID", str(SMALL))
    assert raw.locate() == SMALL
    assert raw.locate(there) == there
    monkeypatch.setenv("JAXMON_THYROID", str(tmp_path / "gone"))
    with pytest.raises(FileNotFoundError, match="gone: no such file"):
        raw.locate()
    with pytest.raises(ValueError, match="not the file expected"):
        thyroid.load(SMALL)


def test_counts_of_the_real_file(data_root):
    real = real_file(data_root)
    everyone = raw.read(real)
    assert len(everyone) == 9172
    assert sum(p.diagnosis == "-" for p in everyone) == 6771
    lettered = raw.select(everyone, 0)
    assert 9172 - 6771 - len(lettered) == 164
    assert Counter(p.diagnosis for p in lettered)["J"] == 30
    records = thyroid.records(real)
    expected = {"K": 436, "G": 359, "I": 346, "F": 233, "R": 196, "A": 147, "L": 115, "M": 111, "N": 110, "S": 85}
    assert Counter(r.label for r in records) == expected
    assert len(records) == 2138
    assert len(records[0].options) == 10
    assert len({a.name for r in records for a in r.attributes}) == 22
    queried = [
        r for r in records if {"query_on_thyroxine": "t"}.items() <= {a.name: a.value for a in r.attributes}.items()
    ]
    assert (len(queried), sum(r.label == "G" for r in queried)) == (39, 8)
    assert sum("sex" not in {a.name for a in r.attributes} for r in records) == 78
    without_age = [p for p in everyone if "age" not in p.values]
    assert [p.diagnosis for p in without_age] == ["-"] * 4
    assert not [a.value for r in records for a in r.attributes if "999" in a.value and a.name in raw.LABS]
    assert len({message(remove(records[0], a.name), "") for a in records[0].attributes}) == len(records[0].attributes)


def test_real_values_change_under_tidy_only_where_they_are_noise(data_root):
    real = real_file(data_root)
    values = {v for line in real.read_text().splitlines() for v in line.split(",")[17:28:2]} - {"?"}
    changed = {v for v in values if raw.tidy(v) != v}
    assert len(changed) == 19
    assert all(re.fullmatch(r"\d+\.\d99999", v) for v in changed)
