"""How far judges agree with reference labels and with each other.

    python -m experiments.judge_agreement --gold=experiments/gold/thyroid.jsonl --judges=lexical
    python -m experiments.judge_agreement --gold=mine.jsonl --judges=lexical,endpoint --workdir=runs/agreement

Prints, for all three labels and for INFLUENTIAL against the rest (what enters the scores), raw agreement, Cohen's and
Fleiss' kappa, Gwet's AC1 and AC2 with 95 % intervals over chains, confusion tables, sensitivity and false-positive
rate, and flags where a coefficient misleads. Labels that a judge's reply did not state are left out of all of these;
their number stands in the column `?`. Writes agreement.json, and one file of error rates per judge for --judge_error of
experiments.judge and experiments.score. Labels of one run by several judges are compared with each other by
--runs=RUN/labels,RUN/judges/NAME/labels in place of --gold.
"""

from __future__ import annotations

from pathlib import Path

from absl import flags

from experiments import cli


def define() -> None:
    """The program's flags, in a function since other programs have flags of these names."""
    flags.DEFINE_string("gold", "", "A file of reference labels; experiments/gold/README.md has the form.")
    flags.DEFINE_list("judges", ["lexical"], "lexical, endpoint, model, in any number.")
    flags.DEFINE_list("runs", [], "Folders of labels of one run, compared with each other.")
    flags.DEFINE_string("judge_model", "", "Checkpoint of the judge `model`.")
    flags.DEFINE_integer("limit", 0, "Only the first chains of the file; 0 for all.", 0)
    flags.DEFINE_string("workdir", "runs/agreement", "Where results and an endpoint's replies go.")


def main(argv: list[str]) -> None:
    f = flags.FLAGS
    if argv[1:]:
        raise ValueError(f"unexpected argument {argv[1]!r}")
    if bool(f.gold) == bool(f.runs):
        raise ValueError("either --gold or --runs is needed")
    from experiments.comparing import compare_gold, compare_runs
    from experiments.places import place

    if f.runs:
        lines = compare_runs([place(p) for p in f.runs], place(f.workdir))
    else:
        lines = compare_gold(Path(f.gold), f.judges, f.judge_model, f.limit, place(f.workdir))
    for line in lines:
        print(line)


if __name__ == "__main__":
    define()
    cli.start(main)
