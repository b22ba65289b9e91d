"""Strictness for every test: no silent dtype or rank promotion, exact float32 products, several fake devices."""

import json
import os
from pathlib import Path

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=4")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import pytest
from hypothesis import HealthCheck, settings

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_default_matmul_precision", "highest")

# The same examples every time, and a busy machine is no failure.
settings.register_profile("house", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of real data sets ($JAXMON_DATA, or ../shared/data beside the repository); skips where absent."""
    root = Path(os.environ.get("JAXMON_DATA", ROOT.parent / "shared" / "data"))
    if not root.is_dir():
        pytest.skip("real data absent: set JAXMON_DATA to its folder")
    return root


@pytest.fixture(scope="session")
def mesh_runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    """One small study on meshes of 1, 2, 4 and 8 devices (tests/on_devices.py): a run directory each, and its line."""
    from tests import processes

    folder = tmp_path_factory.mktemp("meshes")
    out = processes.finish(processes.start(["tests.on_devices", str(folder)], devices=8))
    return folder, json.loads(out.splitlines()[-1])
