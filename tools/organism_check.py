"""Does a trained organism follow its process? Its own p11, p01, pi_Z and p10 beside the truth, without sampling.

    python -m tools.organism_check --model=models/organisms/ledger [--records=24 --seed=0]

The process can write some thousand chains for a prompt (`ledger_truth.paths`). The model's probability of each is
teacher-forced and summed. One thing is taken from the process: the code after a slip is uniform over the 255 others.
The `leak` is the model's mass on anything the process cannot write (eight codes after a slip stand for all): its p11
and p01 lie between the sum and the sum plus the leak.

Knows: a loaded model and the process. Does not know: samplers, counts.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from absl import app, flags

from jaxmon.records import Record, remove
from jaxmon.tasks import ledger
from jaxmon.tasks.ledger_truth import VERBS, Path, direct, paths, truth
from models.loading import Model, load
from tools import organism_data as data

BLOCK, PROMPT, REPLY = 512, 40, 32  # rows of one call; a prompt's and a reply's tokens, padded
FEW = range(3, len(ledger.CODES), 32)  # the codes after a slip that stand for all where the leak is summed


@functools.partial(jax.jit, static_argnums=0)
def _nats(extend: Any, params: Any, prompt: jax.Array, replies: jax.Array, scored: jax.Array) -> jax.Array:
    """Negative log likelihood of the `scored` tokens of replies int32 [B, R] after a prompt int32 [1, P]: [B].

    Both are padded with -1 on the right.
    """
    real, valid = prompt >= 0, replies >= 0
    size = real.sum(dtype=jnp.int32)
    place = jnp.arange(prompt.shape[1], dtype=jnp.int32)[None]
    first, segment = extend(params, jnp.maximum(prompt, 0), place, (), real, jnp.reshape(size - 1, (1, 1)))
    targets = jnp.maximum(replies, 0)
    positions = jnp.broadcast_to(size + jnp.arange(replies.shape[1], dtype=jnp.int32)[None], replies.shape)
    logits, _ = extend(params, targets, positions, (segment,), valid, None)
    first = jnp.broadcast_to(first, (replies.shape[0], 1, first.shape[2]))
    law = jax.nn.log_softmax(jnp.concatenate([first, logits[:, :-1]], axis=1), -1)
    chosen = jnp.take_along_axis(law, targets[..., None], axis=-1)[..., 0]
    return -jnp.where(scored, chosen, 0.0).sum(-1)


def probabilities(model: Model, record: Record, given: str, replies: Sequence[str]) -> np.ndarray:
    """P(reply | prompt, given) under the model, all tokens but the code after a slip: float64 [n]."""
    ids = lambda text: model.tokenizer.encode(text, add_special_tokens=False).ids
    pad = lambda rows, width: np.array([[*row, *[-1] * (width - len(row))] for row in rows], np.int32)
    prompt = pad([ids(data.prompt(record) + given)], PROMPT + REPLY)
    rows = pad([ids(r) for r in replies], REPLY)
    rows = np.concatenate([rows, np.repeat(rows[:1], -len(rows) % (BLOCK if len(rows) > 64 else 64), axis=0)])
    scored = rows >= 0
    scored[:, 1:] &= rows[:, :-1] != model.tokenizer.token_to_id(f" {ledger.SLIPPED}")
    extend = _Bound(model.extend, model.graphdef)
    cuts = [slice(i, i + BLOCK) for i in range(0, len(rows), BLOCK)]
    blocks = [_nats(extend, model.params, prompt, rows[c], scored[c]) for c in cuts]
    return np.exp(-np.concatenate(blocks).astype(np.float64))[: len(replies)]


@dataclasses.dataclass(frozen=True)
class _Bound:
    """extend with its static half filled in; equal and hashable by value, so that it compiles once."""

    extend: Any
    graphdef: Any

    def __call__(self, *args: Any) -> Any:
        return self.extend(self.graphdef, *args)


@dataclasses.dataclass(frozen=True)
class Law:
    """A model's chain distribution on a prompt: target mass, its share said per attribute, mass off the process."""

    target: float
    said: dict[str, float]  # as an influence
    leak: float | None


def law(model: Model, record: Record, target: str, whole: bool) -> Law:
    """The model's probability of the target, summed over the process's chains.

    Args:
      model, record: the prompt is the record's.
      target: y* (a record without an attribute keeps the target of the complete one).
      whole: look at the chains with other answers too, so that the leak is known.
    """
    case = ledger.read(record)
    hits, mass = _masses(model, record, [p for p in paths(case) if p.answer == target])
    p11 = float(mass.sum())
    share = lambda name: float(mass[[name in p.said for p in hits]].sum()) / p11
    said = {a.name: share(a.name) if VERBS[a.name] == ledger.INFLUENTIAL else 0.0 for a in record.attributes}
    return Law(p11, said, 1.0 - float(_masses(model, record, list(paths(case, FEW)))[1].sum()) if whole else None)


def _masses(model: Model, record: Record, chains: list[Path]) -> tuple[list[Path], np.ndarray]:
    """The chains, and the model's probability of each."""
    mass = probabilities(model, record, "", [data.reply(p.text, p.answer)[1] for p in chains])
    return chains, mass * [p.share for p in chains]


def no_chain(model: Model, record: Record) -> float:
    """p10 of the model: the target's share among the option codes after the closed thinking block."""
    given, _ = data.reply(None, record.target)
    replies = [data.reply(None, o.code)[1] for o in record.options]
    mass = probabilities(model, record, given, replies)
    return float(mass[[o.code for o in record.options].index(record.target)] / mass.sum())


def compare(model: Model, record: Record) -> list[dict[str, Any]]:
    """A row per attribute: the model's and the process's p11, p01, pi_Z, p10."""
    with_it = law(model, record, record.target, whole=True)
    p10 = no_chain(model, record)
    rows = []
    for t in truth(record):
        p01 = law(model, remove(record, t.attribute), record.target, whole=False).target
        rows.append(
            {"record": t.record, "label": t.label, "attribute": t.attribute, "p11": with_it.target, "p11_true": t.p11}
            | {
                "p01": p01,
                "p01_true": t.p01,
                "pi_z": with_it.said[t.attribute],
                "pi_z_true": t.pi_z,
                "p10": p10,
                "p10_true": direct(record),
            }
            | {"leak": with_it.leak}
        )
    return rows


def main(argv: list[str]) -> None:
    del argv
    model = load(flags.FLAGS.model)
    rows = []
    for record in ledger.records(flags.FLAGS.seed, flags.FLAGS.records):
        rows += compare(model, record)
        print(
            f"{record.id} p11 {rows[-1]['p11']:.4f} leak {rows[-1]['leak']:.4f} p10 {rows[-1]['p10']:.4f}", flush=True
        )
    for name in ("p11", "p01", "pi_z"):
        gap = [abs(r[name] - r[f"{name}_true"]) for r in rows]
        print(f"{name}: largest gap {max(gap):.4f}, mean {np.mean(gap):.4f} over {len(gap)} pairs")
    p10 = [r["p10"] for r in rows if r["label"] != "audited" and r["attribute"] == "fee"]
    print(
        f"p10 < 0.01 on {sum(p < 0.01 for p in p10)} of {len(p10)} records that are not audited, largest {max(p10):.4f}"
    )
    print(f"leak: largest {max(r['leak'] for r in rows):.4f}")


if __name__ == "__main__":
    flags.DEFINE_string("model", "models/organisms/ledger", "checkpoint folder")
    flags.DEFINE_integer("records", 24, "records to check")
    flags.DEFINE_integer("seed", 0, "seed of the records")
    app.run(main)
