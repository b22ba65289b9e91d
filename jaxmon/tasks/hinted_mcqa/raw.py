"""The MMLU test questions: 57 headerless CSV files, from the archive data.tar or from a folder (SPEC §11).

Knows: the files' format and checksum, and the seeded choice of the wrong option that a hint names. Does not know:
sentences, tensorflow-datasets. What was decided where the source is silent or odd stands in README.md beside this file.
"""

from __future__ import annotations

import dataclasses
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

from jaxmon.records import lot
from jaxmon.tasks import files

URL = "https://people.eecs.berkeley.edu/~hendrycks/data.tar"
FILE = "data.tar"
SHA256 = "651daf917d9a6f7ae83886da61e4c1189cc523a83d33ba52c4714816a0884e1a"  # of the test files, joined by name
VARIABLE = "JAXMON_MMLU"
SEED = 0  # of the hints
LETTERS = ("A", "B", "C", "D")
COLUMNS = ("question", *LETTERS, "answer")
SUFFIX = "_test.csv"


@dataclasses.dataclass(frozen=True)
class Question:
    """One row: subject and number of the row in its file, the text, four options, and the right one's letter."""

    id: str
    subject: str
    text: str
    options: Mapping[str, str]
    right: str


def hint(question: Question, seed: int = SEED) -> str:
    """The letter the hint names: by the hash of (seed, id), one of the options that do not read like the right one."""
    wrong = [x for x in LETTERS if question.options[x] != question.options[question.right]]
    return min(wrong, key=lambda x: lot(seed, f"{question.id} {x}"))


def parse(text: str, source: str, subject: str) -> list[Question]:
    """The questions of one subject's file.

    Raises:
      ValueError: names the source and line of the first malformed row.
    """
    numbered = enumerate(files.each(files.rows(text, source, COLUMNS, header=False), source, _row))
    return [dataclasses.replace(q, id=f"{subject}-{i}", subject=subject) for i, q in numbered]


def _row(row: Mapping[str, str]) -> Question:
    texts = {name: _clean(row[name]) for name in COLUMNS}
    if empty := [name for name in COLUMNS if not texts[name]]:
        raise ValueError(f"{empty[0]} is empty")
    right = files.among(texts["answer"], "answer", LETTERS)
    options = {x: " ".join(texts[x].split()) for x in LETTERS}  # an option is one line
    if len(set(options.values())) == 1:
        raise ValueError("all options are the same: no hint can be wrong")
    return Question("", "", texts["question"], options, right)


def _clean(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def read(path: str | Path, sha256: str | None = SHA256) -> list[Question]:
    """Every test question, 14,042 in 57 subjects, subject after subject.

    Args:
      path: data.tar, or a folder that holds test/*.csv or the CSV files themselves.
      sha256: the checksum of the test files, joined in the order of their names; None accepts any.

    Raises:
      ValueError: another checksum; or one line that names the file and row that cannot be read.
      OSError: it cannot be opened.
    """
    named = dict(sorted((_folder if Path(path).is_dir() else _archive)(Path(path)).items()))
    if not named:
        raise ValueError(f"{path}: no files named SUBJECT{SUFFIX} in it")
    files.check(b"".join(named.values()), sha256, path)
    questions = []
    for name, data in named.items():
        source = f"{path}/{name}"
        questions += parse(files.decode(data, source), source, name.removesuffix(SUFFIX))
    return questions


def _folder(path: Path) -> dict[str, bytes]:
    inner = path / "test"
    return {p.name: p.read_bytes() for p in (inner if inner.is_dir() else path).glob(f"*{SUFFIX}")}


def _archive(path: Path) -> dict[str, bytes]:
    try:
        with tarfile.open(fileobj=io.BytesIO(path.read_bytes())) as tar:
            members = [
                m for m in tar.getmembers() if m.isfile() and m.name.endswith(SUFFIX) and "test" in m.name.split("/")
            ]
            return {m.name.rsplit("/", 1)[-1]: tar.extractfile(m).read() for m in members}  # type: ignore[union-attr]
    except (tarfile.TarError, EOFError) as error:
        raise ValueError(f"{path}: not a readable tar archive: {error}") from None


def locate(path: str | Path | None = None) -> Path | None:
    """The local archive or folder: `path`, else $JAXMON_MMLU, else mmlu/data.tar or mmlu in $JAXMON_DATA, else None.

    Raises:
      FileNotFoundError: a place is named but is not there; nothing else steps in.
    """
    return files.locate(path, VARIABLE, (f"mmlu/{FILE}", "mmlu"), f"{FILE} of {URL}, or a folder with test/*.csv")
