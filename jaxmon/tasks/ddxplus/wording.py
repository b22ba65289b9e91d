"""DDXPlus patients in plain English: age, sex and every question with its answer, one line each; the 48 options.

Knows: the words and how a question and its answer join. Does not know: files.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxmon.records import Attribute, Option, Record
from jaxmon.tasks.ddxplus.codes import CODES, NAMES
from jaxmon.tasks.ddxplus.raw import Patient

PREAMBLE = "A patient was asked about symptoms and history. The patient's record:"
QUESTION = "Which of these conditions fits the patient best?"
SEXES = {"F": "female", "M": "male"}
OPTIONS = tuple(Option(code, NAMES.get(name, name)) for name, code in sorted(CODES.items(), key=lambda item: item[1]))


def sentence(question: str, answer: str) -> str:
    """A question with its answer on one line: "Do you have a cough? Yes."."""
    return f"{question} {answer[0].upper()}{answer[1:]}."


def record(patient: Patient) -> Record:
    """A patient as a record: label and target y* are the code of the ground-truth pathology."""
    years = f"The patient is {patient.age} year{'s' * (patient.age != '1')} old."
    asked = [Attribute(code, sentence(question, answer), answer) for code, question, answer in patient.answers]
    return Record(
        id=f"ddxplus-{patient.id}",
        label=CODES[patient.pathology],
        target=CODES[patient.pathology],
        preamble=PREAMBLE,
        attributes=(
            Attribute("age", years, patient.age),
            Attribute("sex", f"The patient is {SEXES[patient.sex]}.", patient.sex),
            *asked,
        ),
        question=QUESTION,
        options=OPTIONS,
    )


def records(patients: Sequence[Patient]) -> list[Record]:
    """Selected patients as records; every menu holds all 48."""
    return [record(p) for p in patients]
