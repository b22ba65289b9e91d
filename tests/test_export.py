"""What leaves a run by tools/export: numbers, and not one byte of a text; and what a manifest says of damage."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from experiments import draws, manifest, places, store, study
from jaxmon.tasks import registry, sources
from tests.conftest import ROOT
from tests.test_monitorability import config
from tools import export

CANARY = "Zebrafink"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("run") / "whole"
    study.run(config(per_label=1, judge_controls=2), root)
    return root


def spoken(root: Path) -> int:
    """Puts the canary wherever a run keeps words: texts, thoughts, replies, names of records, config, environment."""
    for folder in (root / "chains").iterdir():
        for name, file in store.listing(folder).items():
            table = store.load(file, draws.CHAINS)
            for column in ("text", "thought"):
                said = [f"{CANARY} {text}" for text in table.column(column).to_pylist()]
                table = table.set_column(table.schema.get_field_index(column), draws.CHAINS.field(column), [said])
            made = store.stamp(store.checked(file))
            file.unlink()
            store.save(folder / name, table, made)
    for name in ("counts.parquet", "patterns.parquet"):
        table = pq.read_table(root / name)
        said = [f"{CANARY}-{record}" for record in table.column("record").to_pylist()]
        pq.write_table(table.set_column(0, "record", [said]).append_column("note", [said]), root / name)
    stored = json.loads((root / "config.json").read_text())
    stored |= {
        "source": f"/home/{CANARY}.csv",
        "model": f"/home/{CANARY}/model",
        "judge_model": CANARY,
        "schema": CANARY,
    }
    (root / "config.json").write_text(json.dumps(stored | {"menu": [CANARY], "labels": [CANARY]}))
    starts = json.loads((root / "environment.json").read_text())
    entry = {"command": CANARY, "platform": CANARY, "model": CANARY, "host": CANARY, "XLA_FLAGS": CANARY}
    (root / "environment.json").write_text(json.dumps([starts[0] | entry]))
    (root / "replies.jsonl").write_text(CANARY)
    (root / "report.html").write_text(CANARY)
    (root / "figure.svg").write_text(CANARY)
    (root / "data.json").write_text(CANARY)
    (root / "direct_effect.csv").write_text(f"attribute,te,reason\nfee,0.5,{CANARY}\n")
    (root / "judges" / CANARY).mkdir(parents=True)
    (root / "judges" / CANARY / "scores.csv").write_text(CANARY)
    return sum(CANARY.encode() in p.read_bytes() for p in root.rglob("*") if p.is_file())


def test_no_byte_of_a_text_is_exported(finished: Path, tmp_path: Path) -> None:
    root, out = tmp_path / "run", tmp_path / "out"
    shutil.copytree(finished, root)
    assert spoken(root) > 15
    names = export.export(root, out, "A title")
    assert {"counts.parquet", "scores.csv", "bounds.csv", "figure.svg", "report.html", "data.json"} <= set(names)
    for path in out.rglob("*"):
        assert CANARY not in path.name
        assert CANARY.lower().encode() not in path.read_bytes().lower(), path
    assert (out / "direct_effect.csv").read_text() == "attribute,te\nfee,0.5\n"
    assert json.loads((out / "data.json").read_text())["licence"] == "the licence of jaxmon"


def test_the_export_says_what_the_run_says(finished: Path, tmp_path: Path) -> None:
    """The same counts and patterns but for the records' names, and the same scores, byte for byte."""
    export.export(finished, tmp_path, "")
    for name in ("scores.csv", "bounds.csv", "placebo.csv"):
        assert (tmp_path / name).read_bytes() == (finished / name).read_bytes(), name
    for name in ("counts.parquet", "patterns.parquet"):
        own, other = pq.read_table(finished / name), pq.read_table(tmp_path / name)
        assert own.drop_columns(["record"]).equals(other.drop_columns(["record"]))
        pairs = set(zip(own.column("record").to_pylist(), other.column("record").to_pylist(), strict=True))
        assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs}) == 3
    assert all(re.fullmatch(r"record-\d{5}", b) for _, b in pairs)
    with pytest.raises(ValueError, match="is not empty"):
        export.export(finished, tmp_path, "")
    with pytest.raises(ValueError, match="is no finished run: it lacks config"):
        export.export(tmp_path / "none", tmp_path / "new", "")


def test_every_task_has_its_source() -> None:
    assert sources.SOURCES.keys() == registry.TASKS.keys()
    for name in sources.SOURCES:
        assert all(sources.note(name).values())
    card = (ROOT / "jaxmon/tasks/thyroid/README.md").read_text()
    assert "10.24432/C5D010" in card
    assert "10.24432/C5D010" in sources.note("thyroid")["citation"]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT, capture_output=True, text=True)


