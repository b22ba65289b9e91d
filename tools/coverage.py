"""Does the main job's interval cover the truth? The demo over many seeds, each with records of its own.

    python -m tools.coverage --workdir=runs/coverage --seeds=20

Prints and writes coverage.csv: per attribute and score the share of seeds in which the 95 % interval held the true
value (classes pooled), and how often the placebo passed the filter beside the exact false-positive rate. A finished
seed is not run again. About 20 times the cost of the demo; --n=300 is a quarter of it.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from absl import flags

from experiments import cli

WORKDIR = flags.DEFINE_string("workdir", "runs/coverage", "One run directory per seed goes below it.")
SEEDS = flags.DEFINE_integer("seeds", 20, "Seeds 0 ... SEEDS - 1, of the draws and of the choice of records.", 1)
CHAINS = flags.DEFINE_integer("n", 1000, "Chains per arm and batch; a fifth of them in stage 1.", 5)
MODEL = flags.DEFINE_string("model", "models/organisms/ledger", "The organism.")

Key = tuple[str, str]  # attribute, score


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def held(root: Path) -> dict[Key, bool | None]:
    """For one run, classes pooled: whether each interval holds the truth; None where the score is undefined."""
    truth = {(r["attribute"], r["score"]): float(r["value"]) for r in read(root / "truth.csv") if r["label"] == "all"}
    found: dict[Key, bool | None] = {}
    for row in read(root / "scores.csv"):
        key = row["attribute"], row["score"]
        if row["label"] == "all" and key in truth:
            inside = lambda row=row, key=key: float(row["low"]) - 1e-9 <= truth[key] <= float(row["high"]) + 1e-9
            found[key] = inside() if row["value"] else None
    return found


def table(runs: Sequence[Mapping[Key, bool | None]]) -> list[dict[str, object]]:
    """One row per attribute and score: seeds with a value, intervals that held the truth, and the share."""
    cells: dict[Key, list[bool | None]] = defaultdict(list)
    for run in runs:
        for key, inside in run.items():
            cells[key].append(inside)
    rows: list[dict[str, object]] = []
    for (attribute, score), all_values in cells.items():
        values = [v for v in all_values if v is not None]
        share = f"{sum(values) / len(values):.2f}" if values else ""
        row = {"attribute": attribute, "score": score, "defined": len(values), "held": sum(values), "share": share}
        rows.append(row)
    return rows


def main(argv: list[str]) -> None:
    if argv[1:]:
        raise ValueError(f"unexpected argument {argv[1]!r}")
    from experiments.configs.base import base, check
    from experiments.study import run
    from jaxmon.counting.counts import read_counts
    from jaxmon.estimation.cells import Settings
    from jaxmon.estimation.placebo import controls
    from jaxmon.statistics.exact import false_positive_rate
    from jaxmon.tasks.ledger import PLACEBOS

    root = Path(WORKDIR.value)
    runs: list[Mapping[Key, bool | None]] = []
    passed = pairs = 0
    config = base()
    config.model = MODEL.value
    config.n, config.stage1 = CHAINS.value, CHAINS.value // 5
    for seed in range(SEEDS.value):
        config.seed = config.data_seed = seed
        here = root / f"seed-{seed:03d}"
        if not (here / "report.html").exists():
            run(check(config), here)
        runs.append(held(here))
        for control in controls(read_counts(here / "counts.parquet"), PLACEBOS, Settings(tau=config.tau)):
            passed, pairs = passed + control.passed, pairs + control.pairs
    rows = table(runs)
    with (root / "coverage.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    for row in rows:
        print("{attribute:8} {score:5} {held:3} of {defined:3} {share}".format(**row))
    total = [v for r in runs for v in r.values() if v is not None]
    print(f"all intervals: {sum(total)} of {len(total)} hold the truth ({sum(total) / len(total):.3f})")
    rate, _ = false_positive_rate(config.tau, config.n, config.n)
    print(f"placebo: {passed} of {pairs} pairs passed; exact rate at most {rate:.3g}")


if __name__ == "__main__":
    cli.start(main)
