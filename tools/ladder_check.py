"""Does the trained ladder follow its process? Teacher-forced total variation per kind of word, on rows of another seed.

    python -m tools.ladder_check --model=models/organisms/ladder [--rows=1500 --seed=77]

The rows are those of training: prompts of both states, chains read through windows, so that a token may see states
made under either prompt, and chains cut after any word. The code after a slip, uniform over 255, is left out.

Knows: a loaded model, the training's rows and passes. Does not know: samplers, studies.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator, Sequence

import jax
import numpy as np
from absl import app, flags

from jaxmon.tasks import ladder
from models.loading import Model, load
from tools import organism_ladder
from tools.organism_data import Row, arrays
from tools.train_organism import predictions


def gaps(model: Model, rows: Sequence[Row]) -> Iterator[tuple[str, float]]:
    """(kind of token, total variation between the model's law and the process's) for every learnt token."""
    batch = arrays(model.tokenizer, rows, organism_ladder.WIDTH)
    run = jax.jit(lambda params, b: predictions(functools.partial(model.extend, model.graphdef, params), b, True))
    law = np.asarray(jax.nn.softmax(run(model.params, batch), -1))
    for r, row in enumerate(rows):
        said = row.learnt.split("\n")[1].split() if row.learnt.startswith("<think>") else None
        for column in np.flatnonzero(batch.chances[r].sum(-1)):
            at = int(column - batch.reply[r])
            if said and ladder.SLIPS[1] in said and at == organism_ladder.OPENING + said.index(ladder.SLIPS[1]) + 1:
                continue
            chances, choices = batch.chances[r, column], batch.choices[r, column]
            got = law[r, column - 1, choices]
            yield _kind(said, at), float(0.5 * (np.abs(got - chances)[chances > 0].sum() + 1 - got[chances > 0].sum()))


def _kind(said: list[str] | None, at: int) -> str:
    if said is None:
        return "a reply without a chain"
    word = at - organism_ladder.OPENING
    if 0 <= word < len(said):
        return f"word {word:2}"
    if word != len(said) + organism_ladder.CLOSING:
        return "marks around the chain"
    if len(said) == len(ladder.SLOTS):
        return "answer of a whole chain"
    return f"answer after {len(said):2} words" if len(said) < 3 else "answer of a cut chain"


def main(argv: list[str]) -> None:
    if argv[1:]:
        raise app.UsageError(f"unknown arguments {argv[1:]}")
    rng = random.Random(flags.FLAGS.seed)
    rows = [organism_ladder.example(rng, 0.0) for _ in range(flags.FLAGS.rows)]
    found: dict[str, list[float]] = {}
    for kind, gap in gaps(load(flags.FLAGS.model), rows):
        found.setdefault(kind, []).append(gap)
    print(f"{'what':26}{'tokens':>8}{'mean':>8}{'99 %':>8}{'largest':>9}")
    for kind, values in sorted(found.items()):
        print(f"{kind:26}{len(values):8}{np.mean(values):8.4f}{np.quantile(values, 0.99):8.4f}{max(values):9.4f}")


if __name__ == "__main__":
    flags.DEFINE_string("model", "models/organisms/ladder", "folder of the exported organism")
    flags.DEFINE_integer("rows", 1500, "conversations", 1)
    flags.DEFINE_integer("seed", 77, "of the rows")
    app.run(main)
