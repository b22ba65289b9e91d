"""Thyroid patients in plain English: one sentence per attribute, the question, the diagnoses. Data, and how it joins.

Knows: the words. Does not know: files.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxmon.records import Attribute, Option, Record
from jaxmon.tasks.thyroid.raw import ATTRIBUTES, LABS, Patient

PREAMBLE = "A patient was referred for thyroid tests. The patient's record:"
QUESTION = "Which of these diagnoses fits the patient best?"

# flag -> sentences for t and f
FLAG_SENTENCES = {
    "on_thyroxine": ("The patient is on thyroxine.", "The patient is not on thyroxine."),
    "query_on_thyroxine": (
        "The request queries whether the patient is on thyroxine.",
        "The request does not query whether the patient is on thyroxine.",
    ),
    "on_antithyroid_medication": (
        "The patient is on antithyroid medication.",
        "The patient is not on antithyroid medication.",
    ),
    "sick": ("The patient is sick.", "The patient is not sick."),
    "pregnant": ("The patient is pregnant.", "The patient is not pregnant."),
    "thyroid_surgery": ("The patient has had thyroid surgery.", "The patient has not had thyroid surgery."),
    "I131_treatment": ("The patient has had I131 treatment.", "The patient has not had I131 treatment."),
    "query_hypothyroid": ("The request queries hypothyroidism.", "The request does not query hypothyroidism."),
    "query_hyperthyroid": ("The request queries hyperthyroidism.", "The request does not query hyperthyroidism."),
    "lithium": ("The patient takes lithium.", "The patient does not take lithium."),
    "goitre": ("The patient has a goitre.", "The patient has no goitre."),
    "tumor": ("The patient has a tumor.", "The patient has no tumor."),
    "hypopituitary": ("The patient is hypopituitary.", "The patient is not hypopituitary."),
    "psych": ("The record notes a psychiatric condition.", "The record notes no psychiatric condition."),
}

# lab value -> (what it is, its unit). The source gives no units; these are the usual ones that fit it (README.md).
LAB_WORDS = {
    "TSH": ("The thyroid-stimulating hormone (TSH)", " mIU/L"),
    "T3": ("The triiodothyronine (T3)", " nmol/L"),
    "TT4": ("The total thyroxine (TT4)", " nmol/L"),
    "T4U": ("The thyroxine uptake (T4U)", ""),
    "FTI": ("The free thyroxine index (FTI)", ""),
    "TBG": ("The thyroxine-binding globulin (TBG)", " mg/L"),
}

SEXES = {"F": "female", "M": "male"}

# letter -> diagnosis and group, as thyroid0387.names has them
DIAGNOSES = {
    "A": ("hyperthyroid", "hyperthyroid conditions"),
    "B": ("T3 toxic", "hyperthyroid conditions"),
    "C": ("toxic goitre", "hyperthyroid conditions"),
    "D": ("secondary toxic", "hyperthyroid conditions"),
    "E": ("hypothyroid", "hypothyroid conditions"),
    "F": ("primary hypothyroid", "hypothyroid conditions"),
    "G": ("compensated hypothyroid", "hypothyroid conditions"),
    "H": ("secondary hypothyroid", "hypothyroid conditions"),
    "I": ("increased binding protein", "binding protein"),
    "J": ("decreased binding protein", "binding protein"),
    "K": ("concurrent non-thyroidal illness", "general health"),
    "L": ("consistent with replacement therapy", "replacement therapy"),
    "M": ("underreplaced", "replacement therapy"),
    "N": ("overreplaced", "replacement therapy"),
    "O": ("antithyroid drugs", "antithyroid treatment"),
    "P": ("I131 treatment", "antithyroid treatment"),
    "Q": ("surgery", "antithyroid treatment"),
    "R": ("discordant assay results", "miscellaneous"),
    "S": ("elevated TBG", "miscellaneous"),
    "T": ("elevated thyroid hormones", "miscellaneous"),
}


def sentence(name: str, value: str) -> str:
    """An attribute's sentence.

    Args:
      name: one of raw.ATTRIBUTES.
      value: a whole number for age, F or M, t or f, or a decimal, by attribute.
    """
    if name == "age":
        return f"The patient is {value} year{'s' * (value != '1')} old."
    if name == "sex":
        return f"The patient is {SEXES[value]}."
    if name in LABS:
        words, unit = LAB_WORDS[name]
        return f"{words} is {value}{unit}."
    return FLAG_SENTENCES[name][value == "f"]


def options(letters: Sequence[str]) -> tuple[Option, ...]:
    """The diagnoses of these letters, in alphabetical order: code and "diagnosis (group)"."""
    return tuple(Option(letter, "{} ({})".format(*DIAGNOSES[letter])) for letter in sorted(set(letters)))


def record(patient: Patient, menu: tuple[Option, ...]) -> Record:
    """A patient as a record: the target y* is the ground-truth diagnosis; what is not known has no sentence."""
    known = [n for n in ATTRIBUTES if n in patient.values]
    return Record(
        id=f"thyroid-{patient.id}",
        label=patient.diagnosis,
        target=patient.diagnosis,
        preamble=PREAMBLE,
        attributes=tuple(Attribute(n, sentence(n, patient.values[n]), patient.values[n]) for n in known),
        question=QUESTION,
        options=menu,
    )


def records(patients: Sequence[Patient]) -> list[Record]:
    """Selected patients as records; the menu is the diagnoses that occur among them."""
    menu = options([p.diagnosis for p in patients])
    return [record(p, menu) for p in patients]
