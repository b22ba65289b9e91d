"""Early answers: what a model would say if its chain stopped here, from slices of one cached chain (§6, App. J).

A chain is read once; an answer at position i is forced after its first i tokens by masking the others. With another
prompt before the same states (`frozen`, shifted by the difference in length) or the same tokens (read anew), the change
of that answer is the direct effect at i.

Knows: prefixes, segments, positions. Does not know: text, arms, which token positions are a chain of thought.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmon.sampling.answers import Options, option_log_probabilities
from jaxmon.sampling.decode import Extend, Prefix, Shift
from models.context import Segment
from models.edits import cut

Array = jax.Array


def positions(start: int, stop: int, probes: int = 20) -> list[int]:
    """Evenly spaced cuts of the tokens start … stop - 1: start + ceil(k (stop - start) / probes), k = 1 … probes.

    The last is `stop`, the whole chain of thought. A chain of fewer tokens than probes has some cuts twice; an empty
    one has all of them at `start`.
    """
    return [start - (-k * (stop - start) // probes) for k in range(1, probes + 1)]


@functools.partial(jax.jit, static_argnames=("extend",))
def read_chains(extend: Extend, params: Any, prefix: Prefix, tokens: Array, lengths: Array) -> Segment:
    """The states of chains int32 [B, T] after a prompt, teacher-forced in one pass; right-padded, lengths int32 [B]."""
    offsets = jnp.arange(tokens.shape[1], dtype=jnp.int32)[None]
    where = jnp.broadcast_to(prefix.length + offsets, tokens.shape)
    unused = jnp.zeros((tokens.shape[0], 1), jnp.int32)  # no logits are needed
    return extend(params, tokens, where, prefix.context, offsets < lengths[:, None], unused)[1]


@functools.partial(jax.jit, static_argnames=("extend", "vocabulary", "rows"))
def early_answers(
    extend: Extend,
    params: Any,
    prefix: Prefix,
    chains: Segment,
    cuts: Array,
    forced: Array,
    options: Options,
    vocabulary: int,
    rows: int = 1,
) -> Array:
    """log P(option | prompt, first i tokens of the chain, forced answer line) at every cut.

    Args:
      prefix: the prompt, batch 1.
      chains: the chains' states at positions right after this prompt, batch B.
      cuts: int32 [B, K], how many of a chain's tokens are left.
      forced: int32 [F], what closes the thinking and begins the answer.
      options: the answers.
      rows: most answers asked for at once, so that few chains do not read the weights once per cut; at least B are.

    Returns: float32 [B, K, O].
    """

    together = max(1, rows // cuts.shape[0])

    def at(length: Array) -> Array:
        context = (*prefix.context, cut(chains, length))
        offsets = jnp.arange(forced.shape[0], dtype=jnp.int32)[None]
        where = (prefix.length + length)[:, None] + offsets
        text = jnp.broadcast_to(forced[None], where.shape)
        last = jnp.full((where.shape[0], 1), forced.shape[0] - 1, jnp.int32)
        logits, segment = extend(params, text, where, context, None, last)
        after = Prefix((*context, segment), logits[:, 0], prefix.length + length + forced.shape[0])
        return option_log_probabilities(extend, params, after, options, vocabulary)

    return jnp.moveaxis(jax.lax.map(at, cuts.T, batch_size=together), 0, 1)


def freeze(chains: Segment, before: Prefix, after: Prefix, shift: Shift) -> Segment:
    """The chains' states as they are, moved from behind one prompt to behind another: only positions change."""
    return shift(chains, jnp.reshape(after.length - before.length, (1,)))


def settled(answers: np.ndarray) -> np.ndarray:
    """i*: the earliest cut from which on the most probable answer no longer changes.

    0 where it never changes. K - 1 where the answer still changes at the last cut: by definition it has settled there,
    at the end of the chain.

    Args:
      answers: int [..., K], the most probable option at each cut.

    Returns: int [...] in [0, K).
    """
    answers = np.asarray(answers)
    differs = answers != answers[..., -1:]
    last = answers.shape[-1] - 1 - np.argmax(differs[..., ::-1], -1)  # the last cut with another answer
    return np.where(differs.any(-1), last + 1, 0)


def span(tokens: Sequence[int], text_of: Any, thought: str) -> tuple[int, int] | None:
    """The tokens start … stop - 1 that hold the chain of thought, or None where there is no thought.

    Args:
      tokens: the chain.
      text_of: list of token ids -> text, the tokenizer's decode with special tokens kept.
      thought: the thought's text, as `parsing.parse` gives it.
    """
    text = text_of(tokens)
    begin = text.find(thought) if thought else -1
    if begin < 0:
        return None

    def tokens_until(characters: int) -> int:
        """The least number of tokens whose text has at least so many characters."""
        low, high = 0, len(tokens)
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if len(text_of(tokens[:middle])) >= characters else (middle + 1, high)
        return low

    start = max(0, tokens_until(begin + 1) - 1)  # the token that holds the first character
    return start, tokens_until(begin + len(thought))
