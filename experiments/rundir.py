"""The run directory is the run's identity: its config is fixed at the first start, and every file is whole or absent.

config.json         the config; another one is refused as soon as anything has been computed
environment.json    one entry per start: versions, devices, precision, commit, fingerprints of model and code, command
data.json           the data set's source, licence and citation
answers/            per record: no-CoT probability of every option in every arm
no_cot/             the same of the whole prompt alone, where experiments.answer_rates came first
chains/R/ARM.A-B.SUM.parquet   the chains with ids A … B-1 of one arm of record R; SUM: store.py
labels/, controls/  per record: the judge's labels of target answers of X = 1, and of X = 0 as controls
replies.jsonl       an endpoint judge's paid replies
judges/NAME/        labels, counts and scores of another judge (experiments/judge.py)
counts.parquet, patterns.parquet, scores.csv, bounds.csv, figure.png, figure.svg, report.html

Other weights and another version of the store are always refused once anything has been computed, other code unless the
user accepts it: that is kept in environment.json and said in the report.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import quote

from experiments import code, places, store
from experiments.locks import NAME as LOCK
from experiments.locks import Lock
from experiments.places import RunError

PACKAGES = ("jax", "jaxlib", "flax", "numpy", "scipy", "transformers", "tokenizers", "pyarrow", "gguf", "safetensors")
STALE = ".*.tmp"  # files under their temporary names
PRIVATE, GROUP = 0o700, 0o2750  # modes of a run directory; what lies in it follows (places.py)
MADE_BY = {"store": "store version", "model": "model fingerprint", "code": "code fingerprint"}  # stamp -> environment


@dataclasses.dataclass(frozen=True)
class Terms:
    """What a user allows at a start, beside the config.

    Attributes:
      other_code: the run goes on under other code than it was begun with.
      takeover: the lock of a killed driver in an object store is replaced.
      group: the user's group may read a run that begins now.
    """

    other_code: bool = False
    takeover: bool = False
    group: bool = False


CAREFUL = Terms()


def _read_json(file: Path, kind: type) -> Any:
    try:
        found = json.loads(file.read_text())
    except ValueError as error:
        raise RunError(f"{file} is not readable: {error}") from None
    if not isinstance(found, kind):
        raise RunError(f"{file} holds {type(found).__name__}, not {kind.__name__}")
    return found


def write_text(path: Path, text: str) -> None:
    """Writes a text file, whole or not at all."""
    places.write(path, text.encode())


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Writes files by name, each whole or not at all."""
    for name_, data in files.items():
        places.write(folder / name_, data)


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Any]) -> None:
    """Writes a table as `write_text` does; None is an empty field, floats have 8 significant digits.

    Args: rows: mappings with these columns, or objects with attributes of these names.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        values = [row[c] if isinstance(row, Mapping) else getattr(row, c) for c in columns]
        writer.writerow(["" if v is None else f"{v:.8g}" if isinstance(v, float) else v for v in values])
    write_text(path, text.getvalue())


def open_run(root: Path, config: Mapping[str, Any], terms: Terms = CAREFUL) -> Lock:
    """Makes or reopens a run directory; returns a lock to hold for the run's duration.

    A start that failed before it had computed anything (a mistyped model, say) does not bind the directory.

    Raises:
      RunError: the directory was made with another config, is in use, or is no run directory.
    """
    places.make(root)
    file = root / "config.json"
    there_already = {name for name in places.names(root) if not fnmatch(name, STALE)}
    if "config.json" not in there_already and there_already - {LOCK}:
        raise RunError(f"{root} is not empty and holds no config.json: not a run directory")
    begun = bool(there_already - {LOCK, "config.json", "environment.json", "data.json"})
    if not begun:
        _begin(root, terms)
    held = Lock(root, terms.takeover)
    try:
        if begun:
            _same(root, _read_json(file, dict), json.loads(json.dumps(config)))
        else:
            (root / "environment.json").unlink(missing_ok=True)
            write_text(file, json.dumps(config, indent=1, sort_keys=True) + "\n")
        if places.is_local(root):
            for stale in root.rglob(STALE):  # left by a killed process; the lock says that none is at work
                stale.unlink(missing_ok=True)
    except BaseException:
        held.close()
        raise
    return held


def _same(root: Path, there: Mapping[str, Any], here: Mapping[str, Any]) -> None:
    if different := sorted(k for k in here.keys() | there.keys() if here.get(k) != there.get(k)):
        what = "; ".join(f"{k} is {there.get(k)!r} there, {here.get(k)!r} here" for k in different)
        raise RunError(f"{root} was made with another config: {what}")


def _begin(root: Path, terms: Terms) -> None:
    """The mode of a run that begins; later starts leave it as it is, so that its owner can change it."""
    if places.is_local(root):
        with suppress(PermissionError):  # the directory is another user's, who chose its mode
            root.chmod(GROUP if terms.group else PRIVATE)


def lock(root: Path, takeover: bool = False) -> Lock:
    """Locks a run directory for as long as the lock is open.

    Raises:
      RunError: another process has it.
    """
    return Lock(root, takeover)


def environment(fingerprint: str, precision: str) -> dict[str, Any]:
    """What a result depends on besides the config: versions, devices, precision, commit, weights, command."""
    import jax

    from models.attention import IMPLEMENTATION

    here = Path(__file__).resolve().parent
    git = subprocess.run(["git", "-C", here, "describe", "--always", "--dirty"], capture_output=True, text=True)
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        "versions": {name: metadata.version(name) for name in PACKAGES},
        "devices": [f"{d.platform} {d.device_kind}" for d in jax.devices()],
        "processes": jax.process_count(),
        "matmul precision": precision,
        "attention": IMPLEMENTATION,
        "XLA_FLAGS": os.environ.get("XLA_FLAGS", ""),
        "commit": git.stdout.strip() or "unknown",
        "model fingerprint": fingerprint,
        "code fingerprint": code.fingerprint(),
        "store version": store.VERSION,
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
    }


def log_environment(root: Path, entry: Mapping[str, Any], terms: Terms = CAREFUL) -> list[dict[str, Any]]:
    """Adds this start to environment.json.

    Raises:
      RunError: weights, code or store are not those of the earlier starts.
    """
    file = root / "environment.json"
    starts = _read_json(file, list) if file.exists() else []
    known = {key: [start.get(key) for start in starts] for key in MADE_BY.values()}
    was = lambda key: str(known[key][0])[:12]
    if starts and entry["store version"] not in known["store version"]:
        raise RunError(
            f"{root} was made by another version of the store ({was('store version')}, this is {store.VERSION})"
        )
    if starts and entry["model fingerprint"] not in known["model fingerprint"]:
        raise RunError(f"{root} was made with other model files (fingerprint {was('model fingerprint')})")
    if starts and entry["code fingerprint"] not in known["code fingerprint"] and not terms.other_code:
        raise RunError(
            f"{root} was made by other code (fingerprint {was('code fingerprint')}, this is "
            f"{entry['code fingerprint'][:12]}); --other_code=accept goes on with this one and says so in the report"
        )
    starts.append(dict(entry))
    write_text(file, json.dumps(starts, indent=1) + "\n")
    return starts


def makers(root: Path) -> dict[str, set[str]]:
    """What may have made the tables of a run: the stamps of all its starts (`store.load`)."""
    starts = _read_json(root / "environment.json", list)
    return {stamp: {str(start.get(key)) for start in starts} for stamp, key in MADE_BY.items()}


def name(text: str) -> str:
    """A record's or arm's id as a file name, reversibly; without "=", which readers of folders take for a column."""
    return quote(text, safe=":+,@ ") if text not in (".", "..") else text.replace(".", "%2E")


def chains(root: Path, record: str) -> Path:
    """The directory of a record's chains."""
    return root / "chains" / name(record)


def shard(root: Path, record: str, arm: str, first: int, stop: int) -> Path:
    """The table of the chains with ids first … stop - 1 of an arm (store.py has its file's name)."""
    return chains(root, record) / f"{name(arm)}.{first}-{stop}.parquet"
