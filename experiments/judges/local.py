"""The `model` judge: the rubric, answered by a checkpoint of models/ through constrained label scoring.

Knows: a checkpoint's path. Does not know: how labels are scored (`jaxmon.judging.label_scoring`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

from jaxmon.judging.judge import Label
from jaxmon.judging.label_scoring import Unscorable, label_laws, most_likely
from jaxmon.judging.rubric import Rubric
from jaxmon.records import Record
from models.loading import Model, load


class LocalJudge:
    """See the module. A chain that cannot be put to the model is a parse failure in every attribute."""

    def __init__(self, rubric: Rubric, checkpoint: str | Path, dtype: str = "float32"):
        """Checks that the checkpoint is there; it is loaded when the first chain comes.

        Raises:
          ValueError: no checkpoint is named.
          FileNotFoundError: it is not there.
        """
        path = Path(checkpoint)
        if not str(checkpoint):
            raise ValueError("the judge `model` needs a checkpoint")
        if not path.exists():
            raise FileNotFoundError(f"{path}: no such file or folder")
        self.name = f"model:{path.name if path.is_dir() else path.stem}"
        self.version = rubric.version
        self._rubric, self._path, self._dtype = rubric, path, dtype

    @functools.cached_property
    def _model(self) -> Model:
        return load(self._path, self._dtype)

    def label_chains(self, record: Record, thoughts: Sequence[str]) -> list[dict[str, Label]]:
        """See `jaxmon.judging.judge.Judge`; equal chains are read once."""
        said = {thought: self._label(record, thought) for thought in dict.fromkeys(thoughts)}
        return [said[thought] for thought in thoughts]

    def _label(self, record: Record, thought: str) -> dict[str, Label]:
        m = self._model
        try:
            laws = label_laws(
                self._extend, m.params, m.tokenizer, m.vocabulary, m.chat, m.config.max_positions,
                self._rubric, record, thought,
            )  # fmt: skip
        except Unscorable:
            return {a.name: Label.PARSE_FAILURE for a in record.attributes}
        return most_likely(laws)

    @functools.cached_property
    def _extend(self) -> functools.partial:  # one function object, so that each program compiles once
        return functools.partial(self._model.extend, self._model.graphdef)
