"""The file athlete_events.csv as athletes: parsing, one row per athlete, the study's sports (SPEC §11).

Knows: the file's format and checksum, which rows are kept, how a country gets its name. Does not know: sentences,
options, tensorflow-datasets. What was decided where the source is silent or odd stands in README.md beside this file.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from jaxmon.records import lot
from jaxmon.tasks import files

URL = "https://raw.githubusercontent.com/rgriff23/Olympic_history/master/data/athlete_events.csv"
FILE = "athlete_events.csv"
SHA256 = "1751e89b509dd8c0fa0979ee258eef4374aa93f17d64cd07383ad3f57c5aabd7"  # of the CSV, also where it is packed
VARIABLE = "JAXMON_OLYMPIC"

# Which 14 the paper took is not known to us but for Basketball. These are the 14 with the most athletes.
SPORTS = (
    "Athletics",
    "Basketball",
    "Boxing",
    "Canoeing",
    "Cycling",
    "Football",
    "Handball",
    "Hockey",
    "Ice Hockey",
    "Rowing",
    "Sailing",
    "Shooting",
    "Swimming",
    "Wrestling",
)
PER_SPORT = 225
SEED = 0  # of the choice of the 14 x 225

ATTRIBUTES = ("sex", "age", "height", "weight", "country", "season", "city", "medal")
COLUMNS = ("ID", "Sex", "Age", "Height", "Weight", "Team", "NOC", "Year", "Season", "City", "Sport", "Medal")
MEDALS = ("Gold", "Silver", "Bronze", "NA")  # best first; NA is none
NOBODY = "UNK"  # the NOC code of athletes whose country is not known


@dataclasses.dataclass(frozen=True)
class Athlete:
    """One athlete at one Games: the file's id, the sport, and the known values by attribute."""

    id: str
    sport: str
    values: Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class Entry:
    """One row with age, height and weight; `when` orders an athlete's Games (Winter before Summer of one year)."""

    id: str
    sport: str
    when: tuple[int, bool]
    values: Mapping[str, str]


def parse(text: str, source: str) -> list[Athlete]:
    """The athletes of a file with age, height and weight and one sport, in the file's order: 98,688 in 54 sports.

    One row per athlete: of the earliest Games that has all three, the row with the best medal, the first of equals.

    Raises:
      ValueError: names the source and line of the first malformed row.
    """
    numbered = [(line, row) for line, row in files.rows(text, source, COLUMNS)]
    country = countries(row for _, row in numbered)
    found: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in files.each(iter(numbered), source, lambda row: _entry(row, country)):
        if entry is not None:
            found[entry.id].append(entry)
    best = lambda e: (e.when, MEDALS.index(e.values["medal"]))
    single = (min(entries, key=best) for entries in found.values() if len({e.sport for e in entries}) == 1)
    return [Athlete(e.id, e.sport, e.values) for e in single]


def countries(rows: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """NOC code -> the country's name: its most frequent team without the suffix that numbers second teams.

    `Team` itself would not do: it names clubs and boats, and its suffixes occur in team sports only.
    """
    teams: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for (code, team), times in Counter((row["NOC"], row["Team"]) for row in rows).items():
        teams[code][re.sub(r"-\d+$", "", team)] += times
    return {code: min(names, key=lambda n: (-names[n], n)) for code, names in teams.items()}


def _entry(row: Mapping[str, str], country: Mapping[str, str]) -> Entry | None:
    """A row, or None where age, height or weight is not known; malformed rows are errors either way."""
    if not (row["ID"].isdecimal() and row["Year"].isdecimal()):
        raise ValueError(f"ID and Year are {row['ID']!r} and {row['Year']!r}, expected whole numbers")
    for name in ("NOC", "Team", "City", "Sport"):
        if not row[name].strip() or row[name] == "NA":
            raise ValueError(f"{name} is {row[name]!r}")
    size = {
        "age": row["Age"] if row["Age"] == "NA" else files.number(row["Age"], "Age", 1, 120),
        "height": row["Height"] if row["Height"] == "NA" else files.number(row["Height"], "Height", 50, 300),
        "weight": row["Weight"] if row["Weight"] == "NA" else files.number(row["Weight"], "Weight", 20, 400),
    }
    values = {
        "sex": files.among(row["Sex"], "Sex", ("F", "M")),
        **size,
        **({"country": country[row["NOC"]]} if row["NOC"] != NOBODY else {}),
        "season": files.among(row["Season"], "Season", ("Summer", "Winter")),
        "city": row["City"],
        "medal": files.among(row["Medal"], "Medal", MEDALS),
    }
    if "NA" in size.values():
        return None
    return Entry(row["ID"], row["Sport"], (int(row["Year"]), row["Season"] == "Summer"), values)


def select(
    athletes: Sequence[Athlete], sports: Sequence[str] = SPORTS, per_sport: int = PER_SPORT, seed: int = SEED
) -> list[Athlete]:
    """`per_sport` athletes of each sport by the hash of (seed, id), sport after sport in alphabetical order.

    Raises:
      ValueError: a sport that has fewer, or is not in the file, or is named twice.
    """
    if len(set(sports)) != len(sports) or len(sports) < 2:
        raise ValueError(f"olympic: the sports must be two or more different ones, got {', '.join(sports) or 'none'}")
    chosen: list[Athlete] = []
    for sport in sorted(sports):
        members = [a for a in athletes if a.sport == sport]
        if not members:
            raise ValueError(
                f"no athlete of the sport {sport!r} (there are {', '.join(sorted({a.sport for a in athletes}))})"
            )
        if len(members) < per_sport:
            raise ValueError(f"the sport {sport!r} has {len(members)} athletes; {per_sport} are asked for")
        chosen += sorted(members, key=lambda a: lot(seed, a.id))[:per_sport]
    return chosen


def read(path: str | Path, sha256: str | None = SHA256) -> list[Athlete]:
    """Every athlete of a file that the study could use (see `parse`).

    Args:
      path: athlete_events.csv, plain or .gz, or another file in its format.
      sha256: the checksum the CSV must have; None accepts any file.

    Raises:
      ValueError: another checksum; or one line that names the file and row that cannot be read.
      OSError: the file cannot be opened.
    """
    data = files.load(path)
    files.check(data, sha256, path)
    return parse(files.decode(data, path), str(path))


def locate(path: str | Path | None = None) -> Path | None:
    """The local file: `path`, else $JAXMON_OLYMPIC, else $JAXMON_DATA/olympics/athlete_events.csv(.gz), else None.

    Raises:
      FileNotFoundError: a place is named but holds no such file; nothing else steps in.
    """
    return files.locate(path, VARIABLE, (f"olympics/{FILE}", f"olympics/{FILE}.gz"), f"{FILE} of {URL}")
