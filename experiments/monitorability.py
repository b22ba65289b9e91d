"""From prompts to M0 and M1: sample both arms, judge, count, estimate, report.

    python -m experiments.monitorability --config=experiments/configs/ledger.py --workdir=runs/ledger

Running the same command again resumes: what is on disk is not drawn again, and the result is the same bit for bit.
"""

from __future__ import annotations

from pathlib import Path

from absl import flags
from ml_collections import config_flags

from experiments import cli

CONFIG = config_flags.DEFINE_config_file("config", None, "The run's config, e.g. experiments/configs/ledger.py.")
WORKDIR = flags.DEFINE_string("workdir", None, "The run directory; an existing one is resumed.")


def main(argv: list[str]) -> None:
    if argv[1:]:
        raise ValueError(f"unexpected argument {argv[1]!r}; fields are set with --config.field=value")
    if CONFIG.value is None or not WORKDIR.value:
        raise ValueError("--config and --workdir are needed")
    from experiments.configs.base import check
    from experiments.study import run

    run(check(CONFIG.value), Path(WORKDIR.value))


if __name__ == "__main__":
    cli.start(main)
