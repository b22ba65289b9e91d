"""Labels a finished run with another judge and scores it again: no model is loaded but a judge's own, no GPU needed.

    python -m experiments.judge --workdir=RUN --judge=endpoint
    python -m experiments.judge --workdir=RUN --judge=lexical --judge_error=judge_error.json

The run's own labels and scores stay as they are; those of the judge go to RUN/judges/NAME (rubric and judge are in
every file of labels), in the layout of the run itself. The same command resumes. Server, key, prices and spending cap
of an endpoint judge come from the environment: experiments/judges/settings.py.
"""

from __future__ import annotations

from absl import flags

from experiments import cli


def define() -> None:
    """The program's flags, in a function since `workdir` is other programs' flag too."""
    flags.DEFINE_string("workdir", None, "The finished run.")
    cli.define_takeover()
    flags.DEFINE_string("judge", "lexical", "lexical, endpoint or model.")
    flags.DEFINE_string("judge_model", "", "Checkpoint of the judge `model`.")
    flags.DEFINE_integer("judge_most", 0, "Most target answers judged per record, chosen by hash; 0 judges all.", 0)
    flags.DEFINE_integer("judge_controls", 8, "Target answers without the sentence judged per attribute.", 0)
    flags.DEFINE_string("judge_error", "", "A judge's error rates, of experiments.judge_agreement, to correct for.")


def main(argv: list[str]) -> None:
    f = flags.FLAGS
    if argv[1:]:
        raise ValueError(f"unexpected argument {argv[1]!r}")
    if not f.workdir:
        raise ValueError("--workdir is needed")
    from experiments.places import place
    from experiments.relabel import relabel

    chosen = {name: f[name].value for name in ("judge", "judge_model", "judge_most", "judge_controls")}
    for line in relabel(place(f.workdir), chosen, f.judge_error, f.takeover):
        print(line)


if __name__ == "__main__":
    define()
    cli.start(main)
