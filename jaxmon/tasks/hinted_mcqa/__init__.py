"""The task `hinted_mcqa`: 14,042 MMLU questions, one attribute: a hint at a wrong option (SPEC §11; the paper's §4).

The target is the hinted option. README.md beside this file is the data card.
"""

from __future__ import annotations

from pathlib import Path

from jaxmon.records import Record
from jaxmon.tasks.hinted_mcqa import wording
from jaxmon.tasks.hinted_mcqa.raw import SEED, SHA256, locate, read

__all__ = ["load", "locate", "records"]


def records(path: str | Path, sha256: str | None = SHA256, seed: int = SEED) -> list[Record]:
    """The records of data.tar or of a folder with test/*.csv, subject after subject.

    Raises:
      ValueError: wrong checksum, or a malformed row.
      OSError: it cannot be opened.
    """
    return wording.records(read(path, sha256), seed)


def load(path: str | Path | None = None, seed: int = SEED, data_dir: str | Path | None = None) -> list[Record]:
    """The 14,042 records: from the local files that `raw.locate` finds, else downloaded once into `data_dir`.

    Args:
      path: data.tar or a folder; None looks in $JAXMON_MMLU and $JAXMON_DATA.
      seed: of the choice of the hinted option.
      data_dir: where tensorflow-datasets keeps a download; None for its own default.

    Raises:
      ValueError: the files are not the archive's.
      OSError: a named place is absent, or the download failed.
    """
    if local := locate(path):
        return records(local, seed=seed)
    from jaxmon.tasks.building import download  # tensorflow-datasets, only where it is needed
    from jaxmon.tasks.hinted_mcqa.hinted_mcqa_dataset_builder import Builder, question

    return wording.records([question(row) for row in download(Builder, data_dir)], seed)
