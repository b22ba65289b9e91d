"""The task `ddxplus`: 48 pathologies x 50 patients; every question with its answer is an attribute (SPEC §11; App. K).

The target is the ground-truth pathology. README.md beside this file is the data card.
"""

from __future__ import annotations

from pathlib import Path

from jaxmon.records import Record
from jaxmon.tasks.ddxplus import evidences, raw, wording

__all__ = ["load", "records"]


def records(
    patients: str | Path,
    questions: str | Path,
    sha256: str | None = raw.BY_NAME,
    per_pathology: int = raw.PER_PATHOLOGY,
    seed: int = raw.SEED,
) -> list[Record]:
    """The records of a patient file: at most `per_pathology` of each pathology (raw.select).

    Args:
      patients, questions: the patient file and release_evidences.json.
      sha256: BY_NAME: the evidences, and a patient file with an official name, must be the official ones; None: any.

    Raises:
      ValueError: wrong checksum, or a malformed row.
      OSError: a file cannot be opened.
    """
    asked = evidences.read(questions, raw.SHA256[raw.EVIDENCES] if sha256 == raw.BY_NAME else sha256)
    return wording.records(raw.select(raw.read(patients, asked, sha256), per_pathology, seed))


def load(path: str | Path | None = None, data_dir: str | Path | None = None) -> list[Record]:
    """The 2,400 records of the official test file, or those of the patient file that is named.

    Args:
      path: a local patient file with release_evidences.json beside it; None looks in $JAXMON_DDXPLUS and $JAXMON_DATA.
      data_dir: where tensorflow-datasets keeps a download; None for its own default.

    Raises:
      ValueError: a file is not the one expected.
      OSError: a named file is absent, or the download failed.
    """
    if local := raw.locate(path):
        return records(local, local.parent / raw.EVIDENCES)
    from jaxmon.tasks.building import download  # tensorflow-datasets, only where it is needed
    from jaxmon.tasks.ddxplus.ddxplus_dataset_builder import Builder, patient

    return wording.records([patient(row) for row in download(Builder, data_dir)])
