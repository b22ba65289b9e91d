"""The 48 x 50 DDXPlus patients as a tensorflow-datasets builder (jaxmon/tasks/building.py).

Knows: where the files come from and what an example holds. Does not know: sentences (wording.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from etils import epath

from jaxmon.tasks.building import FilesConfig, RowBuilder
from jaxmon.tasks.ddxplus import evidences, raw


class Builder(RowBuilder):
    """Patients: id, pathology, age, sex, the answers as JSON [[code, question, answer], ...], and whether complete."""

    code_path = epath.Path(__file__)
    pkg_dir_path = epath.Path(__file__).parent
    BUILDER_CONFIGS = [  # noqa: RUF012
        FilesConfig(
            name="test",
            sha256={"evidences": raw.SHA256[raw.EVIDENCES], "patients": raw.SHA256[raw.PATIENTS]},
            choice={"per_pathology": raw.PER_PATHOLOGY, "seed": raw.SEED},
        )
    ]
    COLUMNS = ("id", "pathology", "age", "sex", "answers", "complete")
    URLS = raw.URLS
    HOMEPAGE = "https://doi.org/10.6084/m9.figshare.22687585"
    VARIABLE = raw.VARIABLE

    def rows(self, paths: Mapping[str, str | Path], config: FilesConfig) -> Iterator[dict[str, str]]:
        questions = evidences.read(paths["evidences"], config.sha256["evidences"])
        for p in raw.select(raw.read(paths["patients"], questions, config.sha256["patients"]), **config.choice):
            row = {"id": p.id, "pathology": p.pathology, "age": p.age, "sex": p.sex, "answers": json.dumps(p.answers)}
            yield row | {"complete": str(int(p.complete))}


def patient(row: Mapping[str, str]) -> raw.Patient:
    """An example's text as the patient again."""
    answers = tuple((code, question, answer) for code, question, answer in json.loads(row["answers"]))
    return raw.Patient(row["id"], row["pathology"], row["age"], row["sex"], answers, row["complete"] == "1")
