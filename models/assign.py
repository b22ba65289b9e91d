"""Fills a model's parameters from a checkpoint by a table of rules: every parameter exactly once, or an error.

Knows: rules, transforms, how to report all faults at once. Does not know: any family or format.
"""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from models.checkpoint import Checkpoint, CheckpointError, Tensor


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
) -> dict[str, jax.Array]:
    """The parameters by path, read one tensor at a time: the host holds at most one beside them.

    Args:
      shapes: our parameters, path -> shape and dtype.
      rules: the table, spread; rows for parameters that this model does not have (a bias, a head) are skipped.
      checkpoint: the tensors.
      ignored: patterns of names that may be there and are not read.
      twins: name -> name of tensors that may be stored twice (a tied head); they must be equal.

    Raises:
      CheckpointError: all missing, unknown and misshapen names in one line; or a tensor with NaN or infinity.
    """
    rows = {r.path: r for r in rules if r.path in shapes}
    if uncovered := sorted(set(shapes) - set(rows)):
        raise CheckpointError(f"the name table has no row for parameters {', '.join(uncovered)}")
    names = {path: getattr(rows[path], checkpoint.naming) for path in shapes}
    twins = {k: v for k, v in (twins or {}).items() if k in checkpoint.tensors}
    wanted = {names[p]: stored_shape(s.shape, rows[p]) for p, s in shapes.items()}
    _check(wanted, checkpoint, ignored, twins)
    for copy, original in twins.items():
        if not np.array_equal(_read(checkpoint.tensors[copy], copy), _read(checkpoint.tensors[original], original)):
            raise CheckpointError(
                f"{checkpoint.tensors[copy].file}: {copy} differs from {original}, but config says they are tied"
            )
    filled = {}
    for path, want in shapes.items():
        values = _read(checkpoint.tensors[names[path]], names[path])
        if checkpoint.naming == "gguf" and rows[path].gguf_shift:
            values = values + np.float32(rows[path].gguf_shift)
        filled[path] = jnp.asarray(values.swapaxes(-1, -2) if rows[path].transposed else values, want.dtype)
    return filled


def stored_shape(shape: tuple[int, ...], rule: Rule) -> tuple[int, ...]:
    """The shape a parameter has in the checkpoint."""
    return (*shape[:-2], shape[-1], shape[-2]) if rule.transposed else shape


def _check(
    wanted: Mapping[str, tuple[int, ...]], checkpoint: Checkpoint, ignored: Sequence[str], twins: Mapping[str, str]
) -> None:
    have = checkpoint.tensors
    missing = sorted(n for n in wanted if n not in have)
    spare = [n for n in have if n not in wanted and n not in twins]
    unknown = [n for n in spare if not any(fnmatch.fnmatchcase(n, pattern) for pattern in ignored)]
    misshapen = []
    for name, shape in wanted.items():
        if name in have and have[name].shape != shape:
            misshapen.append(f"{name} is {list(have[name].shape)}, not {list(shape)}")
    faults = [
        f"{kind} {len(found)}: {', '.join(found)}"
        for kind, found in (("missing", missing), ("unknown", sorted(unknown)), ("misshapen", misshapen))
        if found
    ]
    if faults:
        where = checkpoint.files[0].parent if checkpoint.naming == "hf" else checkpoint.files[0]
        raise CheckpointError(f"{where}: tensors do not fit the config; {'; '.join(faults)}")


def _read(tensor: Tensor, name: str) -> np.ndarray:
    values = tensor.read()
    if not np.isfinite(values).all():
        raise CheckpointError(f"{tensor.file}: tensor {name} holds NaN or infinity")
    return values
