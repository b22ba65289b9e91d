"""Records are judged in one background thread while the next ones are sampled.

An error is said at once and stops the judging, not the sampling, which a run needs in any case; the pass over all
records that follows sampling makes up for what is missing, and there the same error ends the run.

Knows: a thread, a queue. Does not know: how a record is judged.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def beside(act: Callable[[Any], object], said: Callable[[str], object]) -> Iterator[Callable[[Any], None]]:
    """Yields what puts an item into the queue; leaving waits for all items, or for none after an exception.

    Args:
      act: called with every item, in order, in the thread; after its first exception no more.
      said: hears of that exception in one line.
    """
    items: queue.SimpleQueue[Any] = queue.SimpleQueue()
    over = object()

    def work() -> None:
        try:
            while (item := items.get()) is not over and not broken.is_set():
                act(item)
        except Exception as error:  # it comes again, and is raised, after sampling
            if not broken.is_set():
                said(f"{type(error).__name__}: {' '.join(str(error).split())}")

    broken = threading.Event()  # the run ends: nobody waits for the thread, files are whole or absent
    thread = threading.Thread(target=work, daemon=True, name="beside")
    thread.start()
    try:
        yield items.put
        items.put(over)
        thread.join()
    except BaseException:
        broken.set()
        items.put(over)
        raise
