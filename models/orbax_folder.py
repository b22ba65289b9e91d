"""A converted model: the small files of a Hugging Face folder beside a sharded Orbax checkpoint of our parameters.

    config.json, tokenizer.json, generation_config.json, chat_template.jinja    as models/hf.py reads them
    converted.json      what it was made from: for people, not read back
    params/             Orbax (OCDBT); names are our paths, so it restores on any mesh and needs no name table

Knows: this layout. Does not know: any family, where arrays should lie. Orbax takes seconds to import: only here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from jax.sharding import Sharding, SingleDeviceSharding

from models.assign import check
from models.checkpoint import Checkpoint, CheckpointError, Tensor
from models.mesh import fetch

PARAMS = "params"


def write(folder: Path, params: Mapping[str, jax.Array], checkpoint: Checkpoint, made_from: Mapping[str, str]) -> None:
    """Writes the small files, then the parameters (path -> array, wherever they lie), whole or not at all.

    Raises:
      CheckpointError: the folder is there and not empty.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CheckpointError(f"{folder}: is there already")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**checkpoint.config, "eos_token_id": sorted(checkpoint.eos)}))
    (folder / "tokenizer.json").write_text(checkpoint.tokenizer.to_str(), encoding="utf-8")
    (folder / "generation_config.json").write_text(json.dumps(dict(checkpoint.generation)))
    if checkpoint.chat_template is not None:
        (folder / "chat_template.jinja").write_text(checkpoint.chat_template, encoding="utf-8")
    (folder / "converted.json").write_text(json.dumps(dict(made_from), indent=1))
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save((folder / PARAMS).absolute(), dict(params))


def tensors(folder: Path) -> tuple[dict[str, Tensor], list[Path]]:
    """Names and shapes of what is stored, and the files; a tensor alone is read whole.

    Raises:
      CheckpointError: `params` is no whole Orbax checkpoint.
    """
    place = (folder / PARAMS).absolute()
    try:
        with ocp.StandardCheckpointer() as checkpointer:
            stored = checkpointer.metadata(place).item_metadata.tree
        found = {name: Tensor(tuple(m.shape), lambda: np.empty(0), str(place)) for name, m in stored.items()}
    except Exception as error:  # Orbax and TensorStore raise errors of many types
        raise CheckpointError(f"{place}: no whole Orbax checkpoint ({str(error).splitlines()[0]})") from None
    return found, sorted(f for f in place.rglob("*") if f.is_file())


def restore(
    folder: Path,
    checkpoint: Checkpoint,
    shapes: Mapping[str, jax.ShapeDtypeStruct],
    where: Mapping[str, Sharding] | None,
) -> dict[str, jax.Array]:
    """The parameters by path, each part read from disk by the device's own host.

    Raises:
      CheckpointError: names or shapes that do not fit the config, all together; damage; NaN or infinity.
    """
    check({path: s.shape for path, s in shapes.items()}, checkpoint)
    place = (folder / PARAMS).absolute()
    first = SingleDeviceSharding(jax.devices()[0])
    wanted = {
        path: jax.ShapeDtypeStruct(s.shape, s.dtype, sharding=first if where is None else where[path])
        for path, s in shapes.items()
    }
    try:
        with ocp.StandardCheckpointer() as checkpointer:
            params = checkpointer.restore(place, wanted)
    except Exception as error:
        raise CheckpointError(f"{place}: not readable ({str(error).splitlines()[0]})") from None
    finite = fetch(jax.jit(lambda tree: jax.tree.map(lambda a: jnp.isfinite(a).all(), tree))(params))
    if bad := sorted(path for path, good in finite.items() if not good):
        raise CheckpointError(f"{place}: tensor {bad[0]} holds NaN or infinity")
    return params
