"""Speed, as ratios inside one run on one machine: medians of alternating repeats.

    python -m tools.bench --model=weights/qwen2.5-coder-0.5b-instruct.gguf [--out=bench.json]

early   early answers at 20 positions from slices of one cached chain, against one teacher-forced pass over the chains
        and against reading every prefix anew

Knows: how work is timed. Does not know: what is right (the tests do).
"""

from __future__ import annotations

import functools
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from absl import flags

from experiments import cli

PROBES, FORCED, OPTIONS = 20, 3, 10


def medians(work: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Seconds per call, the median of alternating repeats after one call that compiles."""
    import jax

    for call in work.values():
        jax.block_until_ready(call())
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(repeats):
        for name, call in work.items():
            began = time.perf_counter()
            jax.block_until_ready(call())
            seconds[name].append(time.perf_counter() - began)
    return {name: statistics.median(values) for name, values in seconds.items()}


def early(model: Any, chains: int, prompt: int, length: int, repeats: int) -> dict[str, float]:
    """Seconds of one pass over the chains, of all early answers after it, and of the same answers without a cache."""
    import jax.numpy as jnp
    import numpy as np

    from jaxmon import early as answers
    from jaxmon.answers import options
    from jaxmon.decode import pad, read

    extend = functools.partial(model.extend, model.graphdef)
    rng = np.random.default_rng(0)
    draw = lambda *shape: rng.integers(0, model.vocabulary, shape).astype(np.int32)
    prefix = read(extend, model.params, *pad(draw(prompt).tolist(), 8))
    tokens, lengths = jnp.asarray(draw(chains, length)), jnp.full((chains,), length, jnp.int32)
    choices = options([(int(i),) for i in rng.choice(model.vocabulary, OPTIONS, replace=False)])
    forced = jnp.asarray(draw(FORCED))
    cuts = jnp.asarray([answers.positions(0, length, PROBES)] * chains, jnp.int32)
    given = (extend, model.params, prefix)
    states = answers.read_chains(*given, tokens, lengths)
    at_cuts = lambda s, c: answers.early_answers(*given, s, c, forced, choices, model.vocabulary)

    def anew() -> list[Any]:
        """Every prefix read again; padded to multiples of an eighth of the chain, so that few programs compile."""
        step, out = max(1, length // 8), []
        for k in range(PROBES):
            cut = int(cuts[0, k])
            width = min(length, -(-cut // step) * step)
            read_again = answers.read_chains(*given, tokens[:, :width], jnp.full((chains,), cut, jnp.int32))
            out.append(at_cuts(read_again, cuts[:, k : k + 1]))
        return out

    work = {
        "pass": lambda: answers.read_chains(*given, tokens, lengths),
        "answers": lambda: at_cuts(states, cuts),
        "anew": anew,
    }
    return medians(work, repeats)


def main(argv: list[str]) -> None:
    if argv[1:]:
        raise ValueError(f"unexpected argument {argv[1]!r}")
    import jax

    from models.loading import load

    f = flags.FLAGS
    model = load(f.model)
    seconds = early(model, f.chains, f.prompt, f.length, f.repeats)
    ours = seconds["pass"] + seconds["answers"]
    result = {
        "machine": {"cpus": os.cpu_count(), "platform": platform.platform(), "device": jax.devices()[0].device_kind},
        "versions": {name: metadata.version(name) for name in ("jax", "jaxlib", "flax", "numpy")},
        "settings": {"model": model.name, "chains": f.chains, "prompt": f.prompt, "length": f.length},
        "early": seconds | {"anew / ours": seconds["anew"] / ours, "ours / pass": ours / seconds["pass"]},
    }
    print(f"one teacher-forced pass over {f.chains} chains of {f.length} tokens: {seconds['pass']:.3f} s")
    print(f"early answers at {PROBES} positions, the pass included: {ours:.3f} s, {ours / seconds['pass']:.2f} passes")
    print(f"every prefix read anew: {seconds['anew']:.3f} s, {seconds['anew'] / ours:.1f} times as long")
    if f.out:
        Path(f.out).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    flags.DEFINE_string("model", "weights/qwen2.5-coder-0.5b-instruct.gguf", "A checkpoint.")
    flags.DEFINE_string("out", "", "A JSON file for the figures.")
    flags.DEFINE_integer("chains", 8, "Chains.", 1)
    flags.DEFINE_integer("prompt", 448, "Tokens of the prompt.", 1)
    flags.DEFINE_integer("length", 256, "Tokens of a chain.", 1)
    flags.DEFINE_integer("repeats", 3, "Timed calls of each.", 1)
    cli.start(main)
