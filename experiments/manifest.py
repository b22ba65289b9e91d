"""What a run directory holds, file by file, and whether it is whole: derived from the files, never needed by a run.

manifest.json: {"store": VERSION, "files": {NAME: {"bytes", "sha256", and of a table "rows", "made_by"}}}

Knows: files, tables. Does not know: what a run should hold; a file that was never there is not missed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from experiments import places, rundir, store
from experiments.locks import NAME as LOCK

NAME = "manifest.json"
TABLES = ("answers", "no_cot", "chains", "labels", "controls", "direct", "windows")  # folders that hold nothing else

Faults = list[str]


def make(root: Path) -> tuple[dict[str, Any], Faults]:
    """The manifest of a run, read from its files, and one line per fault.

    Faults are damaged tables, two files of one table, tables of another maker, files that are no tables where only
    tables lie, and leftovers of a write that was broken off.

    Raises:
      RunError: `root` is no run directory.
    """
    if "config.json" not in places.names(root):
        raise places.RunError(f"{root} holds no config.json: not a run directory")
    makers = rundir.makers(root) if "environment.json" in places.names(root) else {}
    found: dict[str, Any] = {}
    faults: Faults = []
    for name, file in _files(root, root):
        data = file.read_bytes()
        found[name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        parts = name.split("/")
        if file.name.startswith("."):
            faults.append(f"{file} is left of a write that was broken off; the next start deletes it")
            del found[name]
        elif parts[0] in TABLES or (parts[0] == "judges" and len(parts) > 2 and parts[2] in TABLES):
            try:
                table = store.checked(file, {} if parts[0] == "judges" else _asked(parts[0], makers))
                found[name] |= {"rows": table.metadata.num_rows, "made_by": store.stamp(table)}
            except places.RunError as error:
                faults.append(str(error))
    for folder in sorted({name.rpartition("/")[0] for name in found}):
        try:
            store.listing(root / folder if folder else root)
        except places.RunError as error:
            faults.append(str(error))
    return {"store": store.VERSION, "files": found}, faults


def _asked(folder: str, makers: store.Makers) -> store.Makers:
    """Labels are the judge's, whose code may be another; what comes from the model is asked for its maker."""
    return {} if folder in ("labels", "controls") else makers


def _files(root: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """Every file below a directory by its name from the root, but the lock and the manifest itself."""
    for name, path in sorted(places.names(folder).items()):
        if path.is_dir():
            yield from _files(root, path)
        elif folder != root or name not in (LOCK, NAME):
            yield str(path)[len(str(root)) :].lstrip("/"), path


def write(root: Path, made: dict[str, Any]) -> None:
    places.write(root / NAME, (json.dumps(made, indent=1, sort_keys=True) + "\n").encode())


def changes(root: Path, made: dict[str, Any]) -> Faults:
    """What has become of the files of an earlier manifest: one line per file that is gone or has changed.

    Raises:
      RunError: there is no earlier manifest.
    """
    if NAME not in places.names(root):
        raise places.RunError(f"{root} holds no {NAME}")
    before = json.loads((root / NAME).read_text())["files"]
    faults = []
    for name, was in before.items():
        now = made["files"].get(name)
        if now is None:
            faults.append(f"{root / name} was there when {NAME} was written and is gone")
        elif now["sha256"] != was["sha256"]:
            faults.append(f"{root / name} has changed since {NAME} was written")
    return faults
