"""One run on several hosts: every process runs the same program over one mesh, process 0 alone touches files.

What is read from disk decides what is computed next, so it is read by process 0 and told to the others (`lead`): all
processes then start the same device programs in the same order. An error of one process becomes an error of all, told
before the next device program, so that nobody waits for a process that has given up; one that dies without a word ends
the others when its heartbeat has been missing for HEARTBEAT_S.

Knows: processes, how they agree. Does not know: what is computed or written. In one process every function is the
plain call.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

NAMES = {"coordinator": "JAX_COORDINATOR_ADDRESS", "processes": "JAX_NUM_PROCESSES", "process": "JAX_PROCESS_ID"}
CONNECT_S, HEARTBEAT_S = 120, 300  # a busy host that compiles may be silent for long


class HostError(ValueError):
    """The processes of a run do not come together; or what went wrong on another one."""


def start(coordinator: str | None, processes: int | None, process: int | None) -> None:
    """Joins the run's processes; None is read from the environment (NAMES). Nothing set: one process.

    Args:
      coordinator: HOST:PORT of process 0; "auto" where jax.distributed finds out by itself (Slurm, Cloud TPU).
      processes, process: how many, and which this is.

    Raises:
      HostError: only some of the three are given, they contradict each other, or the others do not come.
    """
    given = {"coordinator": coordinator, "processes": processes, "process": process}
    found = {k: os.environ.get(NAMES[k]) if v is None else v for k, v in given.items()}
    if all(v is None for v in found.values()):
        return
    if found["coordinator"] == "auto":
        jax.distributed.initialize(initialization_timeout=CONNECT_S, heartbeat_timeout_seconds=HEARTBEAT_S)
        return
    if missing := [f"--{k} ({NAMES[k]})" for k, v in found.items() if v is None]:
        raise HostError(f"several hosts need {', '.join(missing)} as well")
    where = str(found["coordinator"])
    try:
        many, this = int(str(found["processes"])), int(str(found["process"]))
        port = int(where.rpartition(":")[2])
    except ValueError:
        raise HostError(
            f"several hosts: coordinator must be HOST:PORT, the others whole numbers; got {found}"
        ) from None
    if not 0 <= this < many or not 0 < port < 2**16:
        raise HostError(f"several hosts: want 0 <= process < processes and a port, got {found}")
    try:
        jax.distributed.initialize(
            where, many, this, initialization_timeout=CONNECT_S, heartbeat_timeout_seconds=HEARTBEAT_S
        )
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise HostError(f"process {this} of {many} could not join at {where} within {CONNECT_S} s: {reason}") from None


def leads() -> bool:
    """Whether this is the process that reads and writes files."""
    return jax.process_index() == 0


def part() -> None:
    """The processes part: no device program over all hosts after this; process 0 may go on alone."""
    if jax.process_count() > 1:
        jax.distributed.shutdown()


def lead(act: Callable[[], Any]) -> Any:
    """What `act` gives on process 0 (as JSON), on every process; the others do not call it.

    Raises:
      HostError: on the other processes, where `act` raised ValueError or OSError on process 0, which raises its own.
    """
    if jax.process_count() == 1:
        return act()
    return _told(act, leads())[0]


def every(act: Callable[[], Any]) -> list[Any]:
    """What `act` gives on each process (as JSON), on every process, in order.

    Raises:
      HostError: where another process raised ValueError or OSError; one's own is raised as it is.
    """
    return [act()] if jax.process_count() == 1 else _told(act, True)


def _told(act: Callable[[], Any], acts: bool) -> list[Any]:
    own: Exception | None = None
    said: dict[str, Any] = {}
    try:
        said = {"value": act() if acts else None}
    except (ValueError, OSError) as error:
        own, said = error, {"error": " ".join(str(error).split()) or type(error).__name__}
    heard = [json.loads(text) for text in _exchange(json.dumps(said).encode())]
    if own is not None:
        raise own
    for process, other in enumerate(heard):
        if "error" in other:
            raise HostError(f"process {process}: {other['error']}")
    return [other["value"] for other in heard]


def _exchange(message: bytes) -> list[bytes]:
    """Every process's message, on every process; sizes are rounded up so that few programs are compiled."""
    from jax.experimental import multihost_utils

    sizes = multihost_utils.process_allgather(np.array([len(message)], np.int32)).reshape(-1)
    buffer = np.zeros(1 << max(8, int(sizes.max() - 1).bit_length()), np.uint8)
    buffer[: len(message)] = np.frombuffer(message, np.uint8)
    rows = multihost_utils.process_allgather(buffer).reshape(len(sizes), -1)
    return [row[:size].tobytes() for row, size in zip(rows, sizes, strict=True)]
