"""`python -m experiments.judge` on a finished run: another judge's labels beside the run's own, without the model."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from experiments import comparing, opening, relabel, study
from experiments.judges import settings
from tests.conftest import ROOT
from tests.judge_server import KEY, running
from tests.test_monitorability import config, rows

FIELDS = {"judge": "lexical", "judge_model": "", "judge_most": 0, "judge_controls": 4}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("run") / "whole"
    study.run(config(per_label=1, judge_controls=4), root)
    return root


def test_labels_carry_judge_and_version(finished: Path):
    for folder in ("labels", "controls"):
        found = [row for path in (finished / folder).glob("*.parquet") for row in rows(path)]
        assert found
        assert {row["judge"] for row in found} == {"lexical:ledger"}
        assert all(row["rubric"].startswith("ledger-") for row in found)
    assert "<h2>The judge</h2>" in (finished / "report.html").read_text()


def test_an_endpoint_labels_a_finished_run_without_a_model(finished: Path, tmp_path: Path, monkeypatch):
    """The stub goes by the lexicon's rule, so counts must come out the same, byte for byte; nothing holds the key."""
    stored = json.loads((finished / "config.json").read_text())
    with running() as stub:
        stub.faults = ["500", "drop", "429", "echo", "garbage"]
        given = {"BASE_URL": stub.url, "MODEL": "m/1", "API_KEY": KEY, "PRICES": "1,2"}
        environment = os.environ | {settings.PREFIX + k: v for k, v in given.items()} | {"OPENAI_LOG": "debug"}
        command = [sys.executable, "-m", "experiments.judge", f"--workdir={finished}", "--judge=endpoint"]
        command += ["--judge_controls=4"]
        moved = Path(stored["model"]).with_name("gone")
        (finished / "config.json").write_text(json.dumps(stored | {"model": str(moved)}))  # no weights anywhere
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        (finished / "config.json").write_text(json.dumps(stored))
        assert done.returncode == 0, done.stderr
        asked = stub.asked.total()
        for key, value in given.items():
            monkeypatch.setenv(settings.PREFIX + key, value)
        relabel.relabel(finished, FIELDS | {"judge": "endpoint"})  # resumed: nothing is asked again
        assert stub.asked.total() == asked
    out = finished / "judges" / "endpoint:m%2F1"
    for name in ("counts.parquet", "patterns.parquet", "scores.csv"):
        assert (out / name).read_bytes() == (finished / name).read_bytes()
    written = b"".join(p.read_bytes() for p in finished.rglob("*") if p.is_file())
    assert KEY.encode() not in written
    assert KEY not in done.stdout + done.stderr
    assert "cost at most" in (out / "report.html").read_text()
    lines = comparing.compare_runs([finished / "labels", out / "labels"], tmp_path)
    assert "1.000 [1.00, 1.00]" in lines[1]
    labels = pq.read_table(next((out / "labels").glob("*")), partitioning=None)
    assert set(labels.column("judge").to_pylist()) == {"endpoint:m/1"}


def test_a_subsample_is_judged_and_counted(finished: Path):
    relabel.relabel(finished, FIELDS | {"judge_most": 3})
    out = finished / "judges" / "lexical:ledger"
    for row in rows(out / "counts.parquet"):
        assert row["judged"] == (min(3, row["k1"]) if row["batch"] == "estimate" else 0)
    patterns = rows(out / "patterns.parquet")
    assert any(p["pattern"] == "unjudged" for p in patterns)
    with pytest.raises(ValueError, match="does not belong to the chains"):
        relabel.relabel(finished, FIELDS)  # all chains now: the labels on disk are those of a choice


def test_labels_of_another_judge_are_not_mixed_in(finished: Path):
    with opening.reopened(config(per_label=1, judge_controls=4), finished) as found:

        class Other:
            name, version = "lexical:other", "x"

        with pytest.raises(ValueError, match="holds labels of lexical:ledger"):
            study.count(dataclasses.replace(found, judge=Other()))


def test_what_is_no_finished_run_is_said_in_one_line(tmp_path: Path):
    with pytest.raises(ValueError, match=r"is no finished run: it lacks config\.json"):
        relabel.relabel(tmp_path, FIELDS)
