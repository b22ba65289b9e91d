"""Fills a model's parameters from a checkpoint by a table of rules: every parameter exactly once, or an error.

Values stream from file to device: the host holds one device's part of one tensor in the narrower of the stored and
the wanted type, and one block of rows of the file (checkpoint.BLOCK).

Knows: rules, transforms, how to report all faults at once. Does not know: any family or format, what a mesh is.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import functools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Sharding

from models.checkpoint import Bounds, Checkpoint, CheckpointError, Tensor

NAMED = 20  # most names of a kind in one line


def by_path(params: Any) -> dict[str, Any]:
    """A parameter tree as path -> leaf, e.g. "layers.0.mlp.up_proj.kernel"."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(params)
    return {".".join(str(k.key) for k in p if isinstance(k, jax.tree_util.DictKey)): leaf for p, leaf in leaves}


@dataclasses.dataclass(frozen=True)
class Rule:
    """One row of a family's name table; `{}` stands for the layer's number in all three names.

    Attributes:
      path: our parameter, e.g. "layers.{}.mlp.up_proj.kernel".
      hf, gguf: its name in each naming.
      transposed: the checkpoint has [..., out, in], we have [..., in, out].
      gguf_shift: what is added to the values of a GGUF file.
    """

    path: str
    hf: str
    gguf: str
    transposed: bool = False
    gguf_shift: float = 0.0


def spread(rules: Sequence[Rule], layers: int) -> list[Rule]:
    """The table with one row per parameter: rows with `{}` written out for every layer."""
    written = []
    for rule in rules:
        for layer in range(layers) if "{}" in rule.path else (0,):
            path, hf, gguf = (name.format(layer) for name in (rule.path, rule.hf, rule.gguf))
            written.append(dataclasses.replace(rule, path=path, hf=hf, gguf=gguf))
    return written


def fill(
    shapes: Mapping[str, jax.ShapeDtypeStruct],
    rules: Sequence[Rule],
    checkpoint: Checkpoint,
    ignored: Sequence[str] = (),
    twins: Mapping[str, str] | None = None,
    where: Mapping[str, Sharding] | None = None,
    narrow: Mapping[str, Callable[[jax.Array], Any]] = MappingProxyType({}),
) -> dict[str, Any]:
    """The parameters by path, read one tensor at a time, each device's part straight onto it.

    Args:
      shapes: our parameters, path -> shape and dtype.
      rules: the table, spread; rows for parameters that this model does not have (a bias, a head) are skipped.
      checkpoint: the tensors.
      ignored: patterns of names that may be there and are not read.
      twins: name -> name of tensors that may be stored twice (a tied head); they must be equal.
      narrow: path -> what is done to a parameter before the next is read (int8.quantise).
      where: path -> sharding; default: the first device. Hosts read only what their own devices hold.

    Raises:
      CheckpointError: all missing, unknown and misshapen names in one line; or a tensor with NaN or infinity.
    """
    rows = {r.path: r for r in rules if r.path in shapes}
    if uncovered := sorted(set(shapes) - set(rows)):
        raise CheckpointError(f"the name table has no row for parameters {', '.join(uncovered)}")
    names = {path: getattr(rows[path], checkpoint.naming) for path in shapes}
    twins = {k: v for k, v in (twins or {}).items() if k in checkpoint.tensors}
    wanted = {names[p]: stored_shape(s.shape, rows[p]) for p, s in shapes.items()}
    check(wanted, checkpoint, ignored, twins)
    for copy, original in twins.items():
        if not _equal(checkpoint.tensors[copy], checkpoint.tensors[original]):
            raise CheckpointError(
                f"{checkpoint.tensors[copy].file}: {copy} differs from {original}, but config says they are tied"
            )
    filled = {}
    for path, want in shapes.items():
        shift = rows[path].gguf_shift if checkpoint.naming == "gguf" else 0.0
        tensor, turned = checkpoint.tensors[names[path]], rows[path].transposed
        piece = functools.partial(_piece, tensor, names[path], turned, shift, want)
        if where is None:
            array = jnp.asarray(piece(tuple((0, n) for n in want.shape)))
        else:
            array = _spread_over(where[path], want.shape, piece)
        array = array.astype(want.dtype)  # widens on the device
        filled[path] = jax.block_until_ready(narrow.get(path, lambda a: a)(array))  # one at a time
    return filled


