"""Can an attribute's influence be applied apart from the chain of thought? Early answers, frozen chains, windows.

    python -m experiments.direct_effect --config=experiments/configs/ladder.py --workdir=runs/ladder

Works in the directory of a monitorability run with the same config: what is there is used, what is missing is made.
"""

from __future__ import annotations

from experiments import cli


def main(argv: list[str]) -> None:
    config, workdir = cli.run_flags(argv)
    from experiments.direct import run

    run(config, workdir, cli.terms())


if __name__ == "__main__":
    cli.define_run_flags()
    cli.start(main)
