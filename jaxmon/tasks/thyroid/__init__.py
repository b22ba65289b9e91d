"""The task `thyroid`: 2,138 patients, 10 diagnoses, 22 attributes (SPEC §11; the paper's §4 and App. K).

The target is the ground-truth diagnosis. README.md beside this file is the data card.
"""

from __future__ import annotations

from pathlib import Path

from jaxmon.records import Record, draw
from jaxmon.tasks.thyroid import wording
from jaxmon.tasks.thyroid.raw import MORE_THAN, SHA256, locate, read, select

__all__ = ["draw", "load", "locate", "records"]


def records(path: str | Path, sha256: str | None = SHA256, more_than: int = MORE_THAN) -> list[Record]:
    """The records of a raw file, in its order.

    Args:
      path: thyroid0387.data, or another file in its format.
      sha256: the checksum it must have; None accepts any file.
      more_than: a class is kept if it has more records than this.

    Raises:
      ValueError: wrong checksum, a malformed row, or no class left.
      OSError: the file cannot be opened.
    """
    kept = select(read(path, sha256), more_than)
    if not kept:
        raise ValueError(f"{path}: no class has more than {more_than} records with a one-letter diagnosis")
    return wording.records(kept)


def load(path: str | Path | None = None, data_dir: str | Path | None = None) -> list[Record]:
    """The archive's 2,138 records: from the local file that `raw.locate` finds, else downloaded once into `data_dir`.

    Args:
      path: the local thyroid0387.data; None looks in $JAXMON_THYROID and $JAXMON_DATA.
      data_dir: where tensorflow-datasets keeps a download; None for its own default.

    Raises:
      ValueError: the file is not the archive's.
      OSError: a named file is absent, or the download failed.
    """
    if local := locate(path):
        return records(local)
    from jaxmon.tasks.building import download  # tensorflow-datasets, only where it is needed
    from jaxmon.tasks.thyroid.thyroid_dataset_builder import Builder, patient

    return wording.records([patient(row) for row in download(Builder, data_dir)])
