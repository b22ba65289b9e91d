"""SIGTERM as a wish: units in hand are finished, none is started, and the program says how to go on.

Preemptible machines and schedulers (Slurm's --signal) send it some time before they take the machine.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

CODE = 128 + signal.SIGTERM


@contextmanager
def on_sigterm() -> Iterator[Callable[[], bool]]:
    """Whether SIGTERM has come, for as long as the context is open; elsewhere than in the main thread it never does."""
    if threading.current_thread() is not threading.main_thread():
        yield bool
        return
    came = threading.Event()

    def note(signum: int, frame: FrameType | None) -> None:
        came.set()

    before = signal.signal(signal.SIGTERM, note)
    try:
        yield came.is_set
    finally:
        signal.signal(signal.SIGTERM, before)


def leave() -> None:
    """Ends the program in one line."""
    print(
        "stopped by SIGTERM: the units in hand were finished, none was started; the same command resumes the run",
        file=sys.stderr,
    )
    sys.exit(CODE)
