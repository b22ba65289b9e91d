"""Run as a process of its own: peak host memory of loading a checkpoint, beside what then lies on the devices.

python -m tests.load_memory FOLDER DTYPE MESH prints bytes: {"peak": high-water mark of resident memory while loading,
over what was resident before; "placed": bytes of all parts of all parameters on the (fake CPU) devices of the mesh}.
Resident memory counts the mapped pages of the file as well.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import jax
import jax.numpy as jnp

from models import loading, mesh


def resident(field: str) -> int:
    """VmRSS or VmHWM (its high-water mark), bytes; getrusage would count what the parent held when it forked."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[field].split()[0]) * 1024


def main(folder: str, dtype: str, text: str) -> None:
    where = mesh.make(text)
    jnp.zeros(3, jnp.bfloat16).astype(jnp.float32).block_until_ready()  # the backend is up before the count begins
    before = resident("VmRSS")
    params = loading.load(folder, dtype, where).params
    jax.block_until_ready(params)
    peak = resident("VmHWM")
    placed = sum(part.data.nbytes for a in jax.tree.leaves(params) for part in a.addressable_shards)
    print(json.dumps({"peak": peak - before, "placed": placed}))


if __name__ == "__main__":
    main(*sys.argv[1:])
