"""One door for checkpoints: a Hugging Face folder or a GGUF file becomes a Model.

Knows: how a checkpoint, a family's row and a config make a model. Does not know: file formats (hf.py, gguf_file.py),
the families (families.py), the study.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from tokenizers import Tokenizer

from models.assign import by_path, fill, spread
from models.chat import Chat, choose
from models.checkpoint import Checkpoint, CheckpointError
from models.families import FAMILIES, Config, Family, abstract, family_of
from models.gguf_file import open_file
from models.hf import open_folder
from models.hub import fetch, is_name

__all__ = ["CheckpointError", "Model", "load"]

DTYPES = {"float32": jnp.float32, "bfloat16": jnp.bfloat16}


@dataclasses.dataclass(frozen=True)
class Model:
    """A loaded model: everything a study needs, nothing of the study.

    Attributes:
      name: the folder's or file's name.
      family: its row in models/families.py.
      config: its shapes.
      graphdef, params: the static and the array half of the network, for `extend`.
      extend: the pure function of the family's modeling.py.
      tokenizer: tokenizers.Tokenizer; encode with add_special_tokens=False.
      vocabulary: number of real token ids; logits of rows at or above it are padding and must not be sampled.
      chat: how turns are written.
      stop_ids: ids that end a turn: tokenizer, config, generation config and chat together.
      sampling: published defaults: temperature, top_k (0 for off), top_p, min_p.
      fingerprint: sha256 over the files' names and contents, and the dtype.
    """

    name: str
    family: str
    config: Config
    graphdef: nnx.GraphDef
    params: Any
    extend: Callable[..., Any]
    tokenizer: Tokenizer
    vocabulary: int
    chat: Chat
    stop_ids: frozenset[int]
    sampling: Mapping[str, float]
    fingerprint: str


def load(path: str | Path, dtype: str = "float32") -> Model:
    """Loads a checkpoint.

    Args:
      path: a folder in Hugging Face layout, a .gguf file, or a name on the Hugging Face hub (OWNER/NAME, @REVISION).
      dtype: "float32" or "bfloat16", of parameters and activations.

    Raises:
      CheckpointError: one line that names the file and what is wrong with it.
    """
    label, path = "", Path(path)
    if dtype not in DTYPES:
        raise CheckpointError(f"dtype {dtype!r} is not one of {', '.join(DTYPES)}")
    if not path.exists() and is_name(str(path)):
        path, label = fetch(str(path))
    if not path.exists():
        raise CheckpointError(f"{path}: no such file or folder")
    checkpoint = open_folder(path) if path.is_dir() else open_file(path)
    try:
        name = family_of(checkpoint.config)
        family = FAMILIES[name]
        config = family.read(checkpoint.config)
        chat = choose(family.chats, family.rows(config), checkpoint.chat_template, checkpoint.tokenizer)
        vocabulary = _vocabulary(checkpoint.tokenizer, config)
        stop_ids = _stop_ids(checkpoint, chat, vocabulary)
        sampling = _sampling(family.sampling, checkpoint.generation)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from None
    graphdef, params = _network(family, config, checkpoint, DTYPES[dtype])
    return Model(
        name=label or (path.name if path.is_dir() else path.stem),
        family=name,
        config=config,
        graphdef=graphdef,
        params=params,
        extend=family.extend,
        tokenizer=checkpoint.tokenizer,
        vocabulary=vocabulary,
        chat=chat,
        stop_ids=stop_ids,
        sampling=sampling,
        fingerprint=_fingerprint(checkpoint.files, dtype),
    )


def _network(family: Family, config: Config, checkpoint: Checkpoint, dtype: Any) -> tuple[nnx.GraphDef, Any]:
    """The network made of shapes alone (no memory), then filled."""
    graphdef, shaped = abstract(family, config, dtype)
    shapes, names = by_path(shaped), checkpoint.tensors
    rules = spread(family.rules(config, names), config.num_layers)
    values = fill(shapes, rules, checkpoint, family.ignored(config, names), family.twins(config, names))
    return graphdef, jax.tree.unflatten(jax.tree.structure(shaped), [values[p] for p in shapes])


def _vocabulary(tokenizer: Tokenizer, config: Config) -> int:
    size = 1 + max(tokenizer.get_vocab(with_added_tokens=True).values())
    if size > config.vocab_size:
        raise CheckpointError(f"the tokenizer has {size} ids, config field vocab_size only {config.vocab_size}")
    return size


def _stop_ids(checkpoint: Checkpoint, chat: Chat, vocabulary: int) -> frozenset[int]:
    turn_ends = (checkpoint.tokenizer.token_to_id(text) for text in chat.stops)
    ids = checkpoint.eos | {i for i in turn_ends if i is not None}
    if outside := sorted(i for i in ids if not 0 <= i < vocabulary):
        raise CheckpointError(f"eos_token_id {outside[0]} is not an id of the tokenizer ({vocabulary} ids)")
    return ids


def _sampling(published: Mapping[str, float], generation: Mapping[str, Any]) -> dict[str, float]:
    ranges = {
        "temperature": lambda v: v >= 0,
        "top_k": lambda v: v >= 0 and v == int(v),
        "top_p": lambda v: 0 < v <= 1,
        "min_p": lambda v: 0 <= v < 1,
    }
    chosen = {k: v if (v := generation.get(k)) is not None else published[k] for k in ranges}
    for name, value in chosen.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not ranges[name](value):
            raise CheckpointError(f"generation_config.json: field {name} is out of range, got {value!r}")
    return chosen


def _fingerprint(files: tuple[Path, ...], dtype: str) -> str:
    total = hashlib.sha256(dtype.encode())
    for file in files:
        with file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        total.update(f"\0{file.name}\0{digest}".encode())
    return total.hexdigest()
