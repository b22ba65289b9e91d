"""One driver for one run, by a lock that no clock and no age decides.

On a disk the kernel holds it (flock on RUN/.lock) and drops it with the process, however that ends. In an object store
it is an object RUN/.lock, made only where there is none: exclusively where the filesystem can (S3, GCS, Azure and
memory can; elsewhere it is looked up first, and two starts within that moment may both win). A killed driver leaves it
there, and `--takeover` replaces it.

Two drivers in spite of all do no harm to what is measured: a chain's tokens are those of its name, a table is written
once, and other bytes under its name are refused (store.py).

Knows: who holds a run. Does not know: what a run is.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import socket
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from experiments.places import RunError, is_local, remote, write

NAME = ".lock"


class Lock:
    """A run that is held; closed by the end of a `with`, or of the process where the lock is on a disk."""

    def __init__(self, root: Path, takeover: bool = False):
        """Takes the lock.

        Args:
          takeover: replaces an object that a killed driver has left; a disk's lock needs none.

        Raises:
          RunError: another process has it; says which, on which host.
        """
        self._path = root / NAME
        self._owner = f"{socket.gethostname()}, process {os.getpid()}, {secrets.token_hex(4)}"
        self._file: int | None = None
        if is_local(root):
            self._hold()
        else:
            self._place(takeover)

    def _hold(self) -> None:
        file = os.open(self._path, os.O_RDWR | os.O_CREAT, self._path.parent.stat().st_mode & 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(file)
            if not isinstance(error, BlockingIOError):  # a file system without locks
                raise OSError(error.errno, error.strerror, str(self._path)) from None
            raise RunError(f"{self._path.parent} is in use by another process ({self._named()})") from None
        os.ftruncate(file, 0)
        with suppress(OSError):  # a full disk: the lock holds without a name in it
            os.write(file, self._owner.encode())
        self._file = file

    def _place(self, takeover: bool) -> None:
        system, inside = remote(self._path)
        try:
            if takeover:
                write(self._path, self._owner.encode())
            else:
                system.pipe_file(inside, self._owner.encode(), mode="create")
        except FileExistsError:
            raise RunError(
                f"{self._path.parent} is in use by another process ({self._named()}); where that one has been killed, "
                "start again with --takeover"
            ) from None

    def _named(self) -> str:
        with suppress(OSError):
            return self._path.read_text().rpartition(",")[0] or "not named"
        return "not named"

    def close(self) -> None:
        """Gives the lock back; one that has been taken over stays with its new owner."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        elif not is_local(self._path):
            with suppress(FileNotFoundError):
                if self._path.read_text() == self._owner:
                    self._path.unlink()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
