"""Tables of a run: whole, checked, written once; damage of any kind is refused by name, and nothing of it is read."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from experiments import code, draws, locks, places, rundir, store
from tests import object_store

MODEL = {"model": "a" * 64}
BLOCK = 4096


def chains(n: int, text: str = "t", record: str = "r", arm: str = "x1", first: int = 0) -> pa.Table:
    row = {"record": record, "arm": arm, "tokens": [1, 2], "text": text, "stopped": True, "outcome": "answered"}
    rows = [row | {"chain": first + i, "code": "G", "thought": ""} for i in range(n)]
    return pa.table({f.name: pa.array([r[f.name] for r in rows], f.type) for f in draws.CHAINS}, draws.CHAINS)


@pytest.fixture(params=["disk", "memory", "fakestore"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """An empty run directory of each kind of place."""
    object_store.register()
    urls = {"disk": str(tmp_path / "run"), "memory": f"memory://{tmp_path.name}/run", "fakestore": "fakestore://b/run"}
    return places.place(urls[request.param])


def test_a_table_is_written_once_and_read_back(root: Path) -> None:
    path = rundir.shard(root, "r/1", "x0:T 3", 0, 3)
    table = chains(3, record="r/1", arm="x0:T 3")
    assert not store.has(path)
    assert store.missing([path]) == [0]
    file = store.save(path, table, MODEL)
    assert store.save(path, table, MODEL) == file  # twice does no harm
    assert (store.has(path), store.missing([path]), store.find(path)) == (True, [], file)
    assert store.NAMED.fullmatch(file.name)
    assert store.load(path, draws.CHAINS, 3).equals(table)
    assert draws.load_shard(root, "r/1", "x0:T 3", 0, 3, ("text", "chain")).column_names == ["text", "chain"]
    assert store.stamp(store.checked(file)) == {"store": store.VERSION, "code": code.fingerprint(), **MODEL}
    assert [p.name for p in places.names(path.parent).values()] == [file.name]


def test_other_bytes_under_one_name_are_refused_and_both_are_named(root: Path) -> None:
    path = rundir.shard(root, "r", "x1", 0, 3)
    first = store.save(path, chains(3))
    with pytest.raises(rundir.RunError, match=rf"{first.name} and x1\.0-3\.\w+\.parquet hold different bytes for one"):
        store.save(path, chains(3, "other"))
    assert store.load(path, draws.CHAINS).equals(chains(3))  # the first writer has won
    second = store.save(places.place(str(root) + "2") / path.name, chains(3, "other"))
    places.write(path.with_name(second.name), second.read_bytes())  # both at once, on two machines
    for ask in (lambda: store.has(path), lambda: store.load(path, draws.CHAINS)):
        with pytest.raises(rundir.RunError) as told:
            ask()
        assert {first.name in str(told.value), second.name in str(told.value)} == {True}


def test_what_made_a_table_is_asked_for(root: Path) -> None:
    path = root / "x.parquet"
    file = store.save(path, chains(3), MODEL)
    own = {"model": {MODEL["model"], "b" * 64}, "code": {code.fingerprint()}}
    assert store.load(path, draws.CHAINS, makers=own).num_rows == 3
    for key, maker in (("model", "aaaaaaaaaaaa"), ("code", code.fingerprint()[:12])):
        with pytest.raises(
            rundir.RunError, match=rf"{file.name} was made by {key} {maker}, this run's is c+; delete it"
        ):
            store.load(path, draws.CHAINS, makers={**own, key: {"c" * 64}})
    data = pa.BufferOutputStream()
    pq.write_table(chains(3), data)  # a file that only looks like one of the store's
    foreign = data.getvalue().to_pybytes()
    places.write(root / f"y.{store.digest(foreign)}.parquet", foreign)
    with pytest.raises(rundir.RunError, match="by store none, this run's is 1"):
        store.load(root / "y.parquet", draws.CHAINS)


def test_a_table_that_holds_something_else_is_refused(root: Path) -> None:
    store.save(rundir.shard(root, "r", "x1", 0, 3), chains(3))
    assert draws.load_shard(root, "r", "x1", 0, 3).equals(chains(3))
    for record, arm, first, stop in (("r", "x1", 3, 6), ("r", "x0:T3", 0, 3), ("s", "x1", 0, 3), ("r", "x1", 0, 4)):
        store.save(rundir.shard(root, record, arm, first, stop), chains(3))
        with pytest.raises(rundir.RunError, match=r"-\d\.\w{16}\.parquet does not hold what its name says"):
            draws.load_shard(root, record, arm, first, stop)
    with pytest.raises(rundir.RunError, match=r"x1\.7-9\.parquet is not there"):
        draws.load_shard(root, "r", "x1", 7, 9)


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shard of some 4 KiB blocks, whose bytes do not compress."""
    spoken = random.Random(0)
    table = pa.concat_tables([chains(1, spoken.randbytes(100).hex(), first=i) for i in range(200)])
    return store.save(tmp_path_factory.mktemp("shard") / "x1.0-200.parquet", table, MODEL)


def refused(shard: Path, folder: Path, damages: list[Callable[[bytearray], object]]) -> int:
    """How many damaged copies are refused by name; a copy that was read would fail the test."""
    whole, file = shard.read_bytes(), folder / shard.name
    for damage in damages:
        data = bytearray(whole)
        damage(data)
        assert data != whole
        file.write_bytes(data)
        with pytest.raises(rundir.RunError, match=rf"{shard.name} is damaged .*; delete it to make it again"):
            store.load(folder / "x1.0-200.parquet", draws.CHAINS, 200)
    return len(damages)


