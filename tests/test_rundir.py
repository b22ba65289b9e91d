"""The run directory: one config, one code, one writer; other ones are named, never mixed in."""

import json
from pathlib import Path

import pytest
from ml_collections.config_dict import ConfigDict

from experiments import rundir
from experiments.configs import base, ledger, thyroid_qwen25

CONFIG = {"n": 10, "labels": ["G"], "seed": 0}
START = {"model fingerprint": "a" * 64, "code fingerprint": "c" * 64, "store version": "1"}


def test_a_new_directory_is_made_and_the_same_config_reopens_it(tmp_path: Path):
    root = tmp_path / "a" / "run"
    for _ in range(2):
        rundir.open_run(root, CONFIG | {"labels": ("G",)}).close()
    assert json.loads((root / "config.json").read_text()) == CONFIG


def test_another_config_is_refused_field_by_field(tmp_path: Path):
    rundir.open_run(tmp_path, CONFIG).close()
    (tmp_path / "answers").mkdir()
    with pytest.raises(rundir.RunError, match=r"another config: n is 10 there, 20 here; seed is 0 there, 1 here"):
        rundir.open_run(tmp_path, CONFIG | {"n": 20, "seed": 1})


def test_a_start_that_computed_nothing_binds_nothing(tmp_path: Path):
    """A first start with a typo in it can be mended in the same directory; so can one killed while it began."""
    rundir.open_run(tmp_path, CONFIG).close()
    rundir.log_environment(tmp_path, START)
    rundir.open_run(tmp_path, CONFIG | {"n": 20}).close()
    assert json.loads((tmp_path / "config.json").read_text())["n"] == 20
    assert not (tmp_path / "environment.json").exists()
    (tmp_path / "config.json").rename(tmp_path / ".config.json.1.tmp")
    rundir.open_run(tmp_path, CONFIG).close()
    assert {p.name for p in tmp_path.iterdir()} == {"config.json", ".lock"}


