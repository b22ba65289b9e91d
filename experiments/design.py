"""What a design can see, before anything is spent: the paper's Table 1 and Figs. 7-10 in form, for any n and tau.

    python -m experiments.design --workdir=runs/design

Writes design.html (self-contained: tables, figures, and where sources disagree), a CSV per table, a PNG and an SVG per
figure. Exact sums, no model, data or simulation: about 20 seconds at the defaults, which are the paper's.
"""

from __future__ import annotations

from pathlib import Path

from absl import flags

from experiments import cli
from experiments.design_tables import Design


def define() -> None:
    """The flags, defined where the program starts: other programs share their names."""
    flags.DEFINE_string("workdir", None, "Where the results go; made if absent.")
    flags.DEFINE_integer("n", Design.n, "Chains per arm and batch.")
    flags.DEFINE_float("tau", Design.tau, "The filter on TE^.")
    flags.DEFINE_integer("stage1", Design.stage1, "Chains of an X=0 arm in stage 1.")
    flags.DEFINE_float("drop_below", Design.drop_below, "Pairs with a smaller stage-1 effect are dropped.")
    flags.DEFINE_float("p11", Design.p11, "P(target | X=1, chain) for the curves of the bias.")
    flags.DEFINE_integer("points", Design.points, "Points of each curve.")


def main(argv: list[str]) -> None:
    if argv[1:]:
        raise ValueError(f"unexpected argument {argv[1]!r}")
    values = flags.FLAGS
    if not values.workdir:
        raise ValueError("--workdir is needed")
    from experiments.design_page import write

    d = Design(values.n, values.tau, values.stage1, values.drop_below, values.p11, values.points)
    root = Path(values.workdir)
    tables = write(root, d)
    for row in tables["table1"]:
        print("  ".join(f"{name}={value:.4g}" for name, value in row.items() if isinstance(value, float | int)))
    print(f"page: {root / 'design.html'}")


if __name__ == "__main__":
    define()
    cli.start(main)