def cut_to(size: int) -> Callable[[bytearray], object]:
    return lambda data: data.__delitem__(slice(size, None))


def flip(at: int, bit: int) -> Callable[[bytearray], object]:
    return lambda data: data.__setitem__(at, data[at] ^ (1 << bit))


def test_h52_a_truncated_shard_is_never_read(shard: Path, tmp_path: Path) -> None:
    """Cut at every border of 4 KiB, at every one of the last 128 bytes and of the first 16 (KNOWN_BUGS 52 a)."""
    size = shard.stat().st_size
    assert size > 4 * BLOCK
    sizes = {*range(0, size, BLOCK), *range(16), *range(size - 128, size)}
    assert refused(shard, tmp_path, [cut_to(s) for s in sizes]) == 4 + 1 + 15 + 128 + (size // BLOCK - 4)
    assert refused(shard, tmp_path, [lambda data: data.extend(b"\0"), lambda data: data.extend(data)]) == 2


def test_a_flipped_bit_is_never_read(shard: Path, tmp_path: Path) -> None:
    drawn = random.Random(1)
    size = shard.stat().st_size
    places_ = {0, 3, size - 1, size - 5, *drawn.sample(range(size), 400)}
    assert refused(shard, tmp_path, [flip(at, drawn.randrange(8)) for at in places_]) >= 400


@pytest.mark.slow
def test_no_flipped_byte_of_all_is_read(shard: Path, tmp_path: Path) -> None:
    size = shard.stat().st_size
    assert refused(shard, tmp_path, [flip(at, at % 8) for at in range(size)]) == size


def test_a_file_without_a_checksum_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    assert not store.has(tmp_path / "x.parquet")
    with pytest.raises(rundir.RunError, match=r"x\.parquet has no checksum in its name"):
        store.checked(tmp_path / "x.parquet")


def test_a_real_full_disk_leaves_no_half_file(tmp_path: Path) -> None:
    """/dev/full stands for a disk where every write fails; where the system lets us, a file system of 64 KiB."""
    with pytest.raises(OSError, match="No space left on device"):
        Path("/dev/full").write_bytes(b"x")
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.system(f"mount -t tmpfs -o size=64k tmpfs {disk} 2>/dev/null"):
        pytest.skip("no right to mount a file system")
    noise, kept = random.Random(2), []
    fill = lambda i: store.save(disk / f"x1.{i}-{i + 1}.parquet", chains(1, noise.randbytes(4000).hex(), first=i))
    try:
        with pytest.raises(OSError, match=r"No space left on device: '.*x1\.\d+-\d+\.\w+\.parquet'"):
            kept.extend(fill(i) for i in range(100))
        assert len(kept) > 2
        assert sorted(disk.iterdir()) == sorted(kept)  # no file under a temporary name, none under its own in part
        assert all(store.checked(file).metadata.num_rows == 1 for file in kept)
    finally:
        os.system(f"umount {disk}")


def test_two_drivers_cannot_hold_one_run(root: Path) -> None:
    places.make(root)
    told = rf"in use by another process \(.*, process {os.getpid()}\)"
    with rundir.lock(root), pytest.raises(rundir.RunError, match=told):
        rundir.lock(root)
    rundir.lock(root).close()


@pytest.mark.parametrize("url", ["memory://taken/run", "fakestore://b/run"])
def test_a_killed_drivers_lock_is_taken_over_by_the_users_word_alone(url: str) -> None:
    object_store.register()
    root = places.place(url)
    dead = rundir.lock(root)
    with pytest.raises(rundir.RunError, match="start again with --takeover"):
        rundir.lock(root)
    with rundir.lock(root, takeover=True):
        dead.close()  # it was only slow: its end does not open the run that is another's now
        with pytest.raises(rundir.RunError, match="in use"):
            rundir.lock(root)
    assert locks.NAME not in places.names(root)


def test_a_clock_that_jumps_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files from the future, from 1970, and a clock that runs backwards: the same answers as ever."""
    path = tmp_path / "run" / "x1.0-3.parquet"
    config = {"n": 3}
    times = iter(range(10**9, 0, -(10**6)))
    monkeypatch.setattr(time, "time", lambda: float(next(times)))
    for mtime in (0, 2**33, 10**6):
        with rundir.open_run(path.parent, config):
            file = store.save(path, chains(3))
            for p in (file, path.parent / "config.json", path.parent / ".lock"):
                os.utime(p, (mtime, mtime))
            assert store.load(path, draws.CHAINS).equals(chains(3))
            with pytest.raises(rundir.RunError, match="in use"):
                rundir.lock(path.parent)


def test_an_unknown_kind_of_place_is_one_line() -> None:
    with pytest.raises(rundir.RunError, match=r"^nowhere://x/run: [^\n]*nowhere"):
        places.place("nowhere://x/run")


def test_a_place_on_the_disk_is_a_plain_path(tmp_path: Path) -> None:
    assert places.place(f"file://{tmp_path}") == places.place(str(tmp_path)) == tmp_path


def test_the_fingerprint_of_code_hears_of_names_and_bytes(tmp_path: Path) -> None:
    for part in code.SOURCES:
        (shutil.copy if part.endswith(".py") else shutil.copytree)(code.ROOT / part, _made(tmp_path / part))
    copied = code.fingerprint(tmp_path)
    assert copied == code.fingerprint()
    code.fingerprint.cache_clear()
    with (tmp_path / "jaxmon/prompts.py").open("a") as file:
        file.write("# \n")
    assert code.fingerprint(tmp_path) != copied
    code.fingerprint.cache_clear()
    assert code.fingerprint() == copied


def _made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
