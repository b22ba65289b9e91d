"""A checkpoint as plain data, whatever file format it came from, and the one error its readers raise.

Knows: names, shapes, and how to read one tensor at a time. Does not know: any model family, any file format, JAX.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer


class CheckpointError(ValueError):
    """A checkpoint cannot be used as it is: one line that says what is wrong and in which file and field."""


@dataclasses.dataclass(frozen=True)
class Tensor:
    """One stored tensor; `read` fetches (and dequantises) it alone, so that loading streams."""

    shape: tuple[int, ...]
    read: Callable[[], np.ndarray]
    file: str  # for messages


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """What a reader found.

    Attributes:
      naming: whose tensor names these are, "hf" or "gguf": the column of a family's name table.
      config: the fields of config.json; the GGUF reader writes its metadata in these terms.
      tensors: name -> Tensor.
      tokenizer: a `tokenizers.Tokenizer`, without truncation or padding.
      eos: ids at which the files say generation ends (tokenizer, config and generation config together).
      generation: the fields of generation_config.json, {} where there is none.
      chat_template: the template's text, None where there is none; read for identification, never executed.
      files: every file that was read, for the fingerprint.
    """

    naming: str
    config: Mapping[str, Any]
    tensors: Mapping[str, Tensor]
    tokenizer: Tokenizer
    eos: frozenset[int]
    generation: Mapping[str, Any]
    chat_template: str | None
    files: tuple[Path, ...]
