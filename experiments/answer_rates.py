"""What a model answers with and without a chain of thought: target rate, accuracy, recall, precision, p10.

    python -m experiments.answer_rates --config=experiments/configs/ledger.py --workdir=runs/rates
    python -m experiments.answer_rates --config=... --workdir=... --nocot            # the half without chains alone
    python -m experiments.answer_rates --runs=runs/a,runs/b --workdir=runs/together  # one figure of several runs

Draws config.n chains per record of the whole prompt (X = 1). Running the same command again resumes; the directory may
be that of a monitorability run of the same config. Writes rates.csv, answers.csv (a row per record), target_rates.png
(in the form of Fig. 3), classes_*.png (Fig. 11), p10.png.
"""

from __future__ import annotations

from absl import flags

from experiments import cli


def define() -> None:
    """The program's flags; not at import, since other programs have flags of the same names."""
    cli.define_run_flags()
    flags.DEFINE_bool("cot", True, "Draw chains; --nocot gives the T = 0 half alone.")
    flags.DEFINE_list("runs", [], "Directories of finished runs to put into one figure, in place of --config.")


def main(argv: list[str]) -> None:
    given = flags.FLAGS
    if argv[1:]:
        raise ValueError(f"unexpected argument {argv[1]!r}; fields are set with --config.field=value")
    if not given.workdir or (given.config is None) == (not given.runs):
        raise ValueError("--workdir and one of --config and --runs are needed")
    from experiments.configs.base import check
    from experiments.places import place
    from experiments.rates import combine, run

    if given.runs:
        combine([place(p) for p in given.runs], place(given.workdir))
    else:
        run(check(given.config), place(given.workdir), given.cot, cli.terms())
    print(f"wrote rates.csv, target_rates.png, p10.png, classes_*.png to {given.workdir}")


if __name__ == "__main__":
    define()
    cli.start(main)
