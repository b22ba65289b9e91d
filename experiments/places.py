"""Places of files, on a disk or in an object store: a path, or a URL that fsspec knows (s3://, gs://, memory://).

Both are pathlib paths (universal_pathlib for URLs). A file is written whole or not at all: on a disk under a temporary
name, synced, renamed, and its directory synced; in an object store by one PUT. No clock decides anything here.

A file is as open as the directory it lies in: `rundir.open_run` makes a run's own to its owner alone, and what is made
below it has the same mode (less the umask).

Knows: names, bytes, modes. Does not know: tables, runs.
"""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any, cast


class RunError(ValueError):
    """A run directory cannot be used; the message is one line that says which and why."""


def place(where: str | os.PathLike[str]) -> Path:
    """The place that a user names.

    Raises:
      RunError: a URL of a kind that is not known, or whose package is not installed.
    """
    text = str(where)
    if "://" not in text:
        return Path(text)
    from upath import UPath

    try:
        found = UPath(text, use_listings_cache=False)  # other machines write, too
        if found.protocol in ("file", "local"):
            return Path(found.path)
        found.fs  # noqa: B018  imports the protocol's package
    except (ValueError, ImportError) as error:
        raise RunError(f"{text}: {' '.join(str(error).split())}") from None
    return cast(Path, found)


def is_local(path: Path) -> bool:
    return isinstance(path, Path)


def absolute(path: Path) -> str:
    """A place as a text that means the same in another process."""
    return str(path.resolve()) if is_local(path) else str(path)


def remote(path: Path) -> tuple[Any, str]:
    """The fsspec filesystem of a place that is not local, and the path within it."""
    return path.fs, path.path  # type: ignore[attr-defined]  # a UPath, which `place` gives out as a Path


def make(folder: Path) -> None:
    """Makes a directory and those above it, each as open as the one it lies in; an object store has none."""
    if is_local(folder) and not folder.is_dir():
        make(folder.parent)
        if folder.exists() and not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
        folder.mkdir(folder.parent.stat().st_mode & 0o777, exist_ok=True)


def write(path: Path, data: bytes) -> None:
    """Writes a file in place of one that may be there, whole or not at all; makes the directory.

    Raises:
      OSError: it cannot be written; names the file.
    """
    try:
        if is_local(path):
            make(path.parent)
            _write(path, data)
        else:
            system, inside = remote(path)
            system.pipe_file(inside, data)
    except OSError as error:  # a full disk names no file by itself
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None


def _write(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        made = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, path.parent.stat().st_mode & 0o666)
        with os.fdopen(made, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(made)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        with suppress(OSError):  # not every file system syncs directories
            os.fsync(folder)
    finally:
        os.close(folder)


def names(folder: Path) -> dict[str, Path]:
    """What a directory holds, by name; nothing where it is not there."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return {p.name: p for p in folder.iterdir()}
    return {}
