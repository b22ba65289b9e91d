"""Run as one of two processes: what hosts agree on, printed as one JSON line.

python -m tests.on_hosts PORT PROCESS
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import jax

from experiments import hosts


def said(act: Callable[[], Any]) -> str:
    try:
        act()
    except ValueError as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def fail_on(process: int) -> int:
    if jax.process_index() == process:
        raise ValueError(f"no luck on {process}")
    return 7


def main(port: str, process: str) -> None:
    hosts.start(f"127.0.0.1:{port}", 2, int(process))
    long = "x" * 3000
    found = {
        "lead": hosts.lead(lambda: {"process": jax.process_index(), "long": long}) == {"process": 0, "long": long},
        "every": hosts.every(lambda: [jax.process_index()] * (1 + jax.process_index())),
        "leads": hosts.leads(),
        "lead fails": said(lambda: hosts.lead(lambda: fail_on(0))),
        "other fails": said(lambda: hosts.every(lambda: fail_on(1))),
    }
    hosts.part()
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
