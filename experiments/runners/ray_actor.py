"""A process of a worker of a Ray cluster: loads the model once, then does one task after another; writes to the run.

A worker is one process, or several on several hosts that hold one mesh together (hosts.py): these are told the same
tasks in the same order, and the first one writes and answers.

What goes through Ray are tasks (ids) and counts; chains do not. Nothing is printed: Ray keeps what workers print.

Knows: a config, a run directory. Does not know: Ray, the run's other workers.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple

from experiments import hosts
from experiments.cli import line, out_of_memory
from experiments.places import place
from experiments.runners import identity
from jaxmon.rules.tasks import Done, Task

OUTSIDE = "192.0.2.1"  # an address of nobody (RFC 5737)


class Hello(NamedTuple):
    """What a worker says of itself when it is ready: who it is, and its entry for environment.json."""

    identity: identity.Identity
    entry: Mapping[str, Any]


class Fault(NamedTuple):
    """Why a task cannot be done, by anybody: the kind of the error and its line."""

    kind: str
    text: str

    def error(self) -> Exception:
        return {"OSError": OSError, "MemoryError": MemoryError}.get(self.kind, ValueError)(self.text)


class Actor:
    def __init__(self, config: Mapping[str, Any], root: str, folder: str):
        """Does nothing yet. `folder`: where relative paths of the config start from."""
        self._config, self._root, self._folder = {**config, "judge": "lexical"}, place(root), folder
        self._held = ExitStack()

    def place(self) -> str:
        """HOST:PORT on which the worker's processes meet, this one being the first."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
            out.connect((OUTSIDE, 1))  # sends nothing: says which of our addresses others would see
            host = out.getsockname()[0]
        with socket.socket() as asked:
            asked.bind((host, 0))
            return f"{host}:{asked.getsockname()[1]}"

    def hello(self, place: str | None, processes: int, process: int) -> Hello | Fault:
        """Meets the worker's other processes, reads the records and loads the model."""
        try:
            return self._hello(place, processes, process)
        except Exception as error:
            return _fault(error)

    def _hello(self, place: str | None, processes: int, process: int) -> Hello:
        os.chdir(self._folder)
        if processes > 1:
            hosts.start(place, processes, process)
        import jax

        from experiments import opening
        from experiments.runners.worker import Worker

        opened = self._held.enter_context(opening.reopened(self._config, self._root))
        drawer = opening.drawer_of_every_host(opened)
        self._do = Worker(opened, drawer).do
        who = identity.Identity(
            identity.code(),
            identity.records(opened.task.records, opened.studied),
            drawer.model.fingerprint,
            f"{jax.devices()[0].platform} {jax.devices()[0].device_kind}",
        )
        return Hello(who, opening.entry(opened, drawer))

    def do(self, task: Task) -> Done | Fault:
        try:
            return self._do(task)
        except Exception as error:
            return _fault(error)


def _fault(error: Exception) -> Fault:
    """What ends a run in one line; a bug is raised again."""
    if isinstance(error, MemoryError) or out_of_memory(error):
        return Fault("MemoryError", line(error))
    if isinstance(error, OSError | ValueError):
        return Fault("OSError" if isinstance(error, OSError) else "ValueError", line(error))
    raise error
