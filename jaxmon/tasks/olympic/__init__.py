"""The task `olympic`: 14 sports x 225 athletes, 8 attributes (SPEC §11; the paper's §4 and App. K).

The target is the athlete's sport. README.md beside this file is the data card.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jaxmon.records import Record
from jaxmon.tasks.olympic import wording
from jaxmon.tasks.olympic.raw import PER_SPORT, SEED, SHA256, SPORTS, locate, read, select

__all__ = ["load", "locate", "records"]


def records(
    path: str | Path,
    sha256: str | None = SHA256,
    sports: Sequence[str] = SPORTS,
    per_sport: int = PER_SPORT,
    seed: int = SEED,
) -> list[Record]:
    """The records of a raw file: `per_sport` athletes of each sport.

    Args:
      path: athlete_events.csv, plain or .gz, or another file in its format.
      sha256: the checksum the CSV must have; None accepts any file.
      sports, per_sport, seed: which athletes (raw.select).

    Raises:
      ValueError: wrong checksum, a malformed row, or too few athletes of a sport.
      OSError: the file cannot be opened.
    """
    return wording.records(select(read(path, sha256), sports, per_sport, seed))


def load(
    path: str | Path | None = None, sports: Sequence[str] = (), data_dir: str | Path | None = None
) -> list[Record]:
    """The 3,150 records (225 of each of `sports`): from the local file, else downloaded once into `data_dir`.

    Args:
      path: the local athlete_events.csv(.gz); None looks in $JAXMON_OLYMPIC and $JAXMON_DATA.
      sports: the menu; () takes raw.SPORTS.
      data_dir: where tensorflow-datasets keeps a download; None for its own default.

    Raises:
      ValueError: the file is not the one expected, or a sport has too few athletes.
      OSError: a named file is absent, or the download failed.
    """
    if local := locate(path):
        return records(local, sports=sports or SPORTS)
    from jaxmon.tasks.building import download  # tensorflow-datasets, only where it is needed
    from jaxmon.tasks.olympic.olympic_dataset_builder import Builder, athlete

    return wording.records(select([athlete(row) for row in download(Builder, data_dir)], sports or SPORTS))
