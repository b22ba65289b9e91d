"""The `model` judge's core: the three labels scored as continuations of a forced reply, so there is no text to parse.

The request is that of a server (`jaxmon.judging.rubric`). The reply is forced up to an attribute's opening quote,

    {"sex": "

and the whole token sequences of the three labels are scored after it (`jaxmon.sampling.answers`). Every attribute is
asked after the same request and not after the labels of others, so their order means nothing; the request is read once.

Knows: a model as `extend`, parameters and tokenizer. Does not know: files, servers, studies.
"""

from __future__ import annotations

import json
from typing import Any

import jax
import numpy as np
from tokenizers import Tokenizer

from jaxmon.judging.judge import Label
from jaxmon.judging.rubric import WORDS, Rubric, request
from jaxmon.prompts import Chat, continuations, encode
from jaxmon.records import Record
from jaxmon.sampling.answers import option_log_probabilities, options
from jaxmon.sampling.decode import Extend, pad, read

BUCKET = 64  # requests are padded to a multiple, forced openings to a multiple of a quarter: few compiled shapes
LABELS = tuple(WORDS.values())


class Unscorable(ValueError):
    """The request cannot be put to this model: it is too long, or a text in it is one of the model's control tokens."""


def label_laws(
    extend: Extend,
    params: Any,
    tokenizer: Tokenizer,
    vocabulary: int,
    chat: Chat,
    positions: int,
    rubric: Rubric,
    record: Record,
    thought: str,
) -> dict[str, np.ndarray]:
    """P(label | request) of every attribute, normalised over the three labels.

    Args:
      extend, params, tokenizer, vocabulary, chat: of a Model (models/loading.py), `extend` with its graph bound.
      positions: most tokens the model can hold.
      rubric, record, thought: what is asked.
    Returns: attribute -> float32 [3], in the order of LABELS.
    Raises:
      Unscorable: see there.
      ValueError: the model's logits are NaN.
    """
    try:
        text = chat.render(request(record, thought), rubric.system, thinking=False) + (chat.closed_think or "")
    except ValueError as error:
        raise Unscorable(f"record {record.id}: {error}") from None
    names = [a.name for a in record.attributes]
    openings = ["{" + json.dumps(name, ensure_ascii=False) + ': "' for name in names]
    tokens = encode(tokenizer, text)
    forced = continuations(tokenizer, text, openings)
    labels = [continuations(tokenizer, text + opening, [f'{word}"' for word in WORDS]) for opening in openings]
    longest = max((len(f) + max(map(len, three)) for f, three in zip(forced, labels, strict=True)), default=0)
    if len(tokens) + longest > positions:
        raise Unscorable(f"record {record.id}: {len(tokens) + longest} tokens do not fit into {positions} positions")
    before = read(extend, params, *pad(tokens, BUCKET))
    laws = {}
    for name, opening, three in zip(names, forced, labels, strict=True):
        prefix = read(extend, params, *pad(opening, BUCKET // 4), before)
        laws[name] = np.asarray(
            jax.nn.softmax(option_log_probabilities(extend, params, prefix, options(three), vocabulary))
        )
        if np.isnan(laws[name]).any():
            raise ValueError(f"record {record.id}, attribute {name}: the judge model's logits are NaN")
    return laws


def most_likely(laws: dict[str, np.ndarray]) -> dict[str, Label]:
    """The likeliest label of each attribute."""
    return {name: LABELS[int(law.argmax())] for name, law in laws.items()}
