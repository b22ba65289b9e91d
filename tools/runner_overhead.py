"""What Ray costs beside the same work in one process: a run of the ledger organism, alternating, medians.

    python -m tools.runner_overhead --repeats=3

One worker, all cores, against one process with all cores. `sampling` is from the first file of answers or chains to the
last one, on the file system's clock; `start` is what the program takes before and after that: Ray's processes, loading,
and the scores. Programs are compiled by a run before the first one that counts.

Knows: programs, files. Does not know: what takes the time.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from absl import flags

from experiments import cli
from tools import fault_trials

WAYS = {"local": (), "ray": fault_trials.ray(1)}


def timed(root: Path, cache: Path, fields: list[str], way: str) -> tuple[float, float]:
    """Seconds of a whole run, and of its sampling."""
    began = time.perf_counter()
    process = fault_trials.start(root, cache, *fields, *WAYS[way])
    _, error = process.communicate()
    if process.returncode:
        raise ValueError(f"{way}: {error.strip().splitlines()[-1]}")
    took = time.perf_counter() - began
    times = [p.stat().st_mtime for folder in ("answers", "chains") for p in (root / folder).rglob("*.parquet")]
    return took, max(times) - min(times)


def main(argv: list[str]) -> None:
    if argv[1:]:
        raise ValueError(f"unexpected argument {argv[1]!r}")
    f = flags.FLAGS
    fields = [f"--config.{k}={v}" for k, v in {"n": f.n, "stage1": f.n // 5, "slots": 100, "shard": 100}.items()]
    found: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache"
        timed(Path(folder) / "first", cache, fields, "local")
        for i in range(f.repeats):
            for way in list(WAYS)[:: 1 if i % 2 else -1]:
                found[way].append(timed(Path(folder) / f"{way}{i}", cache, fields, way))
                print(f"{way:6} whole {found[way][-1][0]:6.2f} s, sampling {found[way][-1][1]:6.2f} s", flush=True)
    whole, sampling = ({w: statistics.median(t[k] for t in found[w]) for w in WAYS} for k in (0, 1))
    for way in WAYS:
        print(f"{way:6} median: sampling {sampling[way]:.2f} s, start {whole[way] - sampling[way]:.2f} s")
    print(f"ray over local: sampling {sampling['ray'] / sampling['local']:.3f}")


if __name__ == "__main__":
    flags.DEFINE_integer("repeats", 3, "Of each way.", 1)
    flags.DEFINE_integer("n", 300, "Chains per arm and batch.", 5)
    cli.start(main)
