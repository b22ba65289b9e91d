"""The scheduler, whoever works: the same files in any order, bounded, stopped between units; judging beside it."""

import os
import random
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from experiments import opening, study
from experiments.runners import identity, ray_cluster, schedule
from experiments.runners.beside import beside
from experiments.runners.local import Local
from experiments.runners.stopping import on_sigterm
from experiments.runners.worker import Worker
from jaxmon.arms import X1, x0
from jaxmon.rules import staged
from jaxmon.rules.adaptive import Plan
from jaxmon.rules.tasks import Cuts, Done, Task, Unit, work
from tests import judge_server
from tests.fake_runner import Shuffling
from tests.test_monitorability import TABLES, config

NAMES = ("fee", "tip", "levy")
CUTS = Cuts(staged.make("staged", Plan(60, 0.2, 0)), 16, 24)
FOLDERS = ("chains", "answers", "labels", "controls")


def hit(record: str, arm: str, chain: int) -> bool:
    """A chain's answer by its name; attributes differ, records differ."""
    p = random.Random(f"{record} {arm}").choice((0.1, 0.5, 0.9))
    return random.Random(f"{record} {arm} {chain}").random() < p


def pretend(task: Task) -> Done:
    hits = tuple(sum(hit(task.record, u.arm, c) for c in range(u.first, u.stop)) for u in task.units)
    return Done(task, hits, sum(u.stop - u.first for u in task.units), None if task.units else 0.005)


def all_units(runner, records: int) -> tuple[Counter, list[str], int]:
    """Every unit that was done, the records in the order of their ends, and the most that were open at once."""
    seen, ended, most, spared = Counter(), [], 0, [0]
    opened = [0]

    def works():
        for i in range(records):
            opened[0] += 1
            yield f"r{i}", work(CUTS, f"r{i}", NAMES, lambda n: spared.__setitem__(0, spared[0] + n))

    def heard(done: Done) -> None:
        nonlocal most
        seen.update((done.task.record, unit) for unit in done.task.units or [None])
        most = max(most, opened[0] - len(ended))

    assert schedule.schedule(works(), runner, heard, ended.append)
    drawn = sum(u.stop - u.first for _, u in seen if u)
    assert drawn + spared[0] == records * 2 * 60 * 4
    return seen, ended, most


def test_any_number_of_workers_in_any_order_does_the_same_units():
    one, ended, most = all_units(Local(pretend), 30)
    assert set(one.values()) == {1}
    assert ended == [f"r{i}" for i in range(30)]
    assert most <= 2
    for seed, workers in enumerate((1, 2, 3, 7, 50)):
        runner = Shuffling(pretend, workers, seed)
        seen, ended, most = all_units(runner, 30)
        assert seen == one
        assert sorted(ended) == sorted(f"r{i}" for i in range(30))
        assert most <= workers + 1
        assert runner.most == workers  # nobody idles while there is work


def test_a_tasks_units_fill_the_slots_and_are_cut_where_arms_may_stop():
    tasks = CUTS.tasks("r", {X1: range(0, 60), x0("fee"): range(0, 6)})
    units = [u for task in tasks for u in task.units]
    assert sorted(u for u in units if u.arm == X1) == [Unit(X1, a, b) for a, b in _cuts(0, 60)]
    assert all(len({u.stop - u.first for u in task.units}) == 1 for task in tasks)
    assert all(sum(u.stop - u.first for u in task.units) <= 24 for task in tasks)
    assert len(CUTS.tasks("r", {name: range(0, 2) for name in "abcdefghijkl"})) == 2  # 8 of 2 chains at once


def _cuts(first, stop):
    return [(u.first, u.stop) for u in CUTS.units("", range(first, stop))]


def test_a_record_whose_p10_rules_it_out_waits_for_its_answers():
    cuts = Cuts(CUTS.rule, 16, 24, 0.01)
    for p10, units in ((0.005, True), (0.01, False)):
        going = work(cuts, "r", NAMES)
        assert next(going) == [Task("r")]
        first = going.send([Done(Task("r"), p10=p10)])
        arms = {X1, *map(x0, NAMES)} if units else {X1}  # ruled out: no look at the others
        assert {u.arm for task in first for u in task.units} == arms
        done = [Done(task, tuple(u.stop - u.first for u in task.units)) for task in first]
        if units:
            assert going.send(done)
        else:
            with pytest.raises(StopIteration):
                going.send(done)


def test_stopping_finishes_what_is_in_hand_and_starts_nothing():
    done: list[Task] = []

    def do(task):
        done.append(task)
        return pretend(task)

    runner = Shuffling(do, 5, 0)
    works = ((f"r{i}", work(CUTS, f"r{i}", NAMES)) for i in range(10))
    assert not schedule.schedule(works, runner, stopping=lambda: len(done) > 20)
    assert runner.drained
    assert runner.busy() == 0
    assert len(set(done)) < 20 + 5 + 5


