"""The ddxplus task: invented files in the raw format; the counts of SPEC §11 where a real file is there."""

import gzip
import json
import re
import string
from collections import Counter

import pytest
from tokenizers import Tokenizer

from jaxmon.prompts import continuations, option_text
from jaxmon.records import message
from jaxmon.tasks import ddxplus
from jaxmon.tasks.ddxplus import codes, evidences, raw, wording
from tests.raw_files import EVIDENCES, PATIENTS, real, zipped
from tests.raw_files import ddxplus as write


def load(path, **changes):
    return ddxplus.records(path, path.parent / raw.EVIDENCES, **({"sha256": None} | changes))


def test_a_record_reads_as_plain_english(tmp_path):
    records = load(write(tmp_path))
    boy = next(r for r in records if r.attributes[0].value == "8")
    assert (boy.label, boy.target) == ("CRU", "CRU")
    assert message(boy, "Say it.").splitlines()[:9] == [
        "A patient was asked about symptoms and history. The patient's record:",
        "The patient is 8 years old.",
        "The patient is male.",
        "Do you have a cough? Yes.",
        "Where does it hurt? Temple (right), palate.",  # several values, one sentence
        "How strong is the pain? 7 (from 0 to 10).",
        "Have you been away? No.",
        "Which of these conditions fits the patient best?",
        "AFN: Atrial fibrillation",
    ]
    assert message(boy, "Say it.").splitlines()[-2:] == ["WHP: Whooping cough", "Say it."]
    girl = next(r for r in records if r.attributes[0].value == "1")
    assert girl.attributes[0].sentence == "The patient is 1 year old."
    assert [a.sentence for a in girl.attributes[2:]] == [
        "Where does it hurt? Nowhere.",
        "Have you been away? The Caribbean.",
    ]
    assert [a.name for a in boy.attributes] == ["age", "sex", "E_1", "E_2", "E_3", "E_4"]


def test_selection_draws_leaves_one_out_and_does_not_pad(tmp_path):
    questions = evidences.read(write(tmp_path).parent / raw.EVIDENCES, None)
    everyone = raw.read(tmp_path / "patients.csv", questions)
    assert len(everyone) == len(PATIENTS) - 1  # the doubled row
    assert Counter(p.pathology for p in raw.select(everyone, 50)) == {"Croup": 2, "SLE": 3}
    two, one = raw.select(everyone, 2), raw.select(everyone[::-1], 1)
    assert Counter(p.pathology for p in two) == {"Croup": 2, "SLE": 2}
    assert one == [two[0], two[2]]  # nested, whatever the order
    path = write(tmp_path, complete="0110011")
    marked = raw.select(raw.read(path, questions), 2)
    assert [(p.pathology, p.complete) for p in marked] == [
        ("Croup", True),
        ("Croup", False),
        ("SLE", True),
        ("SLE", False),
    ]


def test_ids_belong_to_the_content(tmp_path):
    ids = [r.id for r in load(write(tmp_path))]
    assert len(set(ids)) == 5
    assert {r.id for r in load(write(tmp_path, PATIENTS[::-1]))} == set(ids)


def changed(column: int, text: str) -> tuple[str, ...]:
    return (*PATIENTS[0][:column], text, *PATIENTS[0][column + 1 :])


BAD = {
    changed(0, "x"): "AGE is 'x', expected a number",
    changed(1, "m"): "SEX is 'm', expected F, M",
    changed(2, "croup"): "PATHOLOGY is 'croup', none of the 49",
    changed(3, "E_1"): "EVIDENCES is no list like",
    changed(3, "['E_1',]"): "EVIDENCES is no list like",
    changed(3, "['E_9']"): "EVIDENCES names E_9, which is no question",
    changed(3, "['E_1', 'E_1']"): "EVIDENCES names E_1 twice",
    changed(3, "['E_1_@_3']"): "E_1 takes no value, got '3'",
    changed(3, "['E_3']"): "E_3 needs a value",
    changed(3, "['E_3_@_11']"): "E_3 has no value '11'",
    changed(3, "['E_2_@_V_9']"): "E_2 has no value 'V_9'",
    changed(3, "['E_2_@_V_1', 'E_2_@_V_1']"): "E_2 has the value V_1 twice",
}


@pytest.mark.parametrize("row", BAD)
def test_malformed_rows_are_refused_by_file_and_line(row, tmp_path):
    path = write(tmp_path, (PATIENTS[1], row))
    with pytest.raises(ValueError, match=re.escape(f"{path}, line 3: {BAD[row]}")):
        load(path)


