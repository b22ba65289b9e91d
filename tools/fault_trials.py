"""SIGKILL at random moments: small Ray runs of the ledger organism, one victim each, resumed, compared bit for bit.

    python -m tools.fault_trials --trials=32 --out=fault_trials.md

A victim is a worker, the driver, the cluster's directory (gcs), the node's manager (raylet), or both of these (head):
always a process that the trial itself has started. It is killed after a random number of units (0: as soon as it is
there) and up to 0.1 s. A run that does not end well is resumed by the same command, every second time in one process
without Ray. Then chains, answers, labels, counts and scores must be those of the reference, byte for byte.

Knows: processes, files. Does not know: how the runner survives.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import psutil
from absl import flags

from experiments import cli

ROOT = Path(__file__).resolve().parent.parent
FIELDS = {"n": 8, "stage1": 4, "per_label": 1, "slots": 8, "shard": 4, "replicates": 20, "drop_below": 0.0}
VICTIMS = {
    "worker": ("ray::Actor",),
    "driver": (),
    "gcs": ("gcs_server",),
    "raylet": ("raylet",),
    "head": ("gcs_server", "raylet"),
}
TABLES = ("counts.parquet", "patterns.parquet", "scores.csv")
FOLDERS = ("chains", "answers", "labels", "controls")
WAIT_S = 150.0  # for a run to end; longer is a failure


class Trial(NamedTuple):
    """One row of the table.

    Attributes:
      after: units on disk that were waited for; units: those found there at the kill.
      seconds: from the kill to the end of the program.
      left: workers alive 10 s after that.
      resumed: how, where the program ended badly.
      equal: all files are the reference's.
      said: the last line of a program that ended badly by itself.
    """

    victim: str
    after: int
    units: int
    code: int
    seconds: float
    left: int
    resumed: str
    equal: bool
    said: str


def start(root: Path, cache: Path, *more: str) -> subprocess.Popen[str]:
    """The program as a process of its own."""
    command = [sys.executable, "-m", "experiments.monitorability", "--config=experiments/configs/ledger.py"]
    command += [f"--workdir={root}", *(f"--config.{k}={v}" for k, v in FIELDS.items()), *more]
    env = os.environ | {"JAX_COMPILATION_CACHE_DIR": str(cache), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    env.pop("XLA_FLAGS", None)
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=pipe, text=True)


def ray(workers: int) -> tuple[str, ...]:
    return "--runner=ray", f"--workers={workers}"


def units(root: Path) -> int:
    return sum(1 for _ in root.glob("chains/*/*.parquet"))


def results(root: Path) -> dict[str, bytes]:
    """Every file that a run's result rests on."""
    files = [root / name for name in TABLES]
    files += [file for folder in FOLDERS for file in (root / folder).rglob("*.parquet")]
    return {str(file.relative_to(root)): file.read_bytes() for file in files if file.exists()}


def family(process: psutil.Process, *names: str) -> list[psutil.Process]:
    """Processes started by this one, by the name of their program."""
    found = []
    for child in process.children(recursive=True):
        try:
            title = (child.cmdline() or [""])[0].split(" ")[0]
        except psutil.Error:
            continue
        if title.rpartition("/")[2].startswith(names):
            found.append(child)
    return found


def trial(root: Path, cache: Path, victim: str, after: int, luck: random.Random, how: Sequence[str]) -> Trial:
    """Starts a run, kills the victim when `after` units are on disk, resumes by the flags `how`; equal is open yet."""
    process = start(root, cache, *ray(2))
    driver = psutil.Process(process.pid)
    aims: list[psutil.Process] = []
    while process.poll() is None and (not aims or units(root) < after):
        time.sleep(0.05)
        aims = [driver] if victim == "driver" else family(driver, *VICTIMS[victim])
    time.sleep(luck.random() * 0.1)
    workers = family(driver, "ray::Actor") if process.poll() is None else []
    aims = [luck.choice(aims)] if victim == "worker" and aims else aims
    done, began = units(root), time.monotonic()
    for aim in aims:
        if aim.is_running():
            aim.kill()
    try:
        _, error = process.communicate(timeout=WAIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        _, error = process.communicate()
    seconds = time.monotonic() - began
    _, left = psutil.wait_procs(workers, timeout=10)
    resumed = "no"
    if process.returncode:
        again = start(root, cache, *how)
        _, said = again.communicate()
        resumed = "ray" if how else "local"
        if again.returncode:
            resumed += f": {_last(said)}"
    return Trial(
        victim,
        after,
        done,
        process.returncode,
        seconds,
        len(left),
        resumed,
        False,
        _last(error) if process.returncode > 0 else "",
    )


def _last(text: str) -> str:
    return text.strip().splitlines()[-1] if text.strip() else ""


def table(trials: Sequence[Trial]) -> list[str]:
    head = (
        "trial",
        "victim",
        "killed after",
        "units there",
        "exit code",
        "ended in s",
        "workers left",
        "resumed",
        "equal",
        "said",
    )
    rows = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for i, t in enumerate(trials):
        cells = (
            i,
            t.victim,
            t.after,
            t.units,
            t.code,
            f"{t.seconds:.1f}",
            t.left,
            t.resumed,
            "yes" if t.equal else "NO",
            t.said,
        )
        rows.append(f"| {' | '.join(map(str, cells))} |")
    return rows


def main(argv: list[str]) -> None:
    if argv[1:]:
        raise ValueError(f"unexpected argument {argv[1]!r}")
    f, luck = flags.FLAGS, random.Random(flags.FLAGS.seed)
    trials: list[Trial] = []
    with tempfile.TemporaryDirectory() as folder:
        cache, whole = Path(folder) / "cache", Path(folder) / "whole"
        if start(whole, cache).wait():
            raise ValueError("the reference run failed")
        reference, total = results(whole), units(whole)
        for i in range(f.trials):
            root, victim = Path(folder) / str(i), list(VICTIMS)[i % len(VICTIMS)]
            found = trial(root, cache, victim, luck.randrange(total), luck, ray(2) if i // len(VICTIMS) % 2 else ())
            trials.append(found._replace(equal=results(root) == reference))
            print(table(trials)[-1], flush=True)
            if f.out:
                Path(f.out).write_text("\n".join(table(trials)) + "\n")
    equal = sum(t.equal for t in trials)
    print(f"{total} units a run; {equal} of {len(trials)} trials equal the reference")
    if equal < len(trials):
        sys.exit(1)


if __name__ == "__main__":
    flags.DEFINE_integer("trials", 32, "How many.", 1)
    flags.DEFINE_integer("seed", 0, "Of victims' moments.", 0)
    flags.DEFINE_string("out", "", "A file for the table; optional.")
    cli.start(main)
