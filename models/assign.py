"""Fills a model's parameters from a checkpoint by a table of rules: every parameter exactly once, or an error.

Knows: rules, stacking over layers, transforms, how to report all faults at once. Does not know: any family or format.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from models.checkpoint import Checkpoint, CheckpointError, Tensor


@dataclasses.dataclass(frozen=True)
class Rule:
    """One row of a family's name table.

    Attributes:
      path: our parameter, e.g. "layers.mlp.up_proj.kernel".
      hf, gguf: its name in each naming; `{}` stands for the layer's number, and such tensors are stacked over layers.
      transposed: the checkpoint has [out, in], we have [in, out].
    """

    path: str
    hf: str
    gguf: str
    transposed: bool = False


def fill(
    shapes: Mapping[str, jax.ShapeDtypeStruct],
    rules: Sequence[Rule],
    checkpoint: Checkpoint,
    derived: Sequence[str] = (),
    twins: Mapping[str, str] | None = None,
) -> dict[str, jax.Array]:
    """The parameters by path, read one tensor at a time: the host holds at most one stacked parameter beside them.

    Args:
      shapes: our parameters, path -> shape and dtype; stacked ones have the layers first.
      rules: the table; rows for parameters that this model does not have (a bias, a head) are skipped.
      checkpoint: the tensors.
      derived: endings of names that hold nothing of their own (tables computed from the config) and may be ignored.
      twins: name -> name of tensors that may be stored twice (a tied head); they must be equal.

    Raises:
      CheckpointError: all missing, unknown and misshapen names in one line; or a tensor with NaN or infinity.
    """
    rows = {r.path: r for r in rules if r.path in shapes}
    if uncovered := sorted(set(shapes) - set(rows)):
        raise CheckpointError(f"the name table has no row for parameters {', '.join(uncovered)}")
    names = {path: _names(getattr(rows[path], checkpoint.naming), shapes[path].shape) for path in shapes}
    twins = {k: v for k, v in (twins or {}).items() if k in checkpoint.tensors}
    _check(shapes, rows, names, checkpoint, tuple(derived), twins)
    for copy, original in twins.items():
        if not np.array_equal(_read(checkpoint.tensors[copy], copy), _read(checkpoint.tensors[original], original)):
            raise CheckpointError(
                f"{checkpoint.tensors[copy].file}: {copy} differs from {original}, but config says they are tied"
            )
    return {path: _parameter(shapes[path], rows[path], names[path], checkpoint.tensors) for path in shapes}


def _names(pattern: str, shape: tuple[int, ...]) -> list[str]:
    return [pattern.format(layer) for layer in range(shape[0])] if "{}" in pattern else [pattern]


def _stored_shape(want: tuple[int, ...], rule: Rule, stacked: bool) -> tuple[int, ...]:
    shape = want[1:] if stacked else want
    return shape[::-1] if rule.transposed else shape


def _check(
    shapes: Mapping[str, jax.ShapeDtypeStruct],
    rows: Mapping[str, Rule],
    names: Mapping[str, list[str]],
    checkpoint: Checkpoint,
    derived: tuple[str, ...],
    twins: Mapping[str, str],
) -> None:
    have = checkpoint.tensors
    wanted: dict[str, tuple[int, ...]] = {}
    misshapen = []
    for path, listed in names.items():
        stacked = "{}" in getattr(rows[path], checkpoint.naming)
        wanted |= dict.fromkeys(listed, _stored_shape(shapes[path].shape, rows[path], stacked))
    missing = sorted(n for n in wanted if n not in have)
    unknown = [n for n in have if n not in wanted and n not in twins and not n.endswith(derived or ("\0",))]
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


def _parameter(want: Any, rule: Rule, names: list[str], tensors: Mapping[str, Tensor]) -> jax.Array:
    turn = (lambda a: a.T) if rule.transposed else (lambda a: a)
    if len(names) == 1 and tensors[names[0]].shape == (want.shape[::-1] if rule.transposed else want.shape):
        return jnp.asarray(turn(_read(tensors[names[0]], names[0])), want.dtype)
    stacked = np.empty(want.shape, want.dtype)
    for layer, name in enumerate(names):
        stacked[layer] = turn(_read(tensors[name], name)).astype(want.dtype)
    return jnp.asarray(stacked)
