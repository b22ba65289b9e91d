"""The 98,688 athletes the study can draw from, as a tensorflow-datasets builder (jaxmon/tasks/building.py).

Knows: where the file comes from and what an example holds. Does not know: sentences (wording.py), which sports
(raw.select).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from etils import epath

from jaxmon.tasks.building import FilesConfig, RowBuilder
from jaxmon.tasks.olympic.raw import ATTRIBUTES, SHA256, URL, VARIABLE, Athlete, read


class Builder(RowBuilder):
    """Athletes: id, sport and 8 attributes as text, "" where the value is not known."""

    code_path = epath.Path(__file__)
    pkg_dir_path = epath.Path(__file__).parent
    BUILDER_CONFIGS = [FilesConfig(name="original", sha256={"events": SHA256})]  # noqa: RUF012
    COLUMNS = ("id", "sport", *ATTRIBUTES)
    URLS = {"events": URL}  # noqa: RUF012
    HOMEPAGE = "https://www.kaggle.com/datasets/heesoo37/120-years-of-olympic-history-athletes-and-results"
    VARIABLE = VARIABLE

    def rows(self, paths: Mapping[str, str | Path], config: FilesConfig) -> Iterator[dict[str, str]]:
        for athlete in read(paths["events"], config.sha256["events"]):
            values = {name: athlete.values.get(name, "") for name in ATTRIBUTES}
            yield {"id": athlete.id, "sport": athlete.sport, **values}


def athlete(row: Mapping[str, str]) -> Athlete:
    """An example's text as the athlete again."""
    return Athlete(row["id"], row["sport"], {name: row[name] for name in ATTRIBUTES if row[name]})
