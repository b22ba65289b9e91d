"""`python -m experiments.score`: from a counts file to five files, and every bad input as one line with exit code 1."""

import csv
import errno
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from absl import flags
from absl.testing import flagsaver

from experiments import cli, rundir, score, scoring
from jaxmon.counting import counts, patterns
from jaxmon.estimation.cells import Settings
from tests import made

ROOT = Path(__file__).resolve().parent.parent
FILES = ["bounds.csv", "figure.png", "figure.svg", "report.html", "scores.csv"]


def run(*given, **environment):
    return subprocess.run(
        [sys.executable, "-m", "experiments.score", *given],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("study")
    law = [np.array([0.3, 0.4, 0.25, 0.05]), np.array([0.5, 0.5, 0.0, 0.0])]
    rng = np.random.default_rng(0)
    rows, pattern_rows = made.simulate(rng, np.full(8, 0.7), np.full((8, 2), 0.3), law, ["c"] * 8, n=200)
    counts.write_counts(path / "counts.parquet", made.table(rows))
    counts.write_counts(path / "counts.csv", made.table(rows))
    patterns.write_patterns(path / "patterns.parquet", patterns.from_rows(pattern_rows))
    (path / "truth.csv").write_text("attribute,label,score,value\na0,all,M0,0.46\na1,all,M0,0\n")
    counts.write_table(path / "bad.csv", made.table([made.row(), made.row(batch="estimate", k1=1001)]))
    return path


def test_a_counts_file_alone_is_enough(folder, tmp_path):
    done = run(f"--counts={folder}/counts.csv", f"--workdir={tmp_path}/new/out", "--replicates=100")
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in (tmp_path / "new/out").iterdir()) == FILES
    rows = list(csv.DictReader((tmp_path / "new/out/scores.csv").open()))
    assert len(rows) == 3 * 2 * 5
    m0 = next(r for r in rows if (r["attribute"], r["label"], r["score"]) == ("a1", "all", "M0"))
    assert float(m0["value"]) == 0 < float(m0["high"])
    assert re.search(r"^a0 +M0 +0\.\d{3} \[", done.stdout, re.MULTILINE)
    assert "No label patterns were given" in (tmp_path / "new/out/report.html").read_text()


def test_same_command_gives_the_same_bytes_and_all_options_work(folder, tmp_path):
    made_by = []
    for name in ("one", "two"):
        read = counts.read_counts(folder / "counts.parquet")
        found = patterns.read_patterns(folder / "patterns.parquet", read)
        truth = scoring.read_truth(str(folder / "truth.csv"))
        settings = Settings(replicates=100, levels="records", seed=3)
        scoring.score(read, found, tmp_path / name, settings, truth=truth, outcomes={"answered": 3200})
        made_by.append([(tmp_path / name / f).read_bytes() for f in FILES])
    assert made_by[0] == made_by[1]
    page = (tmp_path / "one/report.html").read_text()
    assert "Only records were resampled" in page
    assert "of 2 intervals hold the true value" in page


BAD = [
    ([], "--counts and --workdir are needed"),
    (["--counts={d}/absent.parquet", "--workdir={t}"], "absent.parquet: no such file"),
    (["--counts={d}/bad.csv", "--workdir={t}"], "row 2 (record r0, attribute a, batch estimate), column k1: 1001"),
    (["--counts={d}/truth.csv", "--workdir={t}"], "missing column record"),
    (["--counts={d}/patterns.parquet", "--workdir={t}"], "missing column attribute"),
    (["--counts={d}/counts.csv", "--workdir={t}", "--tau=1.5"], "setting tau = 1.5"),
    (["--counts={d}/counts.csv", "--workdir={t}", "--replicates=1"], "setting replicates = 1"),
    (["--counts={d}/counts.csv", "--patterns={d}/counts.csv", "--workdir={t}"], "missing column pattern"),
    (["--counts={d}/counts.csv", "--truth={d}/counts.csv", "--workdir={t}"], "missing column score"),
    (["--counts={d}/counts.csv", "--workdir={d}/counts.csv/x"], "Not a directory"),
    (["--counts={d}/counts.csv", "--workdir={t}", "stray"], "unexpected argument 'stray'"),
    (["--counts={d}/counts.csv", "--workdir={t}", "--placebos=memo"], "no record has the placebo 'memo' (they have a0"),
]


@pytest.mark.parametrize(("given", "words"), BAD)
def test_bad_input_is_one_line_and_exit_code_1(folder, tmp_path, capsys, given, words):
    with flagsaver.flagsaver():
        argv = flags.FLAGS(["score", *(f.format(d=folder, t=tmp_path / "out") for f in given)])
        with pytest.raises(SystemExit) as caught:
            cli.guarded(score.main)(argv)
    assert caught.value.code == 1
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("error: ")
    assert words in lines[0]
    assert not (tmp_path / "out").exists()


def test_the_command_itself_ends_in_one_line(folder, tmp_path):
    done = run(f"--counts={folder}/bad.csv", f"--workdir={tmp_path}/out")
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("a,c,M2,0.5", "column score: 'M2'"),
        ("a,c,M0,much", "column value: 'much'"),
        ("a,c,M0,nan", "column value: 'nan'"),
        ("a,c,M0", "column value: None"),
    ],
)
def test_bad_truth_is_named(tmp_path, line, words):
    path = tmp_path / "t.csv"
    path.write_text(f"attribute,label,score,value\n{line}\n")
    with pytest.raises(ValueError, match="row 1") as caught:
        scoring.read_truth(str(path))
    assert words in str(caught.value)


def test_a_full_disk_is_one_line_and_leaves_the_old_files(folder, tmp_path, monkeypatch, capsys):
    read = counts.read_counts(folder / "counts.parquet")
    settings = Settings(replicates=100, levels="records")
    scoring.score(read, None, tmp_path, settings)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}

    def full(path, text):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(rundir, "write_text", full)
    with pytest.raises(SystemExit) as caught:
        cli.guarded(lambda argv: scoring.score(read, None, tmp_path, settings) and None)([])
    assert caught.value.code == 1
    assert "scores.csv: No space left on device" in capsys.readouterr().err
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def imported(modules, *unwanted):
    """Which of the unwanted packages a fresh interpreter has after importing the modules."""
    code = f"import sys, {modules}; print(*sorted({{m.split('.')[0] for m in sys.modules}} & {{*{unwanted!r}}}))"
    probe = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return probe.stdout.split()


def test_help_is_quick_and_imports_no_model():
    start = time.monotonic()
    done = run("--help")
    seconds = time.monotonic() - start
    assert "--counts" in done.stdout
    assert seconds < 10  # 0.3 s on an idle machine; importing jax alone takes longer on a slow one
    assert imported("experiments.score", "jax", "flax", "scipy", "models", "pyarrow") == []


def test_scoring_imports_no_model_code():
    assert (
        imported(
            "experiments.scoring, jaxmon.estimation.table, jaxmon.reports.report", "models", "flax", "transformers"
        )
        == []
    )


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (ValueError("two\nlines"), 1, "error: two lines"),
        (FileNotFoundError("x: no such file"), 1, "error: x: no such file"),
        (PermissionError(errno.EACCES, "Permission denied", "/x/y"), 1, "error: /x/y: Permission denied"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_guarded_mains_end_in_one_line(error, code, words, capsys):
    def main(argv):
        raise error

    with pytest.raises(SystemExit) as caught:
        cli.guarded(main)([])
    assert caught.value.code == code
    assert capsys.readouterr().err.strip() == words


def test_guarded_mains_keep_the_traceback_of_a_bug():
    def main(argv):
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        cli.guarded(main)([])
