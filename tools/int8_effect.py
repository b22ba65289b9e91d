"""What int8 matrices change in a study's answers: option probabilities without a chain, and answers of the same chains.

    python -m tools.int8_effect --config=experiments/configs/ledger.py --chains=200
    python -m tools.int8_effect --model=weights/qwen2.5-coder-0.5b-instruct.gguf

With --model alone: the law of every next token in the prompts of tools/parity.py. Otherwise both models read the same
arms; chain i of an arm is drawn with the same random numbers under both.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from absl import flags

from experiments import cli


def next_tokens(path: str) -> None:
    """Total variation between the two next-token laws at every position of a few prompts; flips of the top token."""
    import jax
    import jax.numpy as jnp

    from models.loading import load
    from tools.parity import PROMPTS

    jax.config.update("jax_default_matmul_precision", "highest")
    laws = []
    for quantised in (False, True):
        model = load(path, quantise=quantised)
        ids = [model.tokenizer.encode(text, add_special_tokens=False).ids[:16] for text in PROMPTS]
        tokens = np.array([row for row in ids if len(row) == 16], np.int32)
        places = np.broadcast_to(np.arange(16, dtype=np.int32), tokens.shape)
        logits, _ = jax.jit(model.extend, static_argnums=0)(model.graphdef, model.params, tokens, places)
        found = jax.nn.softmax(logits[..., : model.vocabulary].astype(jnp.float32), -1)
        laws.append(np.asarray(found).reshape(-1, model.vocabulary))
        del model, logits, found
    distance = np.abs(laws[1] - laws[0]).sum(-1) / 2
    flips = int((laws[0].argmax(-1) != laws[1].argmax(-1)).sum())
    print(
        f"{len(distance)} positions: total variation mean {distance.mean():.4f}, largest {distance.max():.4f}; "
        f"top token differs at {flips}"
    )


def main(argv: list[str]) -> None:
    from experiments import draws, opening
    from experiments.configs.base import check
    from jaxmon.arms import X1, arms
    from models.memory import gib, weights

    f = flags.FLAGS
    if f.model:
        next_tokens(f.model)
        return
    if argv[1:] or f.config is None:
        raise ValueError("--config is needed; fields are set with --config.field=value")
    config = check(f.config) | {"judge": "lexical"}
    laws: list[np.ndarray] = []
    answers: list[list[str | None]] = []
    for quantised in (False, True):
        with opening.reopened(config | {"int8": quantised}, Path(".")) as opened:
            drawer = opening.drawer(opened)
            print(f"int8 {quantised}: weights {gib(weights(drawer.model.params))}, {config['dtype']}")
            shown = [
                (n, r) for record in opened.task.records for n, r in arms(record, opened.studied[record.id]).items()
            ]
            opened_arms = [draws.open_arm(drawer, r, n) for n, r in shown[: f.arms or None]]
            laws.append(np.concatenate([draws.no_cot(drawer, [arm])[0]["probabilities"] for arm in opened_arms]))
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
    flags.DEFINE_string("model", None, "A checkpoint, to compare next-token laws alone.")
    flags.DEFINE_integer("arms", 0, "Arms to compare, from the first; 0 for all.", 0)
    flags.DEFINE_integer("chains", 200, "Chains of each X = 1 arm; 0 for none.", 0)
    cli.start(main)
