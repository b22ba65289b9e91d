"""A checkpoint as plain data, whatever file format it came from, and the one error its readers raise.

Knows: names, shapes, and how to read one tensor at a time. Does not know: any model family, any file format, JAX.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

BLOCK = 16 * 2**20  # most bytes (as float32) that are read at once where a file can be read in parts
Bounds = tuple[tuple[int, int], ...]  # per dimension start and stop


class CheckpointError(ValueError):
    """A checkpoint cannot be used as it is: one line that says what is wrong and in which file and field."""


@dataclasses.dataclass(frozen=True)
class Tensor:
    """One stored tensor, fetched (and dequantised) alone, so that loading streams.

    Attributes:
      shape: as stored.
      read: the whole of it.
      file: for messages.
      part: a part of it, where the file can give one without reading the rest.
    """

    shape: tuple[int, ...]
    read: Callable[[], np.ndarray]
    file: str
    part: Callable[[tuple[slice, ...]], np.ndarray] | None = None

    def blocks(self, bounds: Bounds | None = None) -> Iterator[tuple[slice, np.ndarray]]:
        """The part within `bounds` (default: all), in runs of rows: where they lie within the part, and the values."""
        bounds = tuple((0, n) for n in self.shape) if bounds is None else bounds
        index = tuple(slice(a, b) for a, b in bounds)
        if self.part is None or not bounds:
            yield slice(None), self.read()[index]
            return
        (first, stop), *rest = bounds
        rows = max(1, BLOCK // (4 * math.prod(b - a for a, b in rest) or 1))
        for start in range(first, stop, rows):
            end = min(start + rows, stop)
            yield slice(start - first, end - first), self.part((slice(start, end), *index[1:]))


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """What a reader found.

    Attributes:
      naming: whose tensor names these are, "hf" or "gguf", the column of a family's name table; or "ours".
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
