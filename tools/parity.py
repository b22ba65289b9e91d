"""Compares a real checkpoint with `transformers` on the same file: prompt logits, then greedy text.

    python -m tools.parity --weights=weights/qwen2.5-coder-0.5b-instruct.gguf

Claim: on each prompt the logits agree to --bound (1e-3) in float32 and 64 greedy tokens are the same. Wants torch and
accelerate (a development install); some 8 GB of memory for a 0.5 B model. Exit status 1 if a claim fails.
"""

from __future__ import annotations

import functools
import json
import platform
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from absl import app, flags

from models.context import empty, write
from models.loading import CheckpointError, Model, load

FLAGS = flags.FLAGS

PROMPTS = (
    "Write a Python function that returns the n-th Fibonacci number.",
    "A patient has a TSH of 12.4 mU/L and a low free T4. Which diagnosis fits best? Think step by step.",
    "Explain to a child, in at least five sentences, why the sky is blue.",
    "What is 17 * 24? Explain each step.",
    "Write an SQL query that counts the orders of each customer, and explain every line of it.",
)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _prefill(extend: Any, graphdef: Any, params: Any, tokens: jax.Array) -> Any:
    positions = jnp.arange(tokens.shape[1], dtype=jnp.int32)[None]
    return extend(graphdef, params, tokens, positions)


@functools.partial(jax.jit, static_argnums=(0, 1), donate_argnums=4)
def _step(extend: Any, graphdef: Any, params: Any, prompt: Any, buffer: Any, token: jax.Array, i: jax.Array) -> Any:
    position = (prompt.positions[:, -1] + 1 + i)[:, None]
    logits, new = extend(graphdef, params, token[:, None], position, (prompt, buffer))
    return logits[:, 0], write(buffer, new, i[None], jnp.ones(1, bool))


def greedy(model: Model, prompt: list[int], steps: int) -> tuple[list[int], np.ndarray, float]:
    """Our greedy decoding of one prompt: (tokens, prompt logits [T, V], smallest gap between the two best logits).

    At most `steps` tokens, a stop token included.
    """
    with jax.default_matmul_precision("highest"):
        logits, segment = _prefill(model.extend, model.graphdef, model.params, jnp.asarray([prompt], jnp.int32))
        prompt_logits, row = np.asarray(logits[0]), logits[:, -1]
        buffer, chosen, gap = empty(segment, 1, steps), [], float("inf")
        for i in range(steps):
            best, second = (float(v) for v in jax.lax.top_k(row[0, : model.vocabulary], 2)[0])
            gap = min(gap, best - second)
            chosen.append(int(jnp.argmax(row[0, : model.vocabulary])))
            if chosen[-1] in model.stop_ids or i == steps - 1:
                break
            token = jnp.asarray(chosen[-1:], jnp.int32)
            row, buffer = _step(
                model.extend, model.graphdef, model.params, segment, buffer, token, jnp.asarray(i, jnp.int32)
            )
    return chosen, prompt_logits, gap


def compare(weights: Path, steps: int) -> list[dict[str, Any]]:
    """One row per prompt: greedy tokens equal or not, largest logit difference, smallest top-two gap, the text."""
    from tests import reference  # torch stays out of everything that does not compare with it

    model = load(weights)
    theirs = reference.from_gguf(weights)
    rows = []
    for user in PROMPTS:
        prompt = model.tokenizer.encode(model.chat.render(user), add_special_tokens=False).ids
        tokens, logits, gap = greedy(model, prompt, steps)
        expected = reference.greedy(theirs, prompt, steps, model.stop_ids)
        wanted, _ = reference.run(theirs, np.asarray([prompt]))
        rows.append(
            {
                "prompt": user,
                "prompt_ids": prompt,
                "tokens": tokens,
                "expected_tokens": expected,
                "same_text": tokens == expected,
                "max_abs_logit_difference": float(np.abs(logits - wanted[0]).max()),
                "largest_logit": float(np.abs(wanted).max()),
                "expected_last_logits": [round(float(v), 4) for v in wanted[0, -1, :8]],
                "smallest_gap": gap,
                "text": model.tokenizer.decode(tokens),
            }
        )
    return rows


def rough(weights: Path, rows: list[dict[str, Any]]) -> dict[str, float]:
    """bfloat16 against float32, both ours, teacher-forced on prompts and answers.

    Returns: positions; relative and largest error of the logits; share of positions where the top token differs, and of
    those where the two best were further apart than twice the error (none may be).
    """
    exact, narrow = load(weights), load(weights, "bfloat16")
    squares, largest, flips, clear, positions = np.zeros(2), 0.0, 0, 0, 0
    with jax.default_matmul_precision("highest"):
        for row in rows:
            ids = jnp.asarray([row["prompt_ids"] + row["tokens"]], jnp.int32)
            a, b = (np.asarray(_prefill(m.extend, m.graphdef, m.params, ids)[0][0]) for m in (exact, narrow))
            off, flipped = np.abs(a - b).max(-1), a.argmax(-1) != b.argmax(-1)
            best = np.partition(a, -2, -1)[:, -2:]
            squares += ((a - b) ** 2).sum(), ((a - a.mean()) ** 2).sum()
            largest, flips = max(largest, float(off.max())), flips + int(flipped.sum())
            clear += int((flipped & (best[:, 1] - best[:, 0] > 2 * off)).sum())
            positions += len(a)
    shares = {"flips": flips / positions, "clear_flips": clear / positions}
    return {
        "positions": positions,
        "relative_error": float((squares[0] / squares[1]) ** 0.5),
        "largest": largest,
    } | shares


def define_flags() -> None:
    flags.DEFINE_string("weights", None, "a GGUF file", required=True)
    flags.DEFINE_integer("tokens", 64, "greedy tokens per prompt", lower_bound=1)
    flags.DEFINE_float("bound", 1e-3, "largest absolute difference of prompt logits", lower_bound=0.0)
    flags.DEFINE_bool("bfloat16", False, "compare bfloat16 with float32 on the same texts, too")
    flags.DEFINE_string("record", None, "write the rows to this JSON file, too")


def main(argv: list[str]) -> None:
    del argv
    weights = Path(FLAGS.weights)
    try:
        rows = compare(weights, FLAGS.tokens)
    except ImportError as error:
        sys.exit(f"parity needs torch, transformers and accelerate: {error}")
    except CheckpointError as error:
        sys.exit(str(error))
    shown = ("prompt", "same_text", "max_abs_logit_difference", "largest_logit", "smallest_gap", "text")
    for row in rows:
        print(f"{len(row['tokens'])} tokens", json.dumps({k: row[k] for k in shown}, ensure_ascii=False))
    if FLAGS.bfloat16:
        print("bfloat16", json.dumps(rough(weights, rows)))
    if FLAGS.record:
        lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        Path(FLAGS.record).write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    good = [r["same_text"] and r["max_abs_logit_difference"] <= FLAGS.bound for r in rows]
    print(f"{sum(good)} of {len(good)} prompts agree ({platform.machine()}, jax {jax.__version__}, {jax.devices()[0]})")
    if not all(good):
        sys.exit(1)


if __name__ == "__main__":
    define_flags()
    app.run(main)
