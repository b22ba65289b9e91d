"""What a run will cost: chains, tokens, FLOPs, memory, hours and judge calls per stage, before anything is spent.

    python -m experiments.plan --config=experiments/configs/ledger.py
    python -m experiments.plan --config=experiments/configs/ledger.py --workdir=runs/ledger     # and what it did cost

Writes nothing. Without --tokens_per_s or --tokens_per_chain one block of chains is drawn to measure them.
"""

from __future__ import annotations

from absl import flags
from ml_collections import config_flags

from experiments import cli


def main(argv: list[str]) -> None:
    if argv[1:]:
        raise ValueError(f"unexpected argument {argv[1]!r}; fields are set with --config.field=value")
    f = flags.FLAGS
    if f.config is None:
        raise ValueError("--config is needed")
    from experiments import planning
    from experiments.configs.base import check
    from experiments.opening import drawer, reopened
    from experiments.places import names, place

    if not 0 < f.p11 <= 1 or not 0 <= f.effect <= f.p11:
        raise ValueError(f"--p11={f.p11:g}, --effect={f.effect:g}: expected 0 <= effect <= p11 <= 1")
    config = check(f.config) | {"judge": "lexical"}  # nothing is judged here
    with reopened(config, place(f.workdir or ".")) as study:
        made = drawer(study)
        per_chain, rate = f.tokens_per_chain, f.tokens_per_s
        if per_chain is None or rate is None:
            measured = planning.measure(study, made)
            per_chain, rate = measured[0] if per_chain is None else per_chain, measured[1] if rate is None else rate
        population = planning.Population(f.p11, f.effect, f.effects)
        pairs = sum(map(len, study.studied.values()))
        print(f"{len(study.task.records)} records, {pairs} pairs; rule {study.config['rule']}")
        print(f"assumed: {population}; {per_chain:.1f} tokens per chain, {rate:,.0f} tokens per second")
        lines, calls = planning.expected(study, made, population, per_chain)
        print(*planning.text(lines, calls, rate, f.judge_price, "expected"), sep="\n")
        print(planning.units(config, rate / per_chain))
        held = planning.memory(study, made, max(planning.lengths(study, made)["one"]))
        print("memory: " + ", ".join(f"{k} {v / 2**20:,.1f} MiB" for k, v in held.items()))
        if f.workdir:
            if not names(study.root / "chains"):
                raise ValueError(f"{f.workdir} holds no chains")
            lines, calls = planning.spent(study, made)
            print(*planning.text(lines, calls, rate, f.judge_price, f"\nspent in {f.workdir}"), sep="\n")
            print(f"first to last file of chains: {planning.wall_hours(study.root):.2f} hours, pauses included")


if __name__ == "__main__":
    config_flags.DEFINE_config_file("config", None, "The run's config, e.g. experiments/configs/ledger.py.")
    flags.DEFINE_string("workdir", None, "A run directory, to see what was spent; optional.")
    flags.DEFINE_float("tokens_per_s", None, "Written tokens per second; measured where absent.", 1e-9)
    flags.DEFINE_float("tokens_per_chain", None, "Mean tokens of a chain; measured where absent.", 1e-9)
    flags.DEFINE_float("p11", 0.5, "Assumed share of target answers with all attributes.")
    flags.DEFINE_float("effect", 0.25, "Assumed TE of attributes that have one.")
    flags.DEFINE_float("effects", 3.0, "Assumed number of such attributes, of each record.", 0)
    flags.DEFINE_float("judge_price", 0.0, "Cost of one call of the judge.", 0)
    cli.start(main)
