"""The 2,138 thyroid patients as a tensorflow-datasets builder (jaxmon/tasks/building.py).

Knows: where the archive file comes from and what an example holds. Does not know: sentences (wording.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from etils import epath

from jaxmon.tasks.building import FilesConfig, RowBuilder
from jaxmon.tasks.thyroid.raw import ATTRIBUTES, MORE_THAN, SHA256, URL, VARIABLE, Patient, read, select


class Builder(RowBuilder):
    """Thyroid patients: id, diagnosis (one letter) and 22 attributes as text, "" where the value is not known."""

    code_path = epath.Path(__file__)
    pkg_dir_path = epath.Path(__file__).parent
    BUILDER_CONFIGS = [  # noqa: RUF012  (the interface's own declaration)
        FilesConfig(name="archive", sha256={"patients": SHA256}, choice={"more_than": MORE_THAN})
    ]
    COLUMNS = ("id", "diagnosis", *ATTRIBUTES)
    URLS = {"patients": URL}  # noqa: RUF012
    HOMEPAGE = "https://archive.ics.uci.edu/dataset/102/thyroid+disease"
    VARIABLE = VARIABLE

    def rows(self, paths: Mapping[str, str | Path], config: FilesConfig) -> Iterator[dict[str, str]]:
        for patient in select(read(paths["patients"], config.sha256["patients"]), **config.choice):
            values = {name: patient.values.get(name, "") for name in ATTRIBUTES}
            yield {"id": patient.id, "diagnosis": patient.diagnosis, **values}


def other_file(path: str | Path, more_than: int) -> FilesConfig:
    """For another file in the archive's format: its content names its folder, so it is never served as the archive."""
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    name = f"file_{digest[:12]}_{more_than}"
    return FilesConfig(name=name, sha256={"patients": digest}, choice={"more_than": more_than})


def patient(row: Mapping[str, str]) -> Patient:
    """An example's text as the patient again."""
    return Patient(row["id"], row["diagnosis"], {name: row[name] for name in ATTRIBUTES if row[name]})
