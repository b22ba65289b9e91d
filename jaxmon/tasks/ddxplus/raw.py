"""The DDXPlus patient files (English release) as patients, and the study's 48 x 50 of them (SPEC §11).

Knows: the files' format and checksums, which rows are kept, how a row's tokens become questions with answers. Does not
know: sentences, options, tensorflow-datasets. What was decided where the source is silent or odd stands in README.md.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import re
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from jaxmon.records import lot
from jaxmon.tasks import files
from jaxmon.tasks.ddxplus import evidences
from jaxmon.tasks.ddxplus.codes import CODES
from jaxmon.tasks.ddxplus.evidences import Question

HOST = "https://ndownloader.figshare.com/files/"  # of article 22687585, "DDXPlus Dataset (English)"
EVIDENCES, PATIENTS = "release_evidences.json", "release_test_patients.zip"
URLS = {"evidences": f"{HOST}40278013", "patients": f"{HOST}40278016"}
SHA256 = {
    EVIDENCES: "281c78b044ae60514e28ecc9052d08a8225dd3e2db3f00f8788b99c47b05e0c0",
    PATIENTS: "ad3bb981f3453fd7abffb35cc595a1c02197e409c581bff97c1265c33eb00d23",
    "release_validate_patients.zip": "625a96855becf0efe5da339fd3d440aa99597d48f784957a97dacc3fceaa7e40",
    "release_train_patients.zip": "174ae1d56f36a15b7144838ecd214e1e1748a5369fc90c559529b6dc6ecfb218",
}
BY_NAME = "by name"  # a file with an official name must have its checksum; others are taken as named
VARIABLE = "JAXMON_DDXPLUS"
LEFT_OUT = "Bronchiolitis"  # fewer than 50 patients in the test and in the validation file
PER_PATHOLOGY = 50
SEED = 0  # of the choice of the 48 x 50

COLUMNS = ("AGE", "SEX", "PATHOLOGY", "EVIDENCES")  # DIFFERENTIAL_DIAGNOSIS and INITIAL_EVIDENCE would leak
COMPLETE = "complete"  # a further column of partial files: 0 where a row lost values of multi-choice questions
_LIST = re.compile(r"\[(?:'E_\d+(?:_@_(?:V_)?\d+)?'(?:, (?!\])|(?=\])))*\]")
_TOKEN = re.compile(r"'(E_\d+)(?:_@_((?:V_)?\d+))?'")


@dataclasses.dataclass(frozen=True)
class Patient:
    """One row: an id made of its content, pathology, age, sex, and per question asked its code, text and answer."""

    id: str
    pathology: str
    age: str
    sex: str
    answers: tuple[tuple[str, str, str], ...]
    complete: bool = True


def parse(text: str, source: str, questions: Mapping[str, Question]) -> list[Patient]:
    """The patients of a file, in its order; of rows with the same content the first.

    Raises:
      ValueError: names the source and line of the first malformed row.
    """
    first = text.partition("\n")[0]
    columns = (*COLUMNS, COMPLETE) if COMPLETE in first.strip().split(",") else COLUMNS
    rows = files.each(files.rows(text, source, columns), source, lambda row: _patient(row, questions))
    return list({p.id: p for p in reversed(list(rows))}.values())[::-1]


def _patient(row: Mapping[str, str], questions: Mapping[str, Question]) -> Patient:
    if not _LIST.fullmatch(row["EVIDENCES"]):
        raise ValueError("EVIDENCES is no list like ['E_53', 'E_56_@_4']")
    if row["PATHOLOGY"] not in CODES and row["PATHOLOGY"] != LEFT_OUT:
        raise ValueError(f"PATHOLOGY is {row['PATHOLOGY']!r}, none of the 49")
    values: dict[str, list[str]] = {}
    for code, value in _TOKEN.findall(row["EVIDENCES"]):
        if code not in questions:
            raise ValueError(f"EVIDENCES names {code}, which is no question")
        if code in values and questions[code].kind != evidences.MULTIPLE:
            raise ValueError(f"EVIDENCES names {code} twice")
        values.setdefault(code, []).extend([value] if value else [])
    content = "|".join(row[name] for name in COLUMNS)
    return Patient(
        id=hashlib.sha256(content.encode()).hexdigest()[:12],
        pathology=row["PATHOLOGY"],
        age=files.number(row["AGE"], "AGE", 0, 120),
        sex=files.among(row["SEX"], "SEX", ("F", "M")),
        answers=tuple((code, questions[code].text, questions[code].answer(v)) for code, v in values.items()),
        complete=files.among(row.get(COMPLETE, "1"), COMPLETE, ("0", "1")) == "1",
    )


def select(patients: Iterable[Patient], per_pathology: int = PER_PATHOLOGY, seed: int = SEED) -> list[Patient]:
    """At most `per_pathology` patients of each of the 48, by the hash of (seed, id), in the order of the codes.

    Complete rows come before incomplete ones. A pathology with fewer gives all it has: nothing is padded.
    """
    members: dict[str, list[Patient]] = {name: [] for name in sorted(CODES, key=CODES.__getitem__)}
    for patient in patients:
        if patient.pathology != LEFT_OUT:
            members[patient.pathology].append(patient)
    order = lambda p: (not p.complete, lot(seed, p.id))
    return [p for group in members.values() for p in sorted(group, key=order)[:per_pathology]]


def read(patients: str | Path, questions: Mapping[str, Question], sha256: str | None = BY_NAME) -> list[Patient]:
    """Every patient of a file.

    Args:
      patients: an official .zip, the CSV in it, or another file with its columns (.gz too).
      questions: of evidences.read.
      sha256: the checksum the file must have; BY_NAME: that of its name, for the official names; None: any.

    Raises:
      ValueError: another checksum; or one line that names the file and row that cannot be read.
      OSError: the file cannot be opened.
    """
    path = Path(patients)
    data = files.load(path)
    files.check(data, SHA256.get(path.name) if sha256 == BY_NAME else sha256, path)
    data = _unzip(data, path) if data[:4] == b"PK\x03\x04" else data
    return parse(files.decode(data, path), str(path), questions)


def _unzip(data: bytes, path: Path) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
            if len(names) != 1:
                raise ValueError(f"{path}: {len(names)} files in the archive, expected one")
            return archive.read(names[0])
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path}: damaged: {error}") from None


def locate(path: str | Path | None = None) -> Path | None:
    """The local patient file: `path`, else $JAXMON_DDXPLUS, else $JAXMON_DATA/ddxplus/release_test_patients.zip.

    Another patient file than the official test file is used only where it is named. release_evidences.json must lie
    beside it.

    Raises:
      FileNotFoundError: a place is named but holds no such file; nothing else steps in.
    """
    hint = f"{PATIENTS} of figshare article 22687585; another patient file must be named itself"
    return files.locate(path, VARIABLE, (f"ddxplus/{PATIENTS}",), hint)
