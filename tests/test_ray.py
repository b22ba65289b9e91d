"""A real cluster of this machine: the files of a run without Ray, after deaths too; refusals in one line."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.conftest import ROOT
from tools import fault_trials

pytest.importorskip("ray", reason="ray absent: pip install -r requirements-ray.txt")


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes]]:
    """A folder with a cache of compiled programs, and the files of a run in one process."""
    folder = tmp_path_factory.mktemp("ray")
    assert fault_trials.start(folder / "whole", folder / "cache").wait() == 0
    return folder, fault_trials.results(folder / "whole")


def finished(process: subprocess.Popen[str]) -> tuple[int, str]:
    return process.wait(120), process.communicate()[1]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_any_number_of_workers_makes_the_same_files(workers: int, reference, tmp_path: Path):
    folder, expected = reference
    code, error = finished(fault_trials.start(tmp_path, folder / "cache", *fault_trials.ray(workers)))
    assert code == 0, error
    assert f"workers {workers}, retries 0" in error
    assert fault_trials.results(tmp_path) == expected


@pytest.mark.parametrize("victim", ["worker", *(pytest.param(v, marks=pytest.mark.slow) for v in ("driver", "head"))])
def test_a_death_loses_nothing_and_doubles_nothing(victim: str, reference, tmp_path: Path):
    folder, expected = reference
    found = fault_trials.trial(tmp_path, folder / "cache", victim, 20, random.Random(0), ())
    assert fault_trials.results(tmp_path) == expected
    assert found.left == 0
    assert found.resumed == ("no" if victim != "driver" else "local")


@pytest.mark.slow
def test_a_second_driver_is_refused_and_sigterm_is_obeyed_and_resumed(reference, tmp_path: Path):
    """Two drivers at once; then the first is asked to stop: its workers end with it, nothing is written after it."""
    folder, expected = reference
    first = fault_trials.start(tmp_path, folder / "cache", *fault_trials.ray(1))
    while first.poll() is None and not fault_trials.units(tmp_path):
        time.sleep(0.02)
    workers = fault_trials.family(psutil.Process(first.pid), "ray::Actor")
    second = fault_trials.start(tmp_path, folder / "cache")
    first.send_signal(signal.SIGSTOP)  # time for the second
    code, error = finished(second)
    first.send_signal(signal.SIGCONT)
    (said,) = error.splitlines()
    assert code == 1
    assert said.startswith(f"error: {tmp_path} is in use by another process")
    first.send_signal(signal.SIGTERM)
    code, error = finished(first)
    assert code == 128 + signal.SIGTERM
    assert error.splitlines()[-1].startswith("stopped by SIGTERM: ")
    assert not psutil.wait_procs(workers, timeout=20)[1]
    there = fault_trials.units(tmp_path)
    assert 0 < there < sum(name.startswith("chains") for name in expected)
    code, error = finished(fault_trials.start(tmp_path, folder / "cache"))
    assert code == 0, error
    assert fault_trials.results(tmp_path) == expected


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--workers=2"], "error: --ray_address, --workers and --worker_hosts go with --runner=ray"),
        (
            ["--runner=ray", "--ray_address=127.0.0.1:1"],
            "error: no Ray cluster at 127.0.0.1:1 (HOST:PORT of its head): ",
        ),
        (
            ["--runner=ray", "--coordinator=a:1"],
            "error: --coordinator, --processes and --process go with --runner=local",
        ),
    ],
)
def test_flags_that_cannot_be_used(flags: list[str], words: str, tmp_path: Path):
    code, error = finished(fault_trials.start(tmp_path, tmp_path / "cache", *flags))
    assert code == 1
    assert len(error.splitlines()) == 1
    assert error.startswith(words)


def test_without_ray_the_flag_says_how_to_install_it(tmp_path: Path):
    program = (
        "import sys; sys.modules['ray'] = None; sys.argv[0] = 'x'\n"
        "import runpy; runpy.run_module('experiments.monitorability', run_name='__main__', alter_sys=True)"
    )
    flags = ["--config=experiments/configs/ledger.py", f"--workdir={tmp_path}", "--runner=ray"]
    process = subprocess.run([sys.executable, "-c", program, *flags], cwd=ROOT, capture_output=True, text=True)
    assert process.returncode == 1
    assert process.stderr.strip() == "error: --runner=ray needs the package ray: pip install -r requirements-ray.txt"


@pytest.mark.slow
def test_a_worker_of_two_processes_is_one_worker(reference, tmp_path: Path):
    """A mesh over two processes that Ray has started, told the same tasks: the files of one process."""
    folder, expected = reference
    flags = ["--runner=ray", "--workers=1", "--worker_hosts=2", "--config.mesh=2x1"]
    code, error = finished(fault_trials.start(tmp_path, folder / "cache", *flags))
    assert code == 0, error
    assert "workers 1, retries 0" in error
    assert fault_trials.results(tmp_path) == expected