def stored_shape(shape: tuple[int, ...], rule: Rule) -> tuple[int, ...]:
    """The shape a parameter has in the checkpoint."""
    return (*shape[:-2], shape[-1], shape[-2]) if rule.transposed else shape


def _spread_over(sharding: Sharding, shape: tuple[int, ...], piece: Callable[[Bounds], np.ndarray]) -> jax.Array:
    """The array whose parts are `piece(bounds)`; devices that hold the same part share one reading of it."""
    holders: dict[Bounds, list[jax.Device]] = {}
    for device, index in sharding.addressable_devices_indices_map(shape).items():
        bounds = tuple(s.indices(n)[:2] for s, n in zip(index or (), shape, strict=True))
        holders.setdefault(bounds, []).append(device)
    parts = []
    for bounds, devices in holders.items():
        values = piece(bounds)
        parts += [jax.block_until_ready(jax.device_put(values, d)) for d in devices]
    return jax.make_array_from_single_device_arrays(shape, sharding, parts)


def _piece(
    tensor: Tensor, name: str, transposed: bool, shift: float, want: jax.ShapeDtypeStruct, bounds: Bounds
) -> np.ndarray:
    """One device's part of a parameter, at most as wide as it is stored; `shift` is added to every number."""
    values: np.ndarray | None = None
    stored = (*bounds[:-2], bounds[-1], bounds[-2]) if transposed else bounds
    for rows, block in tensor.blocks(stored):
        if not np.isfinite(block).all():
            raise CheckpointError(f"{tensor.file}: tensor {name} holds NaN or infinity")
        if values is None:
            dtype = min(block.dtype, np.dtype(want.dtype), key=lambda d: (d.itemsize, d != want.dtype))
            values = np.empty([b - a for a, b in bounds], dtype)
        turned = np.swapaxes(block, -1, -2) if transposed else block
        at = (..., rows) if transposed and len(bounds) == 2 else rows  # blocks are rows of the stored tensor
        values[at] = turned + np.asarray(shift, turned.dtype) if shift else turned
    assert values is not None
    return values


def _equal(one: Tensor, other: Tensor) -> bool:
    pairs = zip(one.blocks(), other.blocks(), strict=True)
    return one.shape == other.shape and all(np.array_equal(a, b) for (_, a), (_, b) in pairs)


def check(
    wanted: Mapping[str, tuple[int, ...]],
    checkpoint: Checkpoint,
    ignored: Sequence[str] = (),
    twins: Mapping[str, str] | None = None,
) -> None:
    """Raises CheckpointError, one line for all, where stored names and shapes are not those of `wanted`."""
    have = checkpoint.tensors
    missing = sorted(n for n in wanted if n not in have)
    spare = [n for n in have if n not in wanted and n not in (twins or {})]
    unknown = [n for n in spare if not any(fnmatch.fnmatchcase(n, pattern) for pattern in ignored)]
    misshapen = []
    for name, shape in wanted.items():
        if name in have and have[name].shape != shape:
            misshapen.append(f"{name} is {list(have[name].shape)}, not {list(shape)}")
    faults = [
        f"{kind} {len(found)}: {', '.join(found[:NAMED])}{', …' if len(found) > NAMED else ''}"
        for kind, found in (("missing", missing), ("unknown", sorted(unknown)), ("misshapen", misshapen))
        if found
    ]
    if faults:
        where = checkpoint.files[0].parent if checkpoint.naming != "gguf" else checkpoint.files[0]
        raise CheckpointError(f"{where}: tensors do not fit the config; {'; '.join(faults)}")
