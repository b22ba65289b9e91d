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
from jax.sharding import AbstractMesh, Mesh
from tokenizers import Tokenizer

from models import int8, memory
from models.assign import by_path, fill, spread
from models.chat import Chat, choose
from models.checkpoint import Checkpoint, CheckpointError
from models.extend import extend
from models.families import FAMILIES, Config, Family, abstract, family_of
from models.gguf_file import open_file
from models.hf import open_folder
from models.hub import fetch, is_name
from models.mesh import imagined, placed, shardings

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
      extend: the pure function of models/extend.py, pinned to the mesh where there is one.
      mesh: the devices it lies on; None is one device.
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
    mesh: Mesh | None
    tokenizer: Tokenizer
    vocabulary: int
    chat: Chat
    stop_ids: frozenset[int]
    sampling: Mapping[str, float]
    fingerprint: str


def load(path: str | Path, dtype: str = "float32", mesh: Mesh | None = None, quantise: bool = False) -> Model:
    """Loads a checkpoint.

    Args:
      path: a folder in Hugging Face layout, one that tools/convert.py has made, a .gguf file, or a name on the Hugging
        Face hub (OWNER/NAME, @REVISION).
      dtype: "float32" or "bfloat16", of parameters and activations.
      mesh: where parameters, chains and their states lie (models/mesh.py); None is the first device.
      quantise: matrices as int8 (models/int8.py).

    Raises:
      CheckpointError: one line that names the file and what is wrong with it.
    """
    label, path = "", Path(path)
    if dtype not in DTYPES:
        raise CheckpointError(f"dtype {dtype!r} is not one of {', '.join(DTYPES)}")
    if not path.exists() and is_name(str(path)):
        path, label = fetch(str(path))
    checkpoint = open_checkpoint(path)
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
    graphdef, params = _network(path, family, config, checkpoint, dtype, mesh, quantise)
    return Model(
        name=label or (path.name if path.is_dir() else path.stem),
        family=name,
        config=config,
        graphdef=graphdef,
        params=params,
        extend=extend if mesh is None else placed(extend, mesh),
        mesh=mesh,
        tokenizer=checkpoint.tokenizer,
        vocabulary=vocabulary,
        chat=chat,
        stop_ids=stop_ids,
        sampling=sampling,
        fingerprint=_fingerprint(checkpoint.files, f"{dtype} int8" if quantise else dtype),
    )


def open_checkpoint(path: Path) -> Checkpoint:
    """Everything but the tensors' data.

    Raises:
      CheckpointError: as the readers do.
    """
    if not path.exists():
        raise CheckpointError(f"{path}: no such file or folder")
    return open_folder(path) if path.is_dir() else open_file(path)


def laid(shapes: Any, family: Family, config: Config, mesh: Mesh | AbstractMesh) -> Any:
    """Shapes with the shardings they have on a mesh.

    Raises:
      CheckpointError: a mesh that does not divide the config's heads or units.
    """
    leaves = by_path(shapes)
    where = shardings(mesh, family.places, list(leaves), config)
    cut = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=where[path]) for path, leaf in leaves.items()]
    return jax.tree.unflatten(jax.tree.structure(shapes), cut)


def _network(
    path: Path, family: Family, config: Config, checkpoint: Checkpoint, dtype: str, mesh: Mesh | None, quantise: bool
) -> tuple[nnx.GraphDef, Any]:
    """The network made of shapes alone (no memory), each with its sharding where there is a mesh, then filled."""
    graphdef, unfilled = abstract(family, config, DTYPES[dtype])
    unfilled = unfilled if mesh is None else laid(unfilled, family, config, mesh)
    narrowed = _narrowed(unfilled, int8.abstract) if quantise else unfilled
    _fits(path, family, config, unfilled, memory.weights(narrowed), jax.local_devices()[0])
    shapes = by_path(unfilled)
    where = None if mesh is None else {path: shape.sharding for path, shape in shapes.items()}
    if checkpoint.naming == "ours":
        from models import orbax_folder

        values: dict[str, Any] = dict(orbax_folder.restore(path, checkpoint, shapes, where))
        for name in filter(int8.chosen, values if quantise else ()):
            values[name] = int8.quantise(values[name])
    else:
        names = checkpoint.tensors
        rules = spread(family.rules(config, names), config.num_layers)
        spare = family.ignored(config, names), family.twins(config, names)
        narrow = dict.fromkeys(filter(int8.chosen, shapes), int8.quantise) if quantise else {}
        values = fill(shapes, rules, checkpoint, *spare, where, narrow)
    return graphdef, jax.tree.unflatten(jax.tree.structure(unfilled), [values[p] for p in shapes])


def _narrowed(params: Any, narrow: Callable[[Any], Any]) -> Any:
    """Parameters (a tree) with `narrow` of those that int8 is for."""
    leaves = [narrow(leaf) if int8.chosen(path) else leaf for path, leaf in by_path(params).items()]
    return jax.tree.unflatten(jax.tree.structure(params), leaves)


def _fits(path: Path, family: Family, config: Config, shapes: Any, need: int, device: jax.Device) -> None:
    """Refuses weights that are larger than the device, and says what would fit."""
    there = memory.limit(device)
    if need <= there:
        return
    ways = []
    for kind in dict.fromkeys((jax.tree.leaves(shapes)[0].dtype.name, "bfloat16")):
        typed = jax.tree.map(lambda leaf, kind=kind: jax.ShapeDtypeStruct(leaf.shape, DTYPES[kind]), shapes)
        for parts in (1, 2, 4, 8, 16, 32, 64):
            try:
                each = memory.weights(laid(typed, family, config, imagined(f"1x{parts}")))
            except CheckpointError:  # an axis that the heads do not allow
                continue
            if memory.fit(there, each, 1):
                ways.append(f"{kind} with a model axis of {parts} ({memory.gib(each)} each)")
                break
    advice = f"; {' or '.join(ways)} would fit" if ways else ""
    raise CheckpointError(
        f"{path}: {memory.gib(need)} of parameters on each device, which has {memory.gib(there)}{advice}"
    )


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