def test_sigterm_is_a_wish_while_a_run_is_on():
    before = signal.getsignal(signal.SIGTERM)
    with on_sigterm() as stopping:
        assert not stopping()
        os.kill(os.getpid(), signal.SIGTERM)
        assert stopping()
    assert signal.getsignal(signal.SIGTERM) is before


def files(root: Path) -> dict[str, bytes]:
    found = [root / name for name in TABLES] + [p for f in FOLDERS for p in (root / f).rglob("*.parquet")]
    return {str(p.relative_to(root)): p.read_bytes() for p in found}


def test_a_shuffled_run_is_the_same_run(tmp_path: Path):
    """The real model, tasks in a shuffled order and some of them twice: all files of the local run, byte for byte."""
    made = config(n=8, stage1=4, per_label=1, slots=8, shard=4, replicates=2, labels=("retail",))
    study.run(made, tmp_path / "local")

    class Started:
        def __init__(self, opened, terms):
            self.runner = Shuffling(Worker(opened, opening.prepare(opened, terms)).do, 5, 3)

        def __enter__(self):
            return self.runner

        def __exit__(self, *_):
            pass

    study.run(made, tmp_path / "shuffled", started=Started)
    assert files(tmp_path / "shuffled") == files(tmp_path / "local")


def test_judging_goes_on_beside_and_an_error_is_said_at_once_and_raised_after(tmp_path: Path, monkeypatch, capsys):
    """A server that fails: sampling is finished, the line is that of a run without it, resuming makes the labels."""
    made = config(n=4, stage1=2, per_label=1, slots=8, shard=4, replicates=2, judge="endpoint", labels=("retail",))
    with judge_server.running() as server:
        for name, value in (("BASE_URL", server.url), ("MODEL", "m"), ("API_KEY", ""), ("RETRIES", "0")):
            monkeypatch.setenv(f"JAXMON_JUDGE_{name}", value)
        server.faults = ["401"] * 1000
        with pytest.raises(ValueError, match=r"^judge endpoint:m, record .* HTTP 401"):
            study.run(made, tmp_path)
        assert "judge: ServerError: judge endpoint:m, record " in capsys.readouterr().err
        shards = sorted(tmp_path.rglob("chains/*/*.parquet"))
        server.faults = []
        study.run(made, tmp_path)
        assert sorted(tmp_path.rglob("chains/*/*.parquet")) == shards
        assert (tmp_path / "scores.csv").exists()


def test_beside_does_all_in_order_waits_and_gives_up_with_the_run():
    seen: list[int] = []
    with beside(seen.append, pytest.fail) as put:
        for i in range(50):
            put(i)
    assert seen == list(range(50))
    hold, seen = threading.Event(), []
    start = time.monotonic()

    def fails() -> None:
        with beside(lambda i: (hold.wait(20), seen.append(i)), pytest.fail) as put:
            put(1)
            put(2)
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert time.monotonic() - start < 10  # nobody waited for the judge
    hold.set()
    said: list[str] = []
    with beside(lambda i: 1 // i, said.append) as put:
        put(0)
        put(1)
    assert said == ["ZeroDivisionError: integer division or modulo by zero"]


def test_a_worker_of_other_code_records_model_or_device_is_refused():
    run = identity.Identity("c", "r", "", "")
    good = identity.Identity("c", "r", "m", "gpu H100")
    assert identity.refusal(run, good) == identity.refusal(good, good) == ""
    assert identity.refusal(run, good._replace(code="d")) == "other code or packages (d, the run's c)"
    assert identity.refusal(good, good._replace(records="s", model="n")) == (
        "other records (s, the run's r); other model files (n, the run's m)"
    )
    assert (
        identity.refusal(good, good._replace(device="gpu A100"))
        == "other kind of device (gpu A100, the run's gpu H100)"
    )
    assert identity.code() == identity.code()


@pytest.mark.parametrize(
    ("devices", "nodes", "asked", "count"),
    [
        (8, [{"CPU": 96, "GPU": 8}] * 3 + [{"CPU": 8}], {"num_gpus": 8, "num_cpus": 1}, 3),
        (2, [{"CPU": 96, "GPU": 8}, {"CPU": 9, "GPU": 3}], {"num_gpus": 2, "num_cpus": 1}, 5),
        (4, [{"CPU": 240, "TPU": 4}] * 4, {"resources": {"TPU": 4}, "num_cpus": 1}, 4),
        (1, [{"CPU": 64}] * 2, {"num_cpus": 1}, 2),
    ],
)
def test_what_a_worker_asks_of_the_cluster(devices, nodes, asked, count):
    assert ray_cluster.needs(devices, nodes) == (asked, count)


def test_a_mesh_that_no_node_holds():
    with pytest.raises(ray_cluster.RunnerError, match=r"a worker needs 16 GPUs .*, and no node has more than 8"):
        ray_cluster.needs(16, [{"CPU": 96, "GPU": 8}] * 3)
