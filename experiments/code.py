"""Which code a process runs: a fingerprint of the package's own sources that decide tokens and how they are parsed.

Workers of one run have to agree in it; a comment counts as code, so that nobody has to judge what is harmless.
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

SOURCES = (
    "models",
    "jaxmon/arms.py",
    "jaxmon/prompts.py",
    "jaxmon/records.py",
    "jaxmon/rules",
    "jaxmon/sampling",
    "jaxmon/tasks",
    "experiments/draws.py",
)


ROOT = Path(__file__).resolve().parent.parent


@functools.cache
def fingerprint(root: Path = ROOT) -> str:
    """SHA-256 over the names and bytes of the Python files of SOURCES below `root`, 64 hex digits."""
    found = hashlib.sha256()
    for part in SOURCES:
        files = [root / part] if part.endswith(".py") else sorted((root / part).rglob("*.py"))
        for file in files:
            own = hashlib.sha256(file.read_bytes()).hexdigest()
            found.update(f"{file.relative_to(root).as_posix()} {own}\n".encode())
    return found.hexdigest()
