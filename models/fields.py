"""Reads fields of config.json: by type and range, and nothing that is not understood is passed over.

Knows: what a valid size, number or flag is, and how a refusal reads. Does not know: any family.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from models.checkpoint import CheckpointError

Fields = Mapping[str, Any]
INERT = {  # of every family: field -> why it changes nothing here
    "model_type": "chose the reader",
    "attention_dropout": "training only",
    "initializer_range": "training only",
    "use_cache": "the caller holds the cache here",
    "pad_token_id": "padding is a mask here",
    "eos_token_id": "joins the stop set, outside the network",
    "torch_dtype": "the dtype is chosen at loading",
    "dtype": "the dtype is chosen at loading",
    "transformers_version": "a label",
    "_name_or_path": "a label",
    "output_attentions": "what is returned, not what is computed",
    "output_hidden_states": "what is returned, not what is computed",
    "return_dict": "what is returned, not what is computed",
    "id2label": "classification heads only",
    "label2id": "classification heads only",
    "problem_type": "classification heads only",
}


def understood(
    fields: Fields, family: str, live: Collection[str], checked: Mapping[str, tuple[Any, ...]], inert: Collection[str]
) -> None:
    """Every field is live (sets something), checked (one value is built) or inert (changes nothing).

    Raises:
      CheckpointError: a field that is none of these, or a checked one of another value.
    """
    if unknown := sorted(set(fields) - set(live) - set(checked) - set(inert)):
        raise CheckpointError(
            f"config field {', '.join(unknown)} is not understood for {family}; it may change the model"
        )
    for name, allowed in checked.items():
        if name in fields and fields[name] not in allowed:
            raise CheckpointError(f"config field {name} is {fields[name]!r}; only {allowed[0]!r} is built")


def size(fields: Fields, name: str) -> int:
    """A positive integer."""
    value = _given(fields, name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise CheckpointError(f"config field {name} must be a positive integer, got {value!r}")
    return value


def count(fields: Fields, name: str) -> int:
    """A whole number, 0 where it is absent or null."""
    return 0 if fields.get(name) in (None, 0) else size(fields, name)


def positive(fields: Fields, name: str) -> float:
    """A positive, finite number."""
    value = _given(fields, name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < float("inf"):
        raise CheckpointError(f"config field {name} must be a positive number, got {value!r}")
    return value


def flag(fields: Fields, name: str) -> bool:
    """True or false; false where it is absent."""
    value = fields.get(name, False)
    if not isinstance(value, bool):
        raise CheckpointError(f"config field {name} must be true or false, got {value!r}")
    return value


def _given(fields: Fields, name: str) -> Any:
    if fields.get(name) is None:
        raise CheckpointError(f"config field {name} is missing")
    return fields[name]
