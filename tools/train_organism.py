"""Trains an organism and writes it as a Hugging Face checkpoint.

    python -m tools.train_organism --workdir=DIR [--organism=ledger --steps=3500 --export=models/organisms/ledger]

Run again after a kill, it goes on from the last checkpoint and ends with the same parameters bit for bit: the rows of
a step are a function of (seed, step), and the state is parameters, optimiser and step number, nothing else.

Knows: the optimiser, checkpoints, the export. Does not know: the processes (`jaxmon.tasks.ledger`, `ladder`) or
their text (`tools.organism_ledger`, `tools.organism_ladder`).
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
from absl import app, flags, logging
from flax import nnx

from models.extend import extend
from models.loading import load
from models.qwen.config import QwenConfig, from_hf
from models.qwen.modeling import Qwen
from tools import organism_data as data
from tools import organism_export as export
from tools import organism_ladder, organism_ledger

ORGANISMS = {"ledger": organism_ledger.ORGANISM, "ladder": organism_ladder.ORGANISM}

FLAGS = flags.FLAGS

State = dict[str, Any]  # params, optimiser


def network(config: QwenConfig, seed: int) -> tuple[nnx.GraphDef, Any]:
    """The untrained network as `extend` takes it: graphdef and float32 parameters."""
    return nnx.split(Qwen(config, jnp.float32, nnx.Rngs(seed)))


def optimiser(learning_rate: float, steps: int) -> optax.GradientTransformation:
    """AdamW behind a norm clip; 200 steps (at most a tenth) of warm-up, then a cosine to a hundredth of the peak.

    b2 is 0.999, not the usual 0.95 to 0.99: with a short memory the second moment rises with the very batch that holds
    a rare branch, which shrinks that batch's step, and the branch is learnt at the wrong probability.
    """
    schedule = optax.warmup_cosine_decay_schedule(
        0.0, learning_rate, min(200, math.ceil(steps / 10)), steps, learning_rate / 100
    )
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, b2=0.999, weight_decay=0.01))


def predictions(extend: Callable[..., Any], rows: data.Batch, windows: bool) -> jax.Array:
    """Logits [B, T, V] of every next token, each read after the prompt that is shown at its column.

    With windows a row is read three times: before, in and after its window, each pass with the states that the earlier
    ones made of the reply. This is `jaxmon.sampling.decode.Window` for a text that is given.

    Args:
      extend: (tokens, positions, context, valid) -> (logits, segment).
    """
    columns = jnp.arange(rows.tokens.shape[1], dtype=jnp.int32)[None]
    positions = jnp.broadcast_to(columns, rows.tokens.shape)
    if not windows:
        return extend(rows.tokens, positions, (), rows.valid)[0]
    start, stop = rows.window[:, :1], rows.window[:, 1:]
    asked = columns < rows.reply[:, None]  # the prompt: each pass but the last reads its own
    before, during, after = columns < start, (start <= columns) & (columns < stop), columns >= jnp.maximum(start, stop)
    seen = lambda s, at: dataclasses.replace(s, valid=s.valid & at)
    first, s1 = extend(rows.tokens, positions, (), rows.valid & (asked | before))
    second, s2 = extend(rows.other, positions, (seen(s1, ~asked),), rows.other_valid & (asked | during))
    third, _ = extend(rows.tokens, positions, (s1, seen(s2, ~asked)), rows.valid & ~asked & after)
    pick = lambda at, a, b: jnp.where(at[..., None], a, b)
    return pick(during, second, pick(after & ~asked, third, first))


def make_step(
    graphdef: nnx.GraphDef, tx: optax.GradientTransformation, windows: bool = False
) -> Callable[..., tuple[State, jax.Array]]:
    """step(state, batch) -> state, mean cross entropy to the targets' laws in nats."""

    def loss(params: Any, rows: data.Batch) -> jax.Array:
        logits = predictions(functools.partial(extend, graphdef, params), rows, windows)
        law = jnp.take_along_axis(jax.nn.log_softmax(logits[:, :-1], -1), rows.choices[:, 1:], axis=-1)
        return -jnp.sum(rows.chances[:, 1:] * law) / jnp.sum(rows.chances[:, 1:])

    def step(state: State, rows: data.Batch) -> tuple[State, jax.Array]:
        value, gradient = jax.value_and_grad(loss)(state["params"], rows)
        with jax.numpy_dtype_promotion("standard"):  # optax takes powers of a float to its whole step number
            updates, inner = tx.update(gradient, state["optimiser"], state["params"])
        return {"params": optax.apply_updates(state["params"], updates), "optimiser": inner}, value

    return jax.jit(step, donate_argnums=0)