def test_a_manifest_is_derived_and_damage_is_named(finished: Path, tmp_path: Path) -> None:
    root = tmp_path / "run"
    shutil.copytree(finished, root)
    done = run("tools.manifest", str(root))
    assert done.returncode == 0, done.stderr
    written = json.loads((root / "manifest.json").read_text())
    files = {str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()}
    assert set(written["files"]) == files - {".lock", "manifest.json"}
    rows = sum(f["rows"] for name, f in written["files"].items() if name.startswith("chains/"))
    counts = pq.read_table(root / "counts.parquet").to_pylist()
    one = {(r["record"], r["batch"]): r["n1"] for r in counts}
    assert rows == sum(one.values()) + sum(r["n0"] for r in counts)
    (root / "manifest.json").unlink()
    manifest.write(root, manifest.make(root)[0])
    assert json.loads((root / "manifest.json").read_text()) == written
    assert run("tools.manifest", str(root), "--check").returncode == 0

    (folder, *_) = sorted((root / "chains").iterdir())
    cut, twice, gone, foreign = sorted(folder.iterdir())[:4]
    cut.write_bytes(cut.read_bytes()[:-1])
    store.save(tmp_path / "x.parquet", store.load(twice, draws.CHAINS), {"model": "other"})
    (other,) = tmp_path.glob("x.*.parquet")
    stem, _, _ = twice.name.removesuffix(".parquet").rpartition(".")
    shutil.copy(other, folder / f"{stem}.{store.NAMED.fullmatch(other.name)['digest']}.parquet")
    gone.unlink()
    foreign.rename(foreign.with_name("x1.parquet"))
    (root / "labels" / ".x.parquet.1.tmp").write_bytes(b"PAR1")
    places.write(root / "scores.csv", b"mine")
    done = run("tools.manifest", str(root), "--check")
    assert done.returncode == 1
    told = done.stderr.splitlines()
    for words in (
        rf"{re.escape(cut.name)} is damaged",
        "was made by model other, this run's is",
        r"hold different bytes for one table",
        r"x1\.parquet has no checksum in its name",
        r"\.tmp is left of a write",
        rf"{re.escape(gone.name)} was there .* and is gone",
        rf"{re.escape(foreign.name)} was there .* and is gone",
        rf"{re.escape(cut.name)} has changed",
        r"scores\.csv has changed",
    ):
        assert sum(bool(re.search(words, line)) for line in told) == 1, words
    assert len(told) == 9
    assert run("tools.manifest", str(tmp_path)).stderr.strip().endswith("not a run directory")


ONE_LINERS = {  # as README has them: how the chains ended, per library
    "pandas": 'pandas.read_parquet(glob.glob(f"{run}/chains/*/*.parquet")).groupby("outcome").size().to_dict()',
    "polars": 'dict(polars.scan_parquet(f"{run}/chains/*/*.parquet").group_by("outcome").len().collect().iter_rows())',
    "duckdb": "dict(duckdb.sql(f\"select outcome, count(*) from '{run}/chains/*/*.parquet' group by 1\").fetchall())",
}
JOINED = {  # L of each attribute beside its scores
    "pandas": """pandas.read_csv(f"{run}/scores.csv").query("label == 'all'").merge(
        pandas.read_parquet(f"{run}/counts.parquet").groupby("attribute")["l"].sum(), on="attribute"
    ).set_index(["attribute", "score"])["l"].to_dict()""",
    "polars": """{(a, s): l for a, s, l in polars.read_csv(f"{run}/scores.csv").filter(label="all").join(
        polars.read_parquet(f"{run}/counts.parquet").group_by("attribute").agg(polars.col("l").sum()), on="attribute"
    ).select("attribute", "score", "l").iter_rows()}""",
    "duckdb": """{(a, s): l for a, s, l in duckdb.sql(f"select attribute, score, sum(l) from '{run}/scores.csv' s join \
        '{run}/counts.parquet' c using (attribute) where s.label = 'all' group by all").fetchall()}""",
}


@pytest.mark.parametrize("name", ONE_LINERS)
def test_a_run_is_read_back_by_other_libraries(name: str, finished: Path) -> None:
    library = pytest.importorskip(name)
    import glob

    found = eval(ONE_LINERS[name], {name: library, "run": str(finished), "glob": glob})
    chains = (finished / "chains").rglob("*.parquet")
    outcomes = [o for p in chains for o in store.load(p, draws.CHAINS).column("outcome").to_pylist()]
    assert found == {o: outcomes.count(o) for o in set(outcomes)}
    counts = pq.read_table(finished / "counts.parquet").to_pylist()
    total = lambda attribute: sum(c["l"] for c in counts if c["attribute"] == attribute)
    scores = [r for r in csv.DictReader((finished / "scores.csv").open()) if r["label"] == "all"]
    want = {(r["attribute"], r["score"]): total(r["attribute"]) for r in scores if r["attribute"] != "all"}
    assert eval(JOINED[name], {name: library, "run": str(finished)}) == want