def test_a_foreign_directory_is_left_alone(tmp_path: Path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(rundir.RunError, match="not a run directory"):
        rundir.open_run(tmp_path, CONFIG)
    assert not (tmp_path / "config.json").exists()


def test_an_unreadable_config_is_named(tmp_path: Path):
    (tmp_path / "answers").mkdir()
    for text, words in (('{"n": 1', "is not readable"), ("[]", "holds list, not dict")):
        (tmp_path / "config.json").write_text(text)
        with pytest.raises(rundir.RunError, match=rf"config\.json {words}"):
            rundir.open_run(tmp_path, CONFIG)
    (tmp_path / "environment.json").write_text("[")
    with pytest.raises(rundir.RunError, match=r"environment\.json is not readable"):
        rundir.log_environment(tmp_path, START)


def test_two_drivers_cannot_hold_one_run(tmp_path: Path):
    with rundir.open_run(tmp_path, CONFIG), pytest.raises(rundir.RunError, match="in use by another process"):
        rundir.open_run(tmp_path, CONFIG)
    rundir.open_run(tmp_path, CONFIG).close()


def test_files_of_a_killed_process_are_cleared(tmp_path: Path):
    rundir.open_run(tmp_path, CONFIG).close()
    stale = tmp_path / "chains" / "r" / ".x1.0-5.parquet.123.tmp"
    stale.parent.mkdir(parents=True)
    stale.write_bytes(b"PAR1 half")
    rundir.open_run(tmp_path, CONFIG).close()
    assert not stale.exists()


def test_other_weights_code_and_store_are_refused(tmp_path: Path):
    """Other code alone can be accepted; then both are the run's, for its tables, too."""
    rundir.log_environment(tmp_path, START)
    assert len(rundir.log_environment(tmp_path, START)) == 2
    accept = rundir.Terms(other_code=True)
    for terms in (rundir.CAREFUL, accept):
        with pytest.raises(rundir.RunError, match=r"with other model files \(fingerprint aaaaaaaaaaaa\)"):
            rundir.log_environment(tmp_path, START | {"model fingerprint": "b" * 64}, terms)
        with pytest.raises(rundir.RunError, match=r"another version of the store \(1, this is"):
            rundir.log_environment(tmp_path, START | {"store version": "2"}, terms)
    other = START | {"code fingerprint": "d" * 64}
    with pytest.raises(rundir.RunError, match=r"by other code \(fingerprint cccccccccccc, this is d+\); --other_code"):
        rundir.log_environment(tmp_path, other)
    assert len(rundir.log_environment(tmp_path, other, accept)) == 3
    rundir.log_environment(tmp_path, other)
    assert rundir.makers(tmp_path) == {"store": {"1"}, "model": {"a" * 64}, "code": {"c" * 64, "d" * 64}}


@pytest.mark.parametrize(
    ("terms", "modes"), [(rundir.CAREFUL, (0o700, 0o600)), (rundir.Terms(group=True), (0o750, 0o640))]
)
def test_a_run_is_its_owners_alone_or_its_groups(terms: rundir.Terms, modes: tuple[int, int], tmp_path: Path):
    root = tmp_path / "open" / "run"
    root.parent.mkdir()
    root.parent.chmod(0o755)
    with rundir.open_run(root, CONFIG, terms):
        rundir.write_text(root / "judges" / "x" / "scores.csv", "")
    for path in (root, *root.rglob("*")):
        assert path.stat().st_mode & 0o777 == modes[path.is_file()], path
    root.chmod(0o755)
    rundir.open_run(root, CONFIG).close()
    assert root.parent.stat().st_mode & 0o777 == 0o755
    (root / "answers").mkdir()
    root.chmod(0o755)  # the owner's later choice is kept
    rundir.open_run(root, CONFIG).close()
    assert root.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("name", ["thyroid/840801013", "..", "a b", "x0:T3", "ü%2F"])
def test_names_make_one_path_component_each(name: str, tmp_path: Path):
    path = rundir.shard(tmp_path, name, name, 0, 10)
    assert path.parent.parent == tmp_path / "chains"
    assert path.name.endswith(".0-10.parquet")


@pytest.mark.parametrize("made", [base.base, ledger.get_config, thyroid_qwen25.get_config])
def test_shipped_configs_are_in_range(made):
    assert base.check(made())["n"] >= 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n": 0}, "n must be >= 1, got 0"),
        ({"tau": 1.0, "seed": -1}, r"tau must be in \(0, 1\), got 1.0; seed must be"),
        ({"stage1": 2000}, "stage1 must be <= n = 1000, got 2000"),
        ({"dtype": "float16"}, "dtype must be float32 or bfloat16, got 'float16'"),
        ({"judge": "oracle"}, "judge must be lexical"),
        ({"replicates": 1}, "replicates must be >= 2"),
        ({"seed": 2**31}, r"seed must be in \[0, 2\^31\)"),
        ({"temperature": -1.0, "top_p": 0.0}, r"temperature must be >= 0, got -1.0; top_p must be in \(0, 1\]"),
    ],
)
def test_a_field_out_of_range_is_named(changes: dict, words: str):
    config = base.base()
    config.update(changes)
    with pytest.raises(ValueError, match=words):
        base.check(config)


def test_unknown_and_missing_fields_are_named():
    config = base.base()
    config.temprature = 1.0
    del config.n
    with pytest.raises(ValueError, match="unknown field temprature; field n is missing"):
        base.check(config)


def test_what_a_config_file_returns_is_checked():
    with pytest.raises(ValueError, match=r"get_config\(\) returned dict, not a ConfigDict"):
        base.check({"n": 3})
    fields = base.base().to_dict() | {"n": "4"}
    with pytest.raises(ValueError, match="n must be >= 1, got '4'"):
        base.check(ConfigDict(fields))