def test_other_bad_files(tmp_path):
    path = write(tmp_path)
    whole = load(path)
    assert load(zipped(path)) == whole
    packed = tmp_path / "patients.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert load(packed) == whole
    with pytest.raises(ValueError, match=r"release_evidences.json: not the file expected: sha256"):
        ddxplus.load(path)
    official = zipped(path).rename(tmp_path / raw.PATIENTS)
    with pytest.raises(
        ValueError, match=r"release_test_patients.zip: not the file expected: sha256 .*expected ad3bb981"
    ):
        raw.read(official, evidences.read(tmp_path / raw.EVIDENCES, None))
    official.write_bytes(official.read_bytes()[:-30])
    with pytest.raises(ValueError, match=r"release_test_patients.zip: damaged"):
        load(official)
    path.write_text(path.read_text().replace("PATHOLOGY", "DISEASE"))
    with pytest.raises(ValueError, match=r"patients.csv, line 1: missing column 'PATHOLOGY'"):
        load(path)
    for text, fault in {"{": "line 1", "[]": "not a table", '{"E_1": {}}': "evidence 'E_1': KeyError"}.items():
        (tmp_path / raw.EVIDENCES).write_text(text)
        with pytest.raises(ValueError, match=rf"release_evidences.json.*{fault}"):
            load(path)
    (tmp_path / raw.EVIDENCES).write_text(json.dumps(EVIDENCES | {"E_1": EVIDENCES["E_1"] | {"data_type": "Z"}}))
    with pytest.raises(ValueError, match="evidence 'E_1': ValueError: data_type 'Z'"):
        load(path)


def test_another_patient_file_must_be_named(tmp_path, monkeypatch):
    monkeypatch.delenv(raw.VARIABLE, raising=False)
    monkeypatch.setenv("JAXMON_DATA", str(tmp_path))
    (tmp_path / "ddxplus").mkdir()
    path = write(tmp_path / "ddxplus")
    with pytest.raises(FileNotFoundError, match="another patient file must be named itself"):
        raw.locate()
    assert raw.locate(path) == path


def test_codes_are_three_letters_that_stand_for_the_name():
    assert len(codes.CODES) == len(set(codes.CODES.values())) == len(wording.OPTIONS) == 48
    assert all(re.fullmatch("[A-Z]{3}", code) for code in codes.CODES.values())
    assert codes.NAMES.keys() < codes.CODES.keys()
    assert [o.code for o in wording.OPTIONS] == sorted(codes.CODES.values())


@pytest.mark.parametrize("family", ["qwen3", "gemma4"])
def test_no_code_of_a_menu_is_longer_than_another(family, data_root):
    """The 48 codes are two tokens each, the letters of the other sets one. Qwen2.5 has Qwen3's vocabulary."""
    path = real(data_root.parent, f"models/tokenizers/{family}/tokenizer.json")
    tokenizer = Tokenizer.from_file(str(path))
    ids = continuations(tokenizer, "Answer:", [option_text(o) for o in wording.OPTIONS])
    assert {len(i) for i in ids} == {2}
    assert len(set(ids)) == 48
    assert {len(i) for i in continuations(tokenizer, "Answer:", [f" {x}" for x in string.ascii_uppercase])} == {1}


def test_counts_of_the_real_file(data_root):
    """The compiled file has 48 patients with croup and is not padded; the official one has 50 of each."""
    path = real(data_root, "ddxplus/release_test_patients.zip", "ddxplus/patients_real.csv.gz")
    questions = evidences.read(path.parent / raw.EVIDENCES, raw.SHA256[raw.EVIDENCES])
    assert len(questions) == 223
    assert [c for c, q in questions.items() if q.kind == "M"] == ["E_55", "E_57", "E_54", "E_133", "E_152"]
    chosen = raw.select(raw.read(path, questions))
    sizes = Counter(p.pathology for p in chosen)
    short = {"Croup": 48} if path.suffix == ".gz" else {}
    assert sizes == dict.fromkeys(codes.CODES, 50) | short
    assert all("E_204" in {code for code, *_ in p.answers} for p in chosen)
    if path.suffix == ".gz":
        lost = Counter(p.pathology for p in chosen if not p.complete)
        assert lost == {"Spontaneous rib fracture": 28, "Chagas": 11, "Spontaneous pneumothorax": 8}
    assert {len(r.options) for r in wording.records(chosen)} == {48}
