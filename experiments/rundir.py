"""The run directory is the run's identity: its config is fixed at the first start, and every file is whole or absent.

config.json         the config; another one is refused as soon as anything has been computed
environment.json    one entry per start: versions, devices, precision, commit, model fingerprint, command
answers/            per record: no-CoT probability of every option in every arm
no_cot/             the same of the whole prompt alone, where experiments.answer_rates came first
chains/R/ARM.A-B.parquet   the chains with ids A … B-1 of one arm of record R
labels/, controls/  per record: the judge's labels of target answers of X = 1, and of X = 0 as controls
replies.jsonl       an endpoint judge's paid replies
judges/NAME/        labels, counts and scores of another judge (experiments/judge.py)
counts.parquet, patterns.parquet, scores.csv, bounds.csv, figure.png, figure.svg, report.html
"""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatch
from importlib import metadata
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import quote

PACKAGES = ("jax", "jaxlib", "flax", "numpy", "scipy", "transformers", "tokenizers", "pyarrow", "gguf", "safetensors")
STALE = ".*.tmp"  # files under their temporary names


class RunError(ValueError):
    """A run directory cannot be used; the message is one line that says which and why."""


def _read_json(file: Path, kind: type) -> Any:
    try:
        found = json.loads(file.read_text())
    except ValueError as error:
        raise RunError(f"{file} is not readable: {error}") from None
    if not isinstance(found, kind):
        raise RunError(f"{file} holds {type(found).__name__}, not {kind.__name__}")
    return found


def write_text(path: Path, text: str) -> None:
    """Writes a text file under a temporary name, then renames: whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text)
        os.replace(temporary, path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None  # a full disk names no file by itself
    finally:
        temporary.unlink(missing_ok=True)


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


def open_run(root: Path, config: Mapping[str, Any]) -> Any:
    """Makes or reopens a run directory; returns a lock to hold for the run's duration.

    A start that failed before it had computed anything (a mistyped model, say) does not bind the directory.

    Raises:
      RunError: the directory was made with another config, is in use, or is no run directory.
    """
    root.mkdir(parents=True, exist_ok=True)
    file = root / "config.json"
    there_already = {p.name for p in root.iterdir() if not fnmatch(p.name, STALE)}
    if not file.exists() and there_already - {".lock"}:
        raise RunError(f"{root} is not empty and holds no config.json: not a run directory")
    held = lock(root)
    if there_already - {".lock", "config.json", "environment.json"}:
        there = _read_json(file, dict)
        here = json.loads(json.dumps(config))
        if different := sorted(k for k in here.keys() | there.keys() if here.get(k) != there.get(k)):
            what = "; ".join(f"{k} is {there.get(k)!r} there, {here.get(k)!r} here" for k in different)
            raise RunError(f"{root} was made with another config: {what}")
    else:
        (root / "environment.json").unlink(missing_ok=True)
        write_text(file, json.dumps(config, indent=1, sort_keys=True) + "\n")
    for stale in root.rglob(STALE):  # left by a killed process; the lock says that none is at work
        stale.unlink(missing_ok=True)
    return held


def lock(root: Path) -> TextIO:
    """Locks a run directory for as long as the returned file is open.

    Raises:
      RunError: another process has it.
    """
    held = (root / ".lock").open("a")
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        held.close()
        raise RunError(f"{root} is in use by another process") from None
    return held


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
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
    }


def log_environment(root: Path, entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Adds this start to environment.json.

    Raises:
      RunError: the weights are not those of the earlier starts.
    """
    file = root / "environment.json"
    starts = _read_json(file, list) if file.exists() else []
    if starts and starts[0]["model fingerprint"] != entry["model fingerprint"]:
        raise RunError(f"{root} was made with other model files (fingerprint {starts[0]['model fingerprint'][:12]})")
    starts.append(dict(entry))
    write_text(file, json.dumps(starts, indent=1) + "\n")
    return starts


def name(text: str) -> str:
    """A record's or arm's id as a file name, reversibly."""
    return quote(text, safe=":+,=@ ") if text not in (".", "..") else text.replace(".", "%2E")


def shard(root: Path, record: str, arm: str, first: int, stop: int) -> Path:
    """Where the chains with ids first … stop - 1 of an arm are kept."""
    return root / "chains" / name(record) / f"{name(arm)}.{first}-{stop}.parquet"
