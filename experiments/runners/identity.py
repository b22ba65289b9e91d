"""What must be the same on all workers of a run, so that it does not matter who draws a chain.

Knows: sources, versions, records, a model. Does not know: workers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from importlib import metadata
from typing import NamedTuple

from experiments import code as sources
from experiments.rundir import PACKAGES
from jaxmon.records import Record


class Identity(NamedTuple):
    """Digests of the code with the versions below it, of the records, of the model's files; the kind of device."""

    code: str
    records: str
    model: str = ""
    device: str = ""


WORDS = {"code": "code or packages", "records": "records", "model": "model files", "device": "kind of device"}


def refusal(run: Identity, worker: Identity) -> str:
    """Why a worker cannot take part; "" where it can. What the run does not know yet ("") may be anything."""
    other = [name for name, want, got in zip(Identity._fields, run, worker, strict=True) if want and want != got]
    return "; ".join(f"other {WORDS[k]} ({getattr(worker, k)[:12]}, the run's {getattr(run, k)[:12]})" for k in other)


def code() -> str:
    """sha256 over the sources that decide tokens and outcomes, and the versions of the packages below them."""
    versions = [f"{name} {metadata.version(name)}" for name in PACKAGES]
    return hashlib.sha256("\0".join([sources.fingerprint(), *versions]).encode()).hexdigest()


def records(found: Iterable[Record], studied: Mapping[str, list[str]]) -> str:
    """sha256 over the records and their attributes under study, in order."""
    return hashlib.sha256(repr([(record, studied[record.id]) for record in found]).encode()).hexdigest()
