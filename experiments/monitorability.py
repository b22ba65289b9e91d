"""From prompts to M0 and M1: sample both arms, judge, count, estimate, report.

    python -m experiments.monitorability --config=experiments/configs/ledger.py --workdir=runs/ledger

Running the same command again resumes: what is on disk is not drawn again, and the result is the same bit for bit.
"""

from __future__ import annotations

from experiments import cli


def main(argv: list[str]) -> None:
    config, workdir = cli.run_flags(argv)
    from experiments.study import run

    run(config, workdir)


if __name__ == "__main__":
    cli.define_run_flags()
    cli.start(main)
