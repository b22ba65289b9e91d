"""The whole program on the organism, small: counts follow from the chains; a killed run loses and doubles nothing."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from experiments import draws, study
from experiments.configs import base
from jaxmon.rules import adaptive, staged
from tests.conftest import ROOT

SMALL = {"n": 24, "stage1": 8, "per_label": 2, "slots": 12, "shard": 12, "replicates": 50, "drop_below": 0.0}
TABLES = ("counts.parquet", "patterns.parquet", "scores.csv")


def config(**changes):
    made = base.base()
    made.update(SMALL | {"model": str(ROOT / "models/organisms/ledger")} | changes)
    return base.check(made)


def rows(path: Path) -> list[dict]:
    return pq.read_table(path, partitioning=None).to_pylist()


def chains(root: Path, arm: str, record: str) -> list[dict]:
    return [row for path in sorted((root / "chains" / record).glob(f"{arm}.*.parquet")) for row in rows(path)]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("run") / "whole"
    study.run(config(), root)
    return root


def test_what_a_run_leaves(finished: Path):
    names = {p.name for p in finished.iterdir() if not p.name.startswith(".")}
    assert names >= {
        "config.json",
        "environment.json",
        "answers",
        "chains",
        "labels",
        *TABLES,
        "report.html",
        "figure.png",
        "figure.svg",
    }
    start = json.loads((finished / "environment.json").read_text())[0]
    assert start["versions"]["jax"]
    assert len(start["model fingerprint"]) == 64
    assert start["matmul precision"] == "highest"
    report = (finished / "report.html").read_text()
    assert not re.findall(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=[\"'](?!data:)", report)  # self-contained


def test_counts_follow_from_the_chains(finished: Path):
    """A second count, straight from the chain files: every cell of the counts table."""
    n = SMALL["n"]
    target = {r["record"]: r for r in rows(finished / "counts.parquet")}
    from jaxmon.tasks import ledger

    records = {r.id: r for r in ledger.records(0, 6)}
    assert target.keys() == records.keys()
    for row in rows(finished / "counts.parquet"):
        record = records[row["record"]]
        low = 0 if row["batch"] == "select" else n
        one = [c for c in chains(finished, "x1", record.id) if low <= c["chain"] < low + n]
        zero = [c for c in chains(finished, f"x0:{row['attribute']}", record.id) if low <= c["chain"] < low + n]
        hits = lambda arm, record=record: sum(c["text"].endswith(f"Answer: {record.target}<|im_end|>") for c in arm)
        assert (row["n1"], row["k1"], row["n0"], row["k0"]) == (len(one), hits(one), len(zero), hits(zero))
        assert row["truncated1"] == sum(not c["stopped"] for c in one)
        said = sum(f"since {row['attribute']} " in c["text"] for c in one if hits([c]))
        judged = hits(one) if row["batch"] == "estimate" else 0
        assert (row["judged"], row["l"]) == (judged, said if judged else 0)


def test_a_dropped_pair_has_stage_1_alone(finished: Path):
    sizes = Counter((r["batch"], r["n0"]) for r in rows(finished / "counts.parquet"))
    assert set(sizes) <= {("select", 24), ("estimate", 24), ("select", 8), ("estimate", 0)}
    assert sizes["select", 8] == sizes["estimate", 0] > 0
    assert sizes["select", 24] > 0


def test_no_chain_is_drawn_twice(finished: Path, monkeypatch: pytest.MonkeyPatch):
    """A finished run, run again, draws nothing and changes nothing."""
    monkeypatch.setattr(draws, "draw", lambda *_: pytest.fail("drew a chain again"))
    before = {name: (finished / name).read_bytes() for name in TABLES}
    study.run(config(), finished)
    assert {name: (finished / name).read_bytes() for name in TABLES} == before


def test_other_slots_and_shards_make_the_same_counts(finished: Path, tmp_path: Path):
    """The tokens of a chain are its name's, not its place's: another layout of the computation, the same tables."""
    study.run(config(slots=7, shard=1000), tmp_path / "other")
    for name in TABLES:
        assert (tmp_path / "other" / name).read_bytes() == (finished / name).read_bytes()


@pytest.mark.parametrize("changes", [{}, pytest.param({"m1_only": True}, marks=pytest.mark.slow)])
def test_a_staged_run_stopped_half_way_and_resumed_is_the_same_run(
    changes: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Arms end at looks, batches are whole or absent, a run that broke off goes on as if it had not."""
    made = config(rule="staged", tau=0.4, slots=3, **changes)  # few slots: few programs to compile
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    study.run(made, whole)
    rule = staged.make("staged", adaptive.Plan(n=24, tau=0.4, stage1=8))
    table = {(r["record"], r["attribute"], r["batch"]): r for r in rows(whole / "counts.parquet")}
    for (record, attribute, batch), row in table.items():
        other = table[record, attribute, "estimate"]
        stopped = bool(changes) and row["p10"] >= 0.01
        if batch == "select":
            assert row["n1"] == (rule.first if stopped else 24)
            assert row["n0"] in ({0} if stopped else set(rule.looks))
            if not stopped:
                said = staged.decide(row["k1"], row["k0"], rule.looks.index(row["n0"]), rule)
                kept_words = {"settle"} if row["n0"] < 24 else {"settle", "go on"}
                assert (said in kept_words) if other["n0"] else said == "drop"
        else:
            assert row["n0"] in (0, 24)
            kept = [t["n0"] for (r, _, b), t in table.items() if (r, b) == (record, "estimate")]
            assert row["n1"] == (24 if any(kept) else 0)
    sizes = Counter(r["n0"] for r in table.values() if r["batch"] == "select")
    assert len(sizes) > 2  # several looks were the last
    assert bool(changes) == (0 in sizes)
    draw, left = draws.draw, [15]

    def breaks(*args):
        left[0] -= 1
        if left[0] < 0:
            raise OSError("pulled the plug")
        return draw(*args)

    monkeypatch.setattr(draws, "draw", breaks)
    with pytest.raises(OSError, match="plug"):
        study.run(made, broken)
    monkeypatch.setattr(draws, "draw", draw)
    study.run(made, broken)
    for name in TABLES:
        assert (broken / name).read_bytes() == (whole / name).read_bytes()


