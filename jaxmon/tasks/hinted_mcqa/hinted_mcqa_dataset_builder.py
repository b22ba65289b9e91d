"""The 14,042 MMLU test questions as a tensorflow-datasets builder (jaxmon/tasks/building.py).

Knows: where the archive comes from and what an example holds. Does not know: hints and sentences (raw.hint,
wording.py): an example is the question as published.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from etils import epath

from jaxmon.tasks.building import FilesConfig, RowBuilder
from jaxmon.tasks.hinted_mcqa.raw import LETTERS, SHA256, URL, VARIABLE, Question, read


class Builder(RowBuilder):
    """Questions: id, subject, text, options A to D, and the letter of the right one."""

    code_path = epath.Path(__file__)
    pkg_dir_path = epath.Path(__file__).parent
    BUILDER_CONFIGS = [FilesConfig(name="archive", sha256={"tests": SHA256})]  # noqa: RUF012
    COLUMNS = ("id", "subject", "text", *LETTERS, "right")
    URLS = {"tests": URL}  # noqa: RUF012
    HOMEPAGE = "https://github.com/hendrycks/test"
    VARIABLE = VARIABLE

    def rows(self, paths: Mapping[str, str | Path], config: FilesConfig) -> Iterator[dict[str, str]]:
        for q in read(paths["tests"], config.sha256["tests"]):
            yield {"id": q.id, "subject": q.subject, "text": q.text, **q.options, "right": q.right}


def question(row: Mapping[str, str]) -> Question:
    """An example's text as the question again."""
    return Question(row["id"], row["subject"], row["text"], {x: row[x] for x in LETTERS}, row["right"])
