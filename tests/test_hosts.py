"""Two processes on loopback: one sharded model, one set of files, errors that reach everybody."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from experiments import hosts
from tests import on_devices, processes


def free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return asked.getsockname()[1]


def test_51g_51h_two_hosts_run_one_study_and_one_writes(mesh_runs: tuple[Path, dict], tmp_path: Path) -> None:
    """Two processes of two devices, heads and chains over both: the chains of one process, file by file."""
    fields = on_devices.config("2x2")
    changed = on_devices.SMALL | {k: fields[k] for k in ("mesh", "model", "drop_below")} | {"replicates": 10}
    program = ["experiments.monitorability", "--config=experiments/configs/ledger.py"]
    program += [f"--config.{k}={v}" for k, v in changed.items()]
    program += [f"--coordinator=127.0.0.1:{free_port()}", "--processes=2"]
    started = [
        processes.start([*program, f"--process={i}", f"--workdir={tmp_path / str(i)}"], devices=2) for i in range(2)
    ]
    first, second = [processes.finish(p) for p in started]
    assert "report:" in first
    assert all(line.startswith("[Gloo]") for line in second.splitlines())  # the transport's own news
    assert not (tmp_path / "1").exists()
    assert json.loads((tmp_path / "0" / "environment.json").read_text())[0]["processes"] == 2
    one = mesh_runs[0] / "1x1" / "chains"
    files = sorted(p.relative_to(one) for p in one.rglob("*.parquet"))
    assert len(files) == 4
    for file in files:
        assert (tmp_path / "0" / "chains" / file).read_bytes() == (one / file).read_bytes()


def test_hosts_agree_and_fail_together() -> None:
    port = str(free_port())
    started = [processes.start(["tests.on_hosts", port, str(i)], devices=1) for i in range(2)]
    first, second = [json.loads(processes.finish(p).splitlines()[-1]) for p in started]
    common = {"lead": True, "every": [[0], [1, 1]]}
    own, others = "ValueError: no luck on {}", "HostError: process {0}: no luck on {0}"
    assert first == common | {"leads": True, "lead fails": own.format(0), "other fails": others.format(1)}
    assert second == common | {"leads": False, "lead fails": others.format(0), "other fails": own.format(1)}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("here:1", None, None), r"need --processes \(JAX_NUM_PROCESSES\), --process \(JAX_PROCESS_ID\) as well"),
        ((None, 2, 0), "need --coordinator"),
        (("here", 2, 0), "must be HOST:PORT"),
        (("here:1", 2, 2), "want 0 <= process < processes"),
        (("here:0", 2, 1), "and a port"),
    ],
)
def test_hosts_that_cannot_meet(given: tuple, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in hosts.NAMES.values():
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(hosts.HostError, match=message):
        hosts.start(*given)


def test_one_process_is_the_plain_call(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in hosts.NAMES.values():
        monkeypatch.delenv(name, raising=False)
    hosts.start(None, None, None)
    assert (hosts.leads(), hosts.lead(lambda: {1}), hosts.every(lambda: {2})) == (True, {1}, [{2}])
    monkeypatch.setenv("JAX_NUM_PROCESSES", "two")
    with pytest.raises(hosts.HostError, match="JAX_COORDINATOR_ADDRESS"):
        hosts.start(None, None, None)
