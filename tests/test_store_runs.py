"""Whole small runs through the store: in an object store as on a disk; a disk that fills at any write; other makers."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from experiments import cli, code, draws, opening, places, rundir, store, study
from experiments.configs import base
from tests import object_store
from tests.conftest import ROOT

TABLES = ("counts.parquet", "patterns.parquet", "scores.csv", "bounds.csv")
SMALL = {"n": 6, "stage1": 3, "per_label": 1, "labels": ("retail",), "attributes": ("fee",), "slots": 6, "shard": 4}


def config(**changes: Any) -> dict[str, Any]:
    made = base.base()
    rest = {"drop_below": -1.0, "replicates": 4, "judge_controls": 2, "model": str(ROOT / "models/organisms/ledger")}
    made.update(SMALL | rest | changes)
    return base.check(made)


@pytest.fixture(scope="module", autouse=True)
def one_model() -> Any:
    """The model is loaded, and its programs compiled, once."""
    made: list[draws.Drawer] = []
    load = opening.drawer

    def drawer(opened: opening.Study) -> draws.Drawer:
        if not made:
            made.append(load(opened))
        return made[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "drawer", drawer)
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("run") / "whole"
    study.run(config(), root)
    return root


def tables(root: Path) -> dict[str, bytes]:
    return {name: (root / name).read_bytes() for name in TABLES}


def shards(root: Path) -> dict[str, str]:
    """Name without checksum -> file name, of every table of the run."""
    found = {}
    for folder in ("answers", "labels", "controls", "chains"):
        below = places.names(root / folder)
        for part in below.values() if folder == "chains" else [root / folder]:
            found |= {f"{folder}/{part.name}/{k}": v.name for k, v in store.listing(part).items()}
    return found


@pytest.mark.parametrize("url", ["memory://runs/one", "fakestore://bucket/runs/one"])
def test_an_object_store_holds_the_same_run(url: str, whole: Path) -> None:
    object_store.register()
    root = places.place(url)
    study.run(config(), root)
    assert tables(root) == tables(whole)
    assert shards(root) == shards(whole)
    assert {*places.names(root)} == {*places.names(whole)} - {".lock"}
    assert (root / "report.html").read_bytes()
    written = len(object_store.ObjectStore.puts)
    study.run(config(), root)  # finished: nothing is drawn again
    again = object_store.ObjectStore.puts[written:]
    assert not [key for key in again if "chains" in key]
    with pytest.raises(rundir.RunError, match=r"made with another config: n is 6 there, 5 here"):
        study.run(config(n=5), root)


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_a_store_that_is_full_at_any_write_loses_nothing(step: int, whole: Path) -> None:
    """ENOSPC from the k-th PUT on (in the suite, every fourth): a line that names it; the same command ends the run."""
    fake = object_store.register()
    root = places.place("fakestore://b/count")
    study.run(config(), root)
    writes = len(fake.puts)
    assert writes > 15
    for k in range(0, writes, step):
        fake.objects.clear()
        fake.puts.clear()
        fake.fail_at = k
        if k == 0:
            with pytest.raises(OSError, match="No space left"):  # the lock itself
                study.run(config(), root)
        else:
            with pytest.raises(OSError, match="No space left") as told:
                study.run(config(), root)
            assert cli.line(told.value).startswith("fakestore://b/count/")
        kept, fake.fail_at = dict(fake.objects), None
        study.run(config(), root)
        assert tables(root) == tables(whole)
        assert shards(root) == shards(whole)
        assert all(fake.objects[key] == data for key, data in kept.items() if key.count(".") > 2)  # tables, untouched


def test_a_disk_that_is_full_at_any_write_loses_nothing(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ENOSPC from the k-th file's sync on, for every k: where a delayed allocation shows."""
    real, left, full = os.fsync, [-1], [False]

    def fsync(file: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{file}"):
            return
        left[0] -= 1
        if full[0] and left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(file)

    monkeypatch.setattr("experiments.places.os.fsync", fsync)
    study.run(config(), tmp_path / "count")
    writes = -1 - left[0]
    assert writes > 15
    for k in range(writes):
        root = tmp_path / str(k)
        left[0], full[0] = k, True
        with pytest.raises(OSError, match="No space left") as told:
            study.run(config(), root)
        assert cli.line(told.value).startswith(f"{root}/")
        assert not list(root.rglob(".*.tmp"))
        full[0] = False
        study.run(config(), root)
        assert tables(root) == tables(whole)
        assert shards(root) == shards(whole)


def test_other_code_is_refused_until_it_is_accepted_and_then_said(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "run"
    study.run(config(), root)
    next((root / "labels").iterdir()).unlink()
    own = code.fingerprint()
    monkeypatch.setattr(code, "fingerprint", lambda: "e" * 64)
    with pytest.raises(rundir.RunError, match=rf"made by other code \(fingerprint {own[:12]}, this is eeeeeeeeeeee\)"):
        study.run(config(), root)
    before = tables(root)
    study.run(config(), root, rundir.Terms(other_code=True))
    assert tables(root) == before
    assert f"--other_code=accept: fingerprints {own[:12]}, eeeeeeeeeeee" in (root / "report.html").read_text()


def test_chains_of_another_checkpoint_or_code_are_refused(whole: Path, tmp_path: Path) -> None:
    """A worker with other files under the same name leaves a shard that is whole, and its own: it is not counted."""
    for k, stamp in enumerate(({"model": "f" * 64}, {"code": "f" * 64})):
        root = tmp_path / str(k)
        study.run(config(), root)
        (record,) = (root / "chains").iterdir()
        arm, file = next(iter(store.listing(record).items()))
        table = store.load(file, draws.CHAINS)
        made = store.stamp(store.checked(file)) | stamp
        file.unlink()
        store.save(file.with_name(arm), table, made)
        told = rf"{arm.removesuffix('.parquet')}\.\w+\.parquet was made by {next(iter(stamp))} ffff"
        with pytest.raises(rundir.RunError, match=told):
            study.run(config(), root)
