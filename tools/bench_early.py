"""Early answers at 20 positions from slices of one cached chain, against one teacher-forced pass and prefixes anew."""

from __future__ import annotations

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxmon.sampling import early as answers
from jaxmon.sampling.answers import options
from jaxmon.sampling.decode import pad, read
from models.loading import Model
from tools.bench_timing import Figure, medians

PROBES, FORCED, OPTIONS = 20, 3, 10


def early(model: Model, chains: int, prompt: int, length: int, rows: int, repeats: int) -> list[Figure]:
    """Chains of `length` random tokens after a prompt of random tokens; ten options of one token."""
    extend = functools.partial(model.extend, model.graphdef)
    rng = np.random.default_rng(0)
    draw = lambda *shape: rng.integers(0, model.vocabulary, shape, np.int32)
    prefix = read(extend, model.params, *pad(rng.integers(0, model.vocabulary, prompt).tolist(), 8))
    tokens, lengths = jnp.asarray(draw(chains, length)), jnp.full((chains,), length, jnp.int32)
    choices = options([(int(i),) for i in rng.choice(model.vocabulary, OPTIONS, replace=False)])
    forced = jnp.asarray(draw(FORCED))
    cuts = jnp.asarray([answers.positions(0, length, PROBES)] * chains, jnp.int32)
    given = (extend, model.params, prefix)
    states = answers.read_chains(*given, tokens, lengths)
    at_cuts = lambda s, c: answers.early_answers(*given, s, c, forced, choices, model.vocabulary, rows)

    def anew() -> list[Any]:
        """Every prefix read again; padded to multiples of an eighth of the chain, so that few programs compile."""
        step, out = max(1, length // 8), []
        for k in range(PROBES):
            cut = int(cuts[0, k])
            width = min(length, -(-cut // step) * step)
            read_again = answers.read_chains(*given, tokens[:, :width], jnp.full((chains,), cut, jnp.int32))
            out.append(at_cuts(read_again, cuts[:, k : k + 1]))
        return out

    text = jnp.asarray(draw(1, prompt))

    def whole() -> list[Any]:
        """Prompt and prefix read again for every cut, as without any cache: the prompt's reading alone is added."""
        return [read(extend, model.params, text, np.int32(prompt)) for _ in range(PROBES)]

    work = {
        "pass": lambda: answers.read_chains(*given, tokens, lengths),
        "answers": lambda: at_cuts(states, cuts),
        "anew": anew,
        "prompts": whole,
    }
    seconds = medians(work, repeats)
    ours = seconds["pass"] + seconds["answers"]
    what = f"{chains} chains of {length} after {prompt}"
    return [
        Figure(f"one teacher-forced pass, {what}", seconds["pass"], "s"),
        Figure(f"early answers at {PROBES} positions, the pass included", ours / seconds["pass"], "passes"),
        Figure("every prefix read anew behind the cached prompt / early answers", seconds["anew"] / ours, "times"),
        Figure(
            "prompt (once for all chains) and prefix read anew / early answers",
            (seconds["anew"] + seconds["prompts"]) / ours,
            "times",
            ">= 10",
        ),
    ]
