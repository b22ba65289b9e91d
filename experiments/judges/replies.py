"""The file of paid replies: what was asked, what came back, what it cost; whole lines only, and it survives any kill.

One event a line, appended and synced before anything follows from it:

    CHECK {"event": "sent",  "id": I, "bound": B}       an attempt begins that may cost B at most
    CHECK {"event": "reply", "id": I, "key": K, "text": T, "finish": F, "input": N, "output": M, "cost": C}
    CHECK {"event": "error", "id": I}                   the server answered with an error status: nothing to pay

CHECK is a digest of the rest of the line. A torn or damaged line is counted and skipped, and the next line begins on a
line of its own. An attempt without a `reply` or `error` (a time-out, a lost connection, a kill) may have been paid, so
it keeps its bound in the sum. Spending is always the sum over all lines, so a resumed job cannot spend its cap twice.

Knows: events, sums, one writer at a time. Does not know: the protocol, rubrics, labels.
"""

from __future__ import annotations

import dataclasses
import errno
import fcntl
import hashlib
import json
import os
import threading
from pathlib import Path
from typing import Any

from experiments.places import make


@dataclasses.dataclass(frozen=True)
class Reply:
    """One reply of the server; `finish` is its finish reason, tokens and cost as accounted."""

    text: str
    finish: str
    input: int = 0
    output: int = 0
    cost: float = 0.0


class CapReached(ValueError):
    """The next call could cost more than may still be spent."""


class Replies:
    """An open file of replies, for the threads of one process.

    Attributes:
      damaged: lines that could not be read.
    """

    def __init__(self, path: Path):
        """Opens or makes the file.

        Raises:
          ValueError: another process has it open.
          OSError: it cannot be opened.
        """
        make(path.parent)
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise ValueError(f"{path} is in use by another process") from None
        self._path = path
        self._turn = threading.Condition()
        self._replies: dict[str, Reply] = {}
        self._open: dict[int, float] = {}  # id -> bound of the attempts that are not settled
        self._flying: set[int] = set()  # those of them that this process still waits for
        self._next = self._errors = self.damaged = 0
        self._input = self._output = 0
        self._cost = 0.0  # of the replies
        self._torn = False
        self._read(path.read_bytes())

    def _read(self, data: bytes) -> None:
        for line in data.split(b"\n"):
            if line:
                check, _, body = line.partition(b" ")
                if check == _check(body):
                    self._apply(json.loads(body))
                else:
                    self.damaged += 1
        self._torn = bool(data) and not data.endswith(b"\n")

    def _apply(self, event: dict[str, Any]) -> None:
        self._next = max(self._next, event["id"] + 1)
        if event["event"] == "sent":
            self._open[event["id"]] = event["bound"]
            return
        self._open.pop(event["id"], None)
        if event["event"] == "error":
            self._errors += 1
        else:
            reply = Reply(**{f.name: event[f.name] for f in dataclasses.fields(Reply)})
            self._replies.setdefault(event["key"], reply)
            self._input, self._output = self._input + reply.input, self._output + reply.output
            self._cost += reply.cost

    def _write(self, **event: Any) -> None:
        body = json.dumps(event, ensure_ascii=True).encode()
        line = b"\n" * self._torn + _check(body) + b" " + body + b"\n"
        try:
            self._torn = os.write(self._file, line) != len(line)
            if self._torn:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._file)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._path)) from None
        self._apply(event)

    def get(self, key: str) -> Reply | None:
        with self._turn:
            return self._replies.get(key)

    def send(self, bound: float, cap: float) -> int:
        """Begins an attempt that may cost `bound`, waiting for others in flight where the cap would not hold it.

        Returns: the attempt's id.
        Raises: CapReached where it still does not hold it.
        """
        with self._turn:
            while self.spent + bound > cap:
                if not self._flying:
                    raise CapReached(
                        f"the spending cap of {cap:g} is reached: {self.spent:.4g} is spent or may be, and the next "
                        f"call could cost {bound:.4g}; what has been labelled is kept"
                    )
                self._turn.wait()
            attempt = self._next
            self._write(event="sent", id=attempt, bound=bound)
            self._flying.add(attempt)
            return attempt

    def settle(self, attempt: int, key: str = "", reply: Reply | None = None, lost: bool = False) -> None:
        """Ends an attempt: with its reply, with an error status (nothing to pay), or `lost` (it keeps its bound)."""
        with self._turn:
            self._flying.discard(attempt)
            self._turn.notify_all()
            if reply is not None:
                self._write(event="reply", id=attempt, key=key, **dataclasses.asdict(reply))
            elif not lost:
                self._write(event="error", id=attempt)

    @property
    def spent(self) -> float:
        """What all attempts in the file have cost, at most."""
        return self._cost + sum(self._open.values())

    def account(self) -> dict[str, float]:
        """Totals, recomputed from the lines: for the report."""
        with self._turn:
            return {
                "attempts": self._next,
                "replies": len(self._replies),
                "error statuses": self._errors,
                "lost (may have been paid)": len(self._open),
                "input tokens": self._input,
                "output tokens": self._output,
                "cost at most": self.spent,
                "damaged lines": self.damaged,
            }

    def close(self) -> None:
        os.close(self._file)


def _check(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest()[:16].encode()
