"""Programs as processes of their own, with fake devices: a mesh needs more of them than the tests' own process has."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

from tests.conftest import ROOT

QUICK = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"  # each program runs once


def start(arguments: Sequence[str], devices: int, flags: str = QUICK, **environment: str) -> subprocess.Popen[str]:
    """Starts `python -m ...` in the repository's root with that many fake CPU devices."""
    own: Mapping[str, str] = {
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices} {flags}",
        "JAX_PLATFORMS": "cpu",
        **environment,
    }
    command = [sys.executable, "-m", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, env=os.environ | own, stdout=pipe, stderr=pipe, text=True)


def finish(process: subprocess.Popen[str], seconds: float = 600) -> str:
    """What it printed; fails with its stderr if it failed, and ends it if it takes longer."""
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        process.kill()
    assert process.returncode == 0, err
    return out