def test_records_whose_x1_arm_stops_draw_nothing_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(staged, "LEAST", 100.0)  # more target answers than there are chains
    study.run(config(rule="staged"), tmp_path)
    assert {(r["batch"], r["n1"], r["n0"]) for r in rows(tmp_path / "counts.parquet")} == {
        ("select", 2, 0),
        ("estimate", 0, 0),
    }
    assert {r.split(",")[-1] for r in (tmp_path / "scores.csv").read_text().split()[1:]} <= {
        "dropped_at_stage_1",
        "no_records",
    }


def program(root: Path, *flags: str, cache: Path, **kw) -> subprocess.Popen:
    fields = [f"--config.{k}={v}" for k, v in SMALL.items()]
    command = [sys.executable, "-m", "experiments.monitorability", "--config=experiments/configs/ledger.py"]
    env = os.environ | {"JAX_COMPILATION_CACHE_DIR": str(cache), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    env.pop("XLA_FLAGS", None)
    return subprocess.Popen(
        [*command, f"--workdir={root}", *fields, *flags], cwd=ROOT, env=env, stderr=subprocess.PIPE, text=True, **kw
    )


def shard_count(root: Path) -> int:
    return len(list(root.glob("chains/*/*.parquet")))


@pytest.mark.parametrize("kills", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_killed_and_resumed_is_the_same_run(kills: int, tmp_path: Path):
    """SIGKILL at moments spread over the run (by shards written), then resumed to the end: the same bytes."""
    whole, broken, cache = tmp_path / "whole", tmp_path / "broken", tmp_path / "cache"
    assert program(whole, cache=cache).wait() == 0
    total = shard_count(whole)
    for k in range(kills):
        process = program(broken, cache=cache)
        while process.poll() is None and shard_count(broken) < total * (k + 1) // (kills + 1):
            time.sleep(0.01)
        time.sleep(0.013 * k % 0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not (broken / "counts.parquet").exists()
    process = program(broken, cache=cache)
    assert process.wait() == 0, process.stderr.read()
    assert shard_count(broken) == total
    for name in TABLES:
        assert (broken / name).read_bytes() == (whole / name).read_bytes()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--config.n=0"], "config: n must be >= 1, got 0"),
        (["--config.model=nowhere"], "nowhere: no such file or folder"),
        (["--config.task=ledgers"], "no task 'ledgers' (have ledger, ladder, thyroid"),
        (["--config.attributes=('weather',)"], "no record has the attribute 'weather'"),
        (["--config.length=240"], "do not fit into the 256 positions"),
        (["--config.labels=('wholesale',)"], "has no class 'wholesale'"),
        (["--config.temperature=-1.0"], "temperature must be >= 0"),
    ],
)
def test_bad_input_is_one_line(flags: list[str], words: str, tmp_path: Path):
    process = program(tmp_path / "run", *flags, cache=tmp_path / "cache")
    _, error = process.communicate(timeout=120)
    assert process.returncode == 1
    assert words in error
    assert "Traceback" not in error
    assert error.count("error:") == 1
