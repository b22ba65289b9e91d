"""What is not tokens per second: start-up, compilations, and memory by the compiler's own account.

Knows: programs as subprocesses, compiled programs. Does not know: how fast they are.
"""

from __future__ import annotations

import functools
import statistics
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

from jaxmon.sampling.decode import pad, read, sample
from jaxmon.sampling.keys import arm_key
from jaxmon.sampling.sampler import Sampling
from models.loading import Model
from tools.bench_timing import Figure

COMPILED = "/jax/core/compile/backend_compile_duration"
PLAIN = Sampling(1.0, 0, 1.0, 0.0)
GIB = 2**30


def startup(repeats: int) -> list[Figure]:
    """Seconds of fresh processes: --help of the main program, and from nothing to the first token of the organism."""
    first = (
        "import functools; from models.loading import load; from jaxmon.sampling.decode import pad, read; "
        "m = load('models/organisms/ledger'); "
        "read(functools.partial(m.extend, m.graphdef), m.params, *pad([1, 2, 3], 32)).logits.block_until_ready()"
    )
    work = {
        "experiments.monitorability --help": ["-m", "experiments.monitorability", "--help"],
        "import of jaxmon's sampler": ["-c", "import jaxmon.sampling.decode"],
        "first logits of the embedded organism, from nothing": ["-c", first],
    }
    found = []
    for name, arguments in work.items():
        seconds = []
        for _ in range(repeats):
            began = time.perf_counter()
            subprocess.run([sys.executable, *arguments], capture_output=True, check=False)
            seconds.append(time.perf_counter() - began)
        found.append(Figure(name, statistics.median(seconds), "s", "<= 1.5" if "--help" in name else ""))
    return found


def compilations(model: Model, slots: int = 4, length: int = 8, bucket: int = 64) -> list[Figure]:
    """Programs that are compiled for a first prompt, for another of the same bucket, and for one of the next bucket."""
    count = [0]

    def listen(event: str, duration_secs: float, **_: str | int) -> None:
        count[0] += event == COMPILED

    jax.monitoring.register_event_duration_secs_listener(listen)
    extend = functools.partial(model.extend, model.graphdef)
    settings = {"sampling": PLAIN, "slots": slots, "length": length, "vocabulary": model.vocabulary}
    seen = []
    for size in (bucket - 14, bucket - 3, bucket + 6):
        before = count[0]
        prefix = read(extend, model.params, *pad(list(range(1, size + 1)), bucket))
        ids, stop = np.arange(slots, dtype=np.int32), np.array([-1], np.int32)
        key = arm_key(0, str(size), "x1")
        sample(extend, model.params, prefix, key, ids, np.int32(slots), stop, **settings).tokens.block_until_ready()
        seen.append(count[0] - before)
    return [
        Figure("programs compiled for a first prompt", seen[0], ""),
        Figure("for another prompt of the same bucket", seen[1], "", "0"),
        Figure("for a prompt of the next bucket", seen[2], ""),
    ]


def memory(model: Model, prompt: int, length: int, slots: int) -> list[Figure]:
    """Bytes of `sample` beside the weights, by the compiler: what the loop holds, over prompts, slots and lengths."""
    found = []
    for p, s, t in (
        (prompt, slots, length),
        (2 * prompt, slots, length),
        (prompt, 2 * slots, length),
        (prompt, slots, 2 * length),
    ):
        found.append(
            Figure(f"memory beside weights: prompt {p}, {s} slots, length {t}", used(model, p, s, t) / GIB, "GiB")
        )
    base, longer = found[0].value, found[1].value
    owed = prompt * _per_token(model) / GIB
    found.append(
        Figure("a longer prompt's bytes / its keys and values once", (longer - base) / owed, "", "1, not the slots")
    )
    return found


def _per_token(model: Model) -> float:
    shapes = jax.eval_shape(
        lambda p: model.extend(model.graphdef, p, jnp.zeros((1, 1), jnp.int32), jnp.zeros((1, 1), jnp.int32))[1],
        model.params,
    )
    return float(sum(a.size * a.dtype.itemsize for a in (*shapes.keys, *shapes.values)))


def used(model: Model, prompt: int, slots: int, length: int) -> float:
    """Bytes of arguments, results and temporaries of `sample` beside the weights."""
    extend = functools.partial(model.extend, model.graphdef)
    shape = lambda *s, kind=jnp.int32: jax.ShapeDtypeStruct(s, kind)
    prefix = jax.eval_shape(functools.partial(read, extend), model.params, shape(1, prompt), shape())
    key = jax.eval_shape(lambda: arm_key(0, "r", "x1"))
    settings = {"sampling": PLAIN, "slots": slots, "length": length, "vocabulary": model.vocabulary}
    lowered = sample.lower(extend, model.params, prefix, key, shape(slots), shape(), shape(1), **settings)
    account = lowered.compile().memory_analysis()
    if account is None:
        raise ValueError("this backend's compiler gives no account of its memory")
    weights = sum(a.size * a.dtype.itemsize for a in jax.tree.leaves(model.params))
    return float(account.temp_size_in_bytes + account.argument_size_in_bytes + account.output_size_in_bytes - weights)
