"""Tokens per second of `decode.sample`: full chains, chains of unlike length with refill, scaling, FLOP/s.

Prompts are random tokens. Chains that must not stop have no stop token; chains of unlike length are drawn at a
temperature so high that every token is about as likely, with a share of the vocabulary as stop tokens.

Knows: the sampler and the model's FLOPs. Does not know: other programs (bench_others.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments import draws
from experiments.planning import flops
from jaxmon.sampling.decode import pad, read, sample
from jaxmon.sampling.keys import arm_key
from jaxmon.sampling.sampler import Sampling
from models.loading import Model
from tools.bench_others import Rival
from tools.bench_timing import Figure, medians

UNIFORM = 1e4  # a temperature at which every token is about as likely


def chains(
    model: Model,
    n: int,
    prompt: int,
    length: int,
    slots: int,
    stop: Sequence[int] = (),
    heat: float = 1.0,
    tail: tuple[int, ...] = (),
) -> Callable[..., Any]:
    """A call that reads a prompt of random tokens and draws n chains after it, or as many as it is told."""
    extend = functools.partial(model.extend, model.graphdef)
    tokens = pad(np.random.default_rng(0).integers(0, model.vocabulary, prompt).tolist(), 64)
    key, ids = arm_key(0, "bench", "x1"), jnp.arange(n, dtype=jnp.int32)
    ends = jnp.asarray(stop or [-1], jnp.int32)
    sampling = Sampling(heat, 0, 1.0, 0.0)
    settings = {"sampling": sampling, "slots": slots, "length": length, "vocabulary": model.vocabulary, "tail": tail}

    def call(count: int = n) -> Any:
        prefix = read(extend, model.params, *tokens)
        return sample(extend, model.params, prefix, key, ids, jnp.int32(count), ends, **settings)

    return call


def decode(
    model: Model, n: int, prompt: int, length: int, slots: int, repeats: int, rivals: Mapping[str, Rival]
) -> list[Figure]:
    """(a) and (b): tokens/s of n full chains and of others' calls; FLOP/s beside a large float32 matrix product's."""
    side = 4096
    left, right = jnp.ones((side, side), jnp.float32), jnp.ones((side, side), jnp.float32)
    product = jax.jit(lambda a, b: a @ b)
    own = chains(model, n, prompt, length, slots)
    work = {"chains": own, "product": lambda: product(left, right)} | {k: r.call for k, r in rivals.items()}
    ready = {"chains": lambda: own(0)} | {k: r.ready for k, r in rivals.items()}
    seconds = medians(work, repeats, ready)
    done = flops(model, n * length, prompt + length / 2)
    rate, machine = done / seconds["chains"], 2 * side**3 / seconds["product"]
    speed = n * length / seconds["chains"]
    others = {name: rival.tokens / seconds[name] for name, rival in rivals.items()}
    return [
        Figure(f"{n} chains of {length} after {prompt}, {slots} slots", speed, "tokens/s"),
        Figure("decode, the prompt's reading included", rate / 1e9, "GFLOP/s"),
        Figure(f"matrix product of {side} x {side}", machine / 1e9, "GFLOP/s"),
        Figure("decode / matrix product", rate / machine, "", ">= 0.75 at 128 slots"),
        *(Figure(name, other, "tokens/s") for name, other in others.items()),
        *(Figure(f"ours / {name}", speed / other, "times") for name, other in others.items()),
    ]


def refill(model: Model, n: int, prompt: int, length: int, slots: int, repeats: int) -> list[Figure]:
    """Useful tokens/s and slot occupancy where chains stop at different lengths (mean about a third of `length`)."""
    stop = range(model.vocabulary * 3 // length)
    tail = draws.halves(slots)
    drawing = lambda tail: chains(model, n, prompt, length, slots, stop, UNIFORM, tail)
    work = {"one loop": drawing(()), "narrowing": drawing(tail)}
    lengths = np.asarray(work["narrowing"]().lengths)
    seconds = medians(work, repeats, {name: functools.partial(call, 0) for name, call in work.items()})
    what = f"{n} chains of 1 to {lengths.max()}, mean {lengths.mean():.0f}"
    return [
        Figure(
            f"useful tokens, {what}, {slots} slots, fewer at the end", lengths.sum() / seconds["narrowing"], "tokens/s"
        ),
        Figure(f"the same, {slots} slots until the last has ended", lengths.sum() / seconds["one loop"], "tokens/s"),
        Figure("slot occupancy, fewer slots at the end", occupancy(lengths, slots, tail), "", ">= 0.95"),
        Figure("slot occupancy, all slots until the end", occupancy(lengths, slots), ""),
        Figure("in batches that wait for their longest", waiting(lengths, slots), ""),
    ]


def occupancy(lengths: np.ndarray, slots: int, tail: Sequence[int] = ()) -> float:
    """Useful share of slot-steps where a free slot takes the next chain at once, as `sample` does.

    Args: tail: falling numbers of slots to go on with once no more chains than that are left.
    """
    widths, waiting, spent = [slots, *tail], list(lengths[::-1]), 0
    live: list[int] = []
    while waiting or live:
        while len(widths) > 1 and len(live) + len(waiting) <= widths[1]:
            widths.pop(0)
        live += [waiting.pop() for _ in range(min(len(waiting), widths[0] - len(live)))]
        steps = min(live)  # until the next chain ends
        live, spent = [left - steps for left in live if left > steps], spent + steps * widths[0]
    return float(lengths.sum() / spent)


def waiting(lengths: np.ndarray, slots: int) -> float:
    """The same share for batches of `slots` chains that are drawn until the last has ended."""
    return float(lengths.sum() / (slots * sum(lengths[i : i + slots].max() for i in range(0, len(lengths), slots))))


def scaling(model: Model, prompt: int, length: int, slots: int, repeats: int) -> list[Figure]:
    """(g): tokens/s over slots, prompt lengths and chain lengths, one changed at a time; two fillings of the slots."""
    at = {"slots": slots, "prompt": prompt, "length": length}
    cases = [
        *({"slots": s} for s in (8, 32)),
        *({"prompt": p} for p in (prompt // 4, prompt * 2)),
        *({"length": t} for t in (length // 4,)),
    ]
    found = []
    for case in ({}, *cases):
        c = at | case
        call = chains(model, c["slots"], c["prompt"], c["length"], c["slots"])
        seconds = medians({"chains": call}, repeats, {"chains": functools.partial(call, 0)})["chains"]
        what = f"{c['slots']} slots, prompt {c['prompt']}, length {c['length']}"
        found.append(Figure(what, c["slots"] * c["length"] / seconds, "tokens/s"))
    return found
