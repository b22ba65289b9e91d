"""Chains and risks of the sampling rules, exact, over populations of effects: the table behind `rule = "staged"`.

    python -m tools.sampling_table

Per population: expected chains of a record with 22 attributes under two stages and under many looks, X=1 arm included,
and their ratio; then the worst discard probabilities over all p01. About half a minute; nothing is simulated.
"""

from __future__ import annotations

from absl import flags

from experiments import cli

# name: (p11 of records, how many of 22 attributes have an effect, their TE as a share of p11)
SPREAD = (
    0.002,
    0.02,
    0.1,
    0.3,
    0.5,
    0.7,
    0.9,
    0.98,
)  # of p11: many records are nearly always or never answered rightly
POPULATIONS = {
    "1 effect, p11 = 0.5": ((0.5,), 1, 0.4),
    "3 effects, p11 = 0.5": ((0.5,), 3, 0.4),
    "3 effects, p11 = 0.9": ((0.9,), 3, 0.3),
    "no effect, p11 = 0.5": ((0.5,), 0, 0.0),
    "no effect, p11 = 0.002": ((0.002,), 0, 0.0),
    "1 effect, p11 spread": (SPREAD, 1, 0.4),
    "2 effects, p11 spread": (SPREAD, 2, 0.4),
    "3 effects, p11 spread": (SPREAD, 3, 0.4),
    "6 effects, p11 spread": (SPREAD, 6, 0.4),
}
PAIRS = 22


def main(argv: list[str]) -> None:
    if argv[1:]:
        raise ValueError(f"unexpected argument {argv[1]!r}")
    import numpy as np

    from jaxmon.rules import operating, staged
    from jaxmon.rules.adaptive import Plan

    plan = Plan(n=flags.FLAGS.chains, stage1=flags.FLAGS.chains // 5)
    rules = {name: staged.make(name, plan) for name in staged.RULES}
    print(f"{'population':24} " + " ".join(f"{name:>10}" for name in rules) + "  ratio")
    for name, (records, effects, share) in POPULATIONS.items():
        total = dict.fromkeys(rules, 0.0)
        for p11 in records:
            p01 = np.array([p11 * (1 - share)] * effects + [p11] * (PAIRS - effects))
            for key, rule in rules.items():
                law = operating.operate(rule, p11, p01)
                total[key] += (law.chains1 + law.chains0.sum()) / len(records)
        two, many = total.values()
        print(f"{name:24} {two:10,.0f} {many:10,.0f} {two / many:6.2f}", flush=True)
    for effect in (0.10, 0.15):
        worst = {key: operating.worst_discard(rule, effect) for key, rule in rules.items()}
        print(
            f"discarded at TE = {effect:.2f}: "
            + ", ".join(f"{k} {v:.2g} (p01 = {p:.2f})" for k, (v, p) in worst.items())
        )


if __name__ == "__main__":
    flags.DEFINE_integer("chains", 1000, "Chains per arm and batch.", 10)
    cli.start(main)
