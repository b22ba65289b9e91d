"""The archive file thyroid0387.data as patients: parsing, cleaning, and the study's choice of 2,138 (SPEC §11).

Knows: the file's format, its checksum, and which rows are kept. Does not know: sentences, options, tensorflow-datasets.
What was decided where the source is silent or odd stands in README.md beside this file.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from jaxmon.tasks import files

URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/thyroid-disease/thyroid0387.data"
SHA256 = "4a20d104d4607afd7b1a477af5aa4381a2027f36cc7027f44bc2bd5a50c6724d"  # also in checksums.tsv
FILE = "thyroid0387.data"
VARIABLE = "JAXMON_THYROID"
MORE_THAN = 30  # records a class must exceed; J has exactly 30 and is dropped

FLAGS = (
    "on_thyroxine",
    "query_on_thyroxine",
    "on_antithyroid_medication",
    "sick",
    "pregnant",
    "thyroid_surgery",
    "I131_treatment",
    "query_hypothyroid",
    "query_hyperthyroid",
    "lithium",
    "goitre",
    "tumor",
    "hypopituitary",
    "psych",
)
LABS = ("TSH", "T3", "TT4", "T4U", "FTI", "TBG")
ATTRIBUTES = ("age", "sex", *FLAGS, *LABS)  # the file's order
# A row: age, sex, 14 flags, six pairs of (measured, value), referral source, diagnosis[id].
FIELDS = 2 + len(FLAGS) + 2 * len(LABS) + 2
OLDEST = 120  # years; ages above (455, 65511, 65512, 65526) are no ages

_LAST = re.compile(r"(-|[A-T]+(?:\|[A-T]+)?)\[(\d+)\]")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


@dataclasses.dataclass(frozen=True)
class Patient:
    """One row: its id, its diagnosis as the file writes it, and the known values by attribute (others are absent)."""

    id: str
    diagnosis: str
    values: Mapping[str, str]


def tidy(number: str) -> str:
    """The shortest decimal that agrees with `number` to six significant digits: "9.599999" -> "9.6".

    The source writes at most three digits; its 9.599999 is 9.6 after a passage through single precision.
    """
    digits = f"{float(number):.6g}"
    return digits if "e" not in digits else f"{float(digits):.12f}".rstrip("0").rstrip(".")


def parse(text: str, source: str) -> list[Patient]:
    """The rows of a file.

    Args:
      text: the file's text.
      source: its name, for messages.

    Raises:
      ValueError: names the source and line of the first malformed row.
    """
    patients: dict[str, Patient] = {}
    lines = text.removesuffix("\n").split("\n") if text else []
    for number, line in enumerate(lines, 1):
        try:
            patient = _patient(line.removesuffix("\r").split(","))
            if patient.id in patients:
                raise ValueError(f"the id {patient.id} occurs twice")
        except ValueError as error:
            raise ValueError(f"{source}, line {number}: {error}") from None
        patients[patient.id] = patient
    if not patients:
        raise ValueError(f"{source}: no records in it")
    return list(patients.values())


def _patient(fields: Sequence[str]) -> Patient:
    if len(fields) != FIELDS:
        raise ValueError(f"{len(fields)} fields, expected {FIELDS}")
    age, sex, *flags = fields[: 2 + len(FLAGS)]
    measured, values = fields[2 + len(FLAGS) : -2 : 2], fields[3 + len(FLAGS) : -2 : 2]
    last = _LAST.fullmatch(fields[-1])
    if not last:
        raise ValueError(f"the last field {fields[-1]!r} is not a diagnosis with a [record identification]")
    known = {}
    if age != "?":
        if not age.isdecimal():
            raise ValueError(f"age is {age!r}, expected a whole number or ?")
        if 1 <= int(age) <= OLDEST:
            known["age"] = str(int(age))
    if sex not in ("M", "F", "?"):
        raise ValueError(f"sex is {sex!r}, expected M, F or ?")
    known |= {"sex": sex} if sex != "?" else {}
    for name, flag in zip(FLAGS, flags, strict=True):
        if flag not in ("t", "f"):
            raise ValueError(f"{name} is {flag!r}, expected t or f")
        known[name] = flag
    for name, there, value in zip(LABS, measured, values, strict=True):
        if there != ("f" if value == "?" else "t"):
            raise ValueError(f"{name} measured is {there!r} although the value is {value!r}")
        if value != "?":
            if not _NUMBER.fullmatch(value):
                raise ValueError(f"{name} is {value!r}, expected a number or ?")
            known[name] = tidy(value)
    return Patient(last[2], last[1], known)


def select(patients: Sequence[Patient], more_than: int = MORE_THAN) -> list[Patient]:
    """The study's records: one letter as diagnosis ("-" is none), in a class of more than `more_than`; file order."""
    lettered = [p for p in patients if re.fullmatch("[A-T]", p.diagnosis)]
    sizes = Counter(p.diagnosis for p in lettered)
    return [p for p in lettered if sizes[p.diagnosis] > more_than]


def read(path: str | Path, sha256: str | None = SHA256) -> list[Patient]:
    """Every patient of a file, 9,172 of the archive's.

    Args:
      path: thyroid0387.data, or another file in its format.
      sha256: the checksum it must have; None accepts any file.

    Raises:
      ValueError: another checksum; or one line that names the file and row that cannot be read.
      OSError: the file cannot be opened.
    """
    data = files.load(path)
    files.check(data, sha256, path)
    return parse(files.decode(data, path, "ascii"), str(path))


def locate(path: str | Path | None = None) -> Path | None:
    """The local archive file: `path`, else $JAXMON_THYROID, else $JAXMON_DATA/thyroid/thyroid0387.data, else None.

    Raises:
      FileNotFoundError: a place is named but holds no such file; nothing else steps in.
    """
    return files.locate(path, VARIABLE, (f"thyroid/{FILE}",), f"{FILE} of {URL}")
