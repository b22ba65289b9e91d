"""Small invented raw files in the formats of the tasks, and the real ones where they are there."""

import csv
import functools
import io
import json
import zipfile
from pathlib import Path

import pytest

from jaxmon.records import Record
from jaxmon.tasks import ddxplus as ddxplus_task
from jaxmon.tasks import hinted_mcqa, thyroid
from jaxmon.tasks import olympic as olympic_task
from jaxmon.tasks.olympic import raw as olympic_raw
from tests.thyroid_files import SMALL

EVENTS = (
    "ID,Name,Sex,Age,Height,Weight,Team,NOC,Games,Year,Season,City,Sport,Event,Medal",
    "1,Ann,F,21,170,60.50,Ruritania-1,RUR,1992 Summer,1992,Summer,Roma,Rowing,Pairs,NA",
    "1,Ann,F,21,170,60.50,Ruritania-1,RUR,1992 Summer,1992,Summer,Roma,Rowing,Fours,Silver",
    "1,Ann,F,25,170,60.50,Ruritania,RUR,1996 Summer,1996,Summer,Atlanta,Rowing,Pairs,Gold",
    "2,Bob,M,30,190,90,Boat Club Ruritania,RUR,1992 Summer,1992,Summer,Roma,Rowing,Eights,NA",
    "3,Cy,M,NA,180,70,Ruritania,RUR,1992 Summer,1992,Summer,Roma,Judo,Open,NA",
    "4,Di,F,19,160,50,Graustark,GRA,1992 Winter,1992,Winter,Oslo,Curling,Curling,Bronze",
    "4,Di,F,19,160,50,Graustark,GRA,1992 Summer,1992,Summer,Roma,Judo,Open,Gold",
    "5,Ed,M,22,175,66.333333,Graustark,GRA,1992 Summer,1992,Summer,Athina,Judo,Open,NA",
    "6,Flo,F,23,NA,66,Nowhere,UNK,1992 Summer,1992,Summer,Roma,Rowing,Pairs,NA",
    "6,Flo,F,27,172,66,Nowhere,UNK,1996 Summer,1996,Summer,Atlanta,Rowing,Pairs,NA",
    "7,Gus,M,28,181,77,Graustark,GRA,1992 Winter,1992,Winter,Oslo,Curling,Curling,NA",
)


def olympic(folder: Path, lines: tuple[str, ...] = EVENTS) -> Path:
    path = folder / "athlete_events.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def _evidence(kind: str, text: str, **values: str) -> dict:
    meaning = {v: {"fr": "?", "en": words} for v, words in values.items()}
    possible = list(values) or (list(range(11)) if kind == "C" else [])
    return {"data_type": kind, "question_en": text, "value_meaning": meaning, "possible-values": possible}


EVIDENCES = {
    "E_1": _evidence("B", "Do you have  a cough?"),
    "E_2": _evidence("M", "Where does it hurt?", V_1="nowhere", V_2="temple(R)", V_3="finger (index)(L)", V_4="palace"),
    "E_3": _evidence("C", "How strong is the pain?"),
    "E_4": _evidence("C", "Have you been away?", V_10="N", V_0="Caraibes"),
}
PATIENTS = (
    ("8", "M", "Croup", "['E_1', 'E_2_@_V_2', 'E_2_@_V_4', 'E_3_@_7', 'E_4_@_V_10']"),
    ("1", "F", "Croup", "['E_2_@_V_1', 'E_4_@_V_0']"),
    ("1", "F", "Croup", "['E_2_@_V_1', 'E_4_@_V_0']"),
    ("44", "F", "SLE", "['E_3_@_0', 'E_4_@_V_10']"),
    ("45", "F", "SLE", "['E_4_@_V_10']"),
    ("46", "M", "SLE", "['E_2_@_V_3', 'E_4_@_V_10']"),
    ("2", "M", "Bronchiolitis", "['E_1', 'E_4_@_V_10']"),
)


def ddxplus(folder: Path, patients: tuple[tuple[str, ...], ...] = PATIENTS, complete: str = "") -> Path:
    """The patient file, with release_evidences.json beside it; `complete`: one 0 or 1 per row, as in partial files."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    header = ["AGE", "DIFFERENTIAL_DIAGNOSIS", "SEX", "PATHOLOGY", "EVIDENCES", "INITIAL_EVIDENCE"]
    writer.writerow(header + ["complete"] * bool(complete))
    for i, (age, sex, pathology, evidences) in enumerate(patients):
        writer.writerow([age, f"[['{pathology}', 0.5]]", sex, pathology, evidences, "E_1", *complete[i : i + 1]])
    (folder / "release_evidences.json").write_text(json.dumps(EVIDENCES))
    path = folder / "patients.csv"
    path.write_text(out.getvalue())
    return path


def zipped(path: Path) -> Path:
    """The file as the official archives pack it: one member without an extension."""
    made = path.with_suffix(".zip")
    with zipfile.ZipFile(made, "w") as archive:
        archive.write(path, path.stem)
    return made


QUESTIONS = {
    "astronomy": 'What is up?,the sky, the ground ,"the sea",the cellar,A\n"Two\r\nlines?",1,"2\n3",4,5,D\n',
    "virology": '"Which, then?",x,x,y,z,A\n',
}


def mmlu(folder: Path, questions: dict[str, str] = QUESTIONS) -> Path:
    (folder / "test").mkdir()
    for subject, text in questions.items():
        (folder / "test" / f"{subject}_test.csv").write_bytes(text.encode())
    return folder


def real(root: Path, *names: str) -> Path:
    """The first of these files of the data folder; skips where none is there."""
    there = [root / name for name in names if (root / name).exists()]
    if not there:
        pytest.skip(f"{names[0]} is absent from the data folder")
    return there[0]


@functools.cache
def athletes(path: Path) -> list[olympic_raw.Athlete]:
    """Every athlete of the real file; it takes seconds to read."""
    return olympic_raw.read(path)


SETS = ("thyroid", "olympic", "ddxplus", "hinted_mcqa")


def small_records(name: str, folder: Path) -> list[Record]:
    """The records of a set's invented file."""
    if name == "thyroid":
        return thyroid.records(SMALL, None, more_than=0)
    if name == "olympic":
        return olympic_task.records(olympic(folder), None, ("Rowing", "Judo"), 1)
    if name == "ddxplus":
        return ddxplus_task.records(ddxplus(folder), folder / "release_evidences.json", None)
    return hinted_mcqa.records(mmlu(folder), None)


def real_records(name: str, root: Path) -> list[Record]:
    """The records of a set's real file; skips where it is absent."""
    if name == "thyroid":
        return thyroid.load(real(root, "thyroid/thyroid0387.data"))
    if name == "olympic":
        path = real(root, "olympics/athlete_events.csv", "olympics/athlete_events.csv.gz")
        return olympic_task.wording.records(olympic_raw.select(athletes(path)))
    if name == "ddxplus":
        return ddxplus_task.load(real(root, "ddxplus/release_test_patients.zip", "ddxplus/patients_real.csv.gz"))
    return hinted_mcqa.load(real(root, "mmlu/data.tar", "mmlu"))
