"""Raw files: rows with their lines, wrong encodings and checksums, named places; one clear line each."""

import gzip
import hashlib
import re

import pytest

from jaxmon.tasks import files

COLUMNS = ("a", "b")


def test_rows_know_their_lines():
    text = '\ufeffb,a,c\n1,2,3\n"x\ny",5,6\r\n7,8,9'
    assert list(files.rows(text, "f", COLUMNS)) == [
        (2, {"a": "2", "b": "1"}),
        (3, {"a": "5", "b": "x\ny"}),
        (5, {"a": "8", "b": "7"}),
    ]
    assert list(files.rows("1,2\n", "f", COLUMNS, header=False)) == [(1, {"a": "1", "b": "2"})]


BAD = {
    "": "f: no records in it",
    "a,b\n": "f: no records in it",
    "a,c\n1,2\n": "f, line 1: missing column 'b' (there are a, c)",
    "a,b,a\n1,2,3\n": "f, line 1: two columns 'a'",
    "a,b\n1,2\n1\n": "f, line 3: 1 fields, expected 2",
    "a,b\n1,2\n\n3,4\n": "f, line 3: 0 fields, expected 2",
    'a,b\n1,"2"3\n': "f, line 2: ',' expected after '\"'",
    'a,b\n1,"2\n': "f, line 2: unexpected end of data",
}


@pytest.mark.parametrize("text", BAD)
def test_broken_tables(text):
    with pytest.raises(ValueError, match=re.escape(BAD[text])):
        list(files.rows(text, "f", COLUMNS))


def test_each_adds_file_and_line():
    with pytest.raises(ValueError, match=re.escape("f, line 3: invalid literal for int() with base 10: 'x'")):
        list(files.each(files.rows("a\n1\nx\n", "f", ("a",)), "f", lambda row: int(row["a"])))


def test_bytes(tmp_path):
    plain, packed = tmp_path / "a.csv", tmp_path / "a.csv.gz"
    plain.write_bytes(b"a,b\n1,\xe9\n")
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    data = files.load(packed)
    assert data == files.load(plain)
    files.check(data, hashlib.sha256(data).hexdigest(), plain)
    files.check(data, None, plain)
    with pytest.raises(ValueError, match=r"a.csv: not the file expected: sha256 .*, expected 000"):
        files.check(data, "000", plain)
    with pytest.raises(ValueError, match=r"a.csv, line 2: byte 0xe9 is not UTF-8"):
        files.decode(data, plain)
    for broken in (packed.read_bytes()[:-9], b"no gzip"):
        packed.write_bytes(broken)
        with pytest.raises(ValueError, match=r"a.csv.gz: damaged: "):
            files.load(packed)


NUMBERS = {"60.50": "60.5", "7": "7", "0012": "12", "66.333333": "66.333333"}
NO_NUMBERS = ("", "x", "-1", "1e2", "nan", "1.", ".5", "²", "١", "1,5", "101")


def test_numbers():
    assert {text: files.number(text, "age", 0, 100) for text in NUMBERS} == NUMBERS
    for text in NO_NUMBERS:
        with pytest.raises(ValueError, match="age is "):
            files.number(text, "age", 0, 100)


def test_a_named_place_that_is_empty_is_an_error_never_a_substitute(tmp_path, monkeypatch):
    monkeypatch.delenv("JAXMON_X", raising=False)
    monkeypatch.delenv("JAXMON_DATA", raising=False)
    look = lambda named=None: files.locate(named, "JAXMON_X", ("x/first", "x/second"), "first of somewhere")
    assert look() is None
    assert look("") is None
    monkeypatch.setenv("JAXMON_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"x/first: no such file \(expected first of somewhere\)"):
        look()
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "second").write_text("")
    assert look() == tmp_path / "x" / "second"
    monkeypatch.setenv("JAXMON_X", str(tmp_path / "gone"))
    with pytest.raises(FileNotFoundError, match="gone: no such file"):
        look()
    assert look(tmp_path / "x") == tmp_path / "x"
