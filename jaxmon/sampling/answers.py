"""Answer probabilities over option codes, by teacher-forcing each option's full token sequence.

Knows: prefixes and options as token ids. Does not know: text; `prompts` makes the ids.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from jaxmon.sampling.decode import Extend, Prefix

Array = jax.Array


@struct.dataclass
class Options:
    """Options as token ids: int32 [O, T], zero past each option's end, and lengths int32 [O]."""

    tokens: Array
    lengths: Array


def options(sequences: Sequence[Sequence[int]]) -> Options:
    """Packs option token sequences.

    Raises:
      ValueError: an empty option, or one whose tokens begin another's (their probabilities would overlap).
    """
    rows = [tuple(s) for s in sequences]
    if () in rows:
        raise ValueError(f"option {rows.index(())} has no tokens")
    for (row, i), (other, j) in itertools.pairwise(sorted((row, i) for i, row in enumerate(rows))):
        if other[: len(row)] == row:
            raise ValueError(f"option {i} is the beginning of option {j}: tokens {list(row)} and {list(other)}")
    tokens = np.zeros((len(rows), max(map(len, rows))), np.int32)
    for i, row in enumerate(rows):
        tokens[i, : len(row)] = row
    return Options(jnp.asarray(tokens), jnp.asarray([len(r) for r in rows], jnp.int32))


@functools.partial(jax.jit, static_argnames=("extend", "vocabulary"))
def option_log_probabilities(extend: Extend, params: Any, prefix: Prefix, options: Options, vocabulary: int) -> Array:
    """log P(option | prefix) for every option: the sum over its tokens of log P(token | what came before).

    Temperature 1 and no truncation: the model's own law over its real token ids.

    Args:
      prefix: of one row or of B; its length a scalar or int32 [B].

    Returns:
      float32 [O], or [B, O] where the length has rows. `jax.nn.softmax` of it is the answer distribution over the
      options (p_XT of §3 at the target); `jnp.exp(...).sum(-1)` is the mass the model puts on the options at all.
    """
    longest = options.tokens.shape[1]
    start = jnp.atleast_1d(prefix.length)[:, None]

    def log_law(logits: Array) -> Array:
        real = jnp.arange(logits.shape[-1]) < vocabulary
        logits = jnp.where(real.reshape((1,) * (logits.ndim - 1) + real.shape), logits.astype(jnp.float32), -jnp.inf)
        return jax.nn.log_softmax(logits, -1)

    def following(tokens: Array, length: Array) -> Array:
        """The log probability of an option's tokens after its first: [B]."""
        offsets = jnp.arange(longest - 1, dtype=jnp.int32)[None]
        rows = jnp.broadcast_to(tokens[None, :-1], (start.shape[0], longest - 1))
        logits, _ = extend(params, rows, start + offsets, prefix.context, None, None)
        chosen = jnp.take_along_axis(log_law(logits), tokens[None, 1:, None], axis=-1)[..., 0]
        return jnp.where(offsets + 1 < length, chosen, 0.0).sum(-1)

    total = log_law(prefix.logits)[:, options.tokens[:, 0]]
    if longest > 1:
        total = total + jax.vmap(following, out_axes=1)(options.tokens, options.lengths)
    return total if prefix.length.ndim else total[0]