def train(
    organism: data.Organism,
    config: QwenConfig,
    workdir: Path,
    steps: int,
    size: int,
    seed: int,
    learning_rate: float,
    save_every: int,
    direct: float = 0.1,
    init: str = "",
) -> tuple[nnx.GraphDef, Any]:
    """Trains to `steps`, from the last checkpoint in `workdir` if there is one.

    Args:
      direct: share of the rows without a chain.
      init: folder of an exported organism to begin with; "" for random parameters.

    Returns:
      graphdef and parameters, as `extend` takes them.
    """
    words = organism.tokenizer()
    graphdef, params = network(config, seed)
    params = load(init).params if init else params
    tx = optimiser(learning_rate, steps)
    leaves, tree = jax.tree.flatten({"params": params, "optimiser": tx.init(params)})
    step = make_step(graphdef, tx, organism.windows)
    example = lambda rng: organism.example(rng, direct)
    rows = lambda i: data.batch(words, example, organism.width, seed, i, size)
    options = ocp.CheckpointManagerOptions(max_to_keep=2, enable_async_checkpointing=False)
    with ocp.CheckpointManager(workdir.absolute() / "checkpoints", options=options) as saved:
        done = saved.latest_step() or 0
        if done:
            leaves = saved.restore(done, args=ocp.args.StandardRestore(leaves))
        state = jax.tree.unflatten(tree, leaves)
        with ThreadPoolExecutor(1) as pool, open(workdir / "log.jsonl", "a") as log:
            coming, began = pool.submit(rows, done), time.time()
            for i in range(done, steps):
                now, coming = coming.result(), pool.submit(rows, i + 1)
                state, value = step(state, jax.tree.map(jnp.asarray, now))
                if i % 50 == 0 or i + 1 == steps:
                    nats = float(value)
                    if not np.isfinite(nats):
                        raise ValueError(f"step {i}: the loss is {nats}; try a smaller --learning_rate")
                    print(json.dumps({"step": i, "nats": nats, "seconds": time.time() - began}), file=log, flush=True)
                if (i + 1) % save_every == 0 or i + 1 == steps:
                    saved.save(i + 1, args=ocp.args.StandardSave(jax.tree.leaves(state)))
    return graphdef, state["params"]


def claim(workdir: Path, run: dict[str, Any]) -> None:
    """Makes `workdir` this run's own.

    Raises:
      ValueError: it belongs to a run with another configuration.
    """
    workdir.mkdir(parents=True, exist_ok=True)
    identity = workdir / "config.json"
    if identity.exists() and json.loads(identity.read_text()) != run:
        raise ValueError(f"{identity}: this run was made with another configuration; choose another --workdir")
    identity.write_text(json.dumps(run, indent=1) + "\n")


def define_flags() -> None:
    flags.DEFINE_enum("organism", "ledger", list(ORGANISMS), "which organism")
    flags.DEFINE_string("workdir", None, "checkpoints and log.jsonl; running again resumes", required=True)
    flags.DEFINE_string("export", "", "folder for the Hugging Face checkpoint; empty: WORKDIR/export")
    flags.DEFINE_integer("steps", 3500, "optimiser steps", lower_bound=1)
    flags.DEFINE_integer("batch", 64, "conversations per step", lower_bound=1)
    flags.DEFINE_integer("seed", 0, "seed of the initial parameters and of all data")
    flags.DEFINE_float("direct", 0.1, "share of the rows without a chain", 0.0, 1.0)
    flags.DEFINE_string("init", "", "folder of an exported organism to begin with; empty: random parameters")
    flags.DEFINE_integer("save_every", 250, "steps between checkpoints", lower_bound=1)
    flags.DEFINE_integer("layers", 2, "L", lower_bound=1)
    flags.DEFINE_integer("hidden", 64, "D", lower_bound=8)
    flags.DEFINE_integer("intermediate", 256, "width of the MLP", lower_bound=8)
    flags.DEFINE_float("learning_rate", 6e-3, "peak of the warm-up and cosine schedule", lower_bound=0.0)


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"unknown arguments {argv[1:]}")
    logging.set_verbosity(logging.WARNING)  # orbax tells every step of a save
    workdir = Path(FLAGS.workdir)
    organism = ORGANISMS[FLAGS.organism]
    fields = export.fields(organism.tokenizer(), FLAGS.hidden, FLAGS.intermediate, FLAGS.layers)
    choices = ("organism", "steps", "batch", "seed", "learning_rate", "direct", "init")
    run = {k: FLAGS[k].value for k in choices} | fields
    try:
        claim(workdir, run)
        f = FLAGS
        numbers = (f.steps, f.batch, f.seed, f.learning_rate, f.save_every, f.direct, f.init)
        _, params = train(organism, from_hf(fields), workdir, *numbers)
    except (ValueError, OSError) as error:
        sys.exit(f"error: {error}")
    folder = Path(FLAGS.export) if FLAGS.export else workdir / "export"
    export.write(folder, fields, params, organism.tokenizer())
    print(f"wrote {folder}")


if __name__ == "__main__":
    define_flags()
    app.run(main)
