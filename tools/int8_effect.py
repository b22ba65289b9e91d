"""What int8 matrices change in a study's answers: option probabilities without a chain, and answers of the same chains.

    python -m tools.int8_effect --config=experiments/configs/ledger.py --chains=200
    python -m tools.int8_effect --config=experiments/configs/thyroid_qwen25.py --arms=2 --chains=0

Both models read the same prompts; chain i of an arm is drawn with the same random numbers under both.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from absl import flags

from experiments import cli


def main(argv: list[str]) -> None:
    from experiments import draws, study
    from experiments.configs.base import check
    from jaxmon.arms import X1, arms
    from models.memory import gib, weights

    f = flags.FLAGS
    if argv[1:] or f.config is None:
        raise ValueError("--config is needed; fields are set with --config.field=value")
    config = check(f.config) | {"judge": "lexical"}
    laws: list[np.ndarray] = []
    answers: list[list[str | None]] = []
    for quantised in (False, True):
        with study.reopened(config | {"int8": quantised}, Path(".")) as opened:
            drawer = study.drawer(opened)
            print(f"int8 {quantised}: weights {gib(weights(drawer.model.params))}, {config['dtype']}")
            shown = [
                (n, r) for record in opened.task.records for n, r in arms(record, opened.studied[record.id]).items()
            ]
            opened_arms = [draws.open_arm(drawer, r, n) for n, r in shown[: f.arms or None]]
            laws.append(np.concatenate([draws.no_cot(drawer, arm)["probabilities"] for arm in opened_arms]))
            found: list[str | None] = []
            for arm in (a for a in opened_arms if a.name == X1 and f.chains):
                (table,) = draws.draw(drawer, [draws.Shard(arm, 0, min(f.chains, drawer.size))])
                found += [code or None for code in table.column("code").to_pylist()]
            answers.append(found)
    change = np.abs(laws[1] - laws[0])
    print(
        f"{len(opened_arms)} arms, {change.size} option probabilities: change mean {change.mean():.2e}, "
        f"largest {change.max():.2e}"
    )
    if answers[0]:
        same = np.mean([a == b for a, b in zip(*answers, strict=True)])
        print(f"{len(answers[0])} chains of X = 1: same answer in {same:.1%}")


if __name__ == "__main__":
    from ml_collections import config_flags

    config_flags.DEFINE_config_file("config", None, "The study's config.")
    flags.DEFINE_integer("arms", 0, "Arms to compare, from the first; 0 for all.", 0)
    flags.DEFINE_integer("chains", 200, "Chains of each X = 1 arm; 0 for none.", 0)
    cli.start(main)
