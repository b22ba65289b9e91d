"""Does the study find the level of every attribute? The ladder organism over seeds (records and draws of their own).

    python -m tools.levels --workdir=runs/levels --seeds=10

Prints and writes levels.csv: per seed and attribute DE/TE with its interval, the level found and the true one. A seed
that is finished is not run again. About ten times the cost of the config.
"""

from __future__ import annotations

import csv
from pathlib import Path

from absl import flags

from experiments import cli


def main(argv: list[str]) -> None:
    if argv[1:]:
        raise ValueError(f"unexpected argument {argv[1]!r}")
    from experiments import direct, rundir
    from experiments.configs import ladder as settings
    from experiments.configs.base import check
    from jaxmon.tasks.ladder import LEVELS

    root, found = Path(flags.FLAGS.workdir), []
    for seed in range(flags.FLAGS.first, flags.FLAGS.first + flags.FLAGS.seeds):
        config = settings.get_config()
        config.seed = config.data_seed = seed
        here = root / f"seed-{seed:03d}"
        if not (here / "report.html").exists():
            direct.run(check(config), here)
        with (here / "direct_effect.csv").open(newline="") as file:
            found += [{"seed": seed, "true": LEVELS[r["attribute"]]} | r for r in csv.DictReader(file)]
    rundir.write_csv(root / "levels.csv", list(found[0]), found)
    for name, level in LEVELS.items():
        own = [r for r in found if r["attribute"] == name]
        right = sum(r["level"] in ((level,) if level else ("undefined", "undecided")) for r in own)
        ratios = [float(r["frozen"]) for r in own if r["frozen"]]
        span = f"{min(ratios):.3f} to {max(ratios):.3f}" if ratios else "undefined"
        print(f"{name:8} true level {level or 'none':5} found in {right} of {len(own)} seeds; DE/TE {span}")


if __name__ == "__main__":
    flags.DEFINE_string("workdir", "runs/levels", "One run directory per seed goes below it.")
    flags.DEFINE_integer("seeds", 10, "How many seeds, of the draws and of the choice of records.", 1)
    flags.DEFINE_integer("first", 0, "The first seed.", 0)
    cli.start(main)
