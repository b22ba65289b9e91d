"""A mesh of devices, data x model, and where arrays lie on it; the rules are data, the partitioner does the rest.

Chains are dealt out over `data`, heads and hidden units over `model`. Parameters lie as a family's table of `Place`
rows says (models/qwen/sharding.py); `placed` pins what a model reads and makes at the border of `extend`, so that
neither the network nor the sampling loop knows of devices. Sharding over data alone changes no float32 sum; over model
the partial sums of a product are added in another order.

Knows: axes, how a config's counts divide. Does not know: any family, files, the study.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any

import jax
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec

from models.checkpoint import CheckpointError
from models.context import Segment

DATA, MODEL = "data", "model"


@dataclasses.dataclass(frozen=True)
class Place:
    """One row of a family's sharding table; the first row whose pattern fits a parameter's path decides.

    Attributes:
      path: pattern of `fnmatch`, e.g. "*.q_proj.kernel".
      axes: per dimension the mesh axis it is cut along, or None.
      units: the config's field that counts what is never cut through (heads, hidden units); a field with one number
        per layer is read at the path's layer.
      spare: where the axis does not divide the units, every device holds the whole; otherwise the mesh is refused.
    """

    path: str
    axes: tuple[str | None, ...]
    units: str = ""
    spare: bool = False


def sizes(text: str) -> tuple[int, int]:
    """Devices along data and model of "2x4".

    Raises:
      ValueError: the text is no mesh.
    """
    found = re.fullmatch(r"([1-9][0-9]*)x([1-9][0-9]*)", text) if isinstance(text, str) else None
    if found is None:
        raise ValueError(f"mesh must be DATAxMODEL, two whole numbers >= 1 such as 2x4, got {text!r}")
    return int(found[1]), int(found[2])


def make(text: str, devices: Sequence[jax.Device] | None = None) -> Mesh | None:
    """The mesh of "DATAxMODEL" over the first of `devices` (default: all, of all hosts); None for 1x1.

    Raises:
      ValueError: no mesh, more devices than there are, or hosts whose devices would be left out.
    """
    shape, devices = sizes(text), jax.devices() if devices is None else devices
    wanted, there = math.prod(shape), len(devices)
    if wanted > there or (jax.process_count() > 1 and wanted != there):
        hosts = f" on {jax.process_count()} hosts, which must all be used" if jax.process_count() > 1 else ""
        raise ValueError(f"mesh {text} needs {wanted} devices, there are {there} ({devices[0].platform}){hosts}")
    return None if wanted == 1 else jax.make_mesh(shape, (DATA, MODEL), (AxisType.Auto,) * 2, devices=devices[:wanted])


def shardings(
    mesh: Mesh | AbstractMesh, places: Sequence[Place], paths: Sequence[str], config: Any
) -> dict[str, NamedSharding]:
    """Where every parameter lies: path -> sharding.

    Raises:
      CheckpointError: a parameter without a row, or units that the mesh does not divide, all named together.
    """
    rows = {path: next((row for row in places if fnmatchcase(path, row.path)), None) for path in paths}
    if homeless := sorted(path for path, row in rows.items() if row is None):
        raise CheckpointError(f"the sharding table has no row for parameters {', '.join(homeless)}")
    specs, uneven = {}, {}
    for path, row in rows.items():
        assert row is not None
        cut = math.prod(mesh.shape[axis] for axis in row.axes if axis)
        count = _count(config, row.units, path) if row.units else 0
        if count % cut and not row.spare:
            uneven[row.units] = count
        specs[path] = PartitionSpec() if count % cut else PartitionSpec(*row.axes)
    if uneven:
        strict = [_count(config, row.units, p) for p, row in rows.items() if row and row.units and not row.spare]
        fits = [str(n) for n in range(1, math.gcd(*strict) + 1) if math.gcd(*strict) % n == 0]
        named = ", ".join(f"{k} ({v})" for k, v in uneven.items())
        axis = mesh.shape[MODEL]
        raise CheckpointError(f"a mesh with model axis {axis} does not divide {named}; it may be {', '.join(fits)}")
    return {path: NamedSharding(mesh, spec) for path, spec in specs.items()}


def _count(config: Any, units: str, path: str) -> int:
    value = getattr(config, units)
    return value if isinstance(value, int) else value[int(next(w for w in path.split(".") if w.isdigit()))]


def placed(extend: Callable[..., Any], mesh: Mesh) -> Callable[..., Any]:
    """`extend` with its chains dealt out over data, and keys and values over data and, where it divides, model.

    A batch that the data axis does not divide (a prompt's, 1) is held by all. Logits are whole in the vocabulary, so
    that the sampler's sums run in one order on every mesh.
    """

    def pin(array: jax.Array, *axes: str | None) -> jax.Array:
        fits = (a if a and n % mesh.shape[a] == 0 else None for a, n in zip(axes, array.shape, strict=True))
        return jax.lax.with_sharding_constraint(array, NamedSharding(mesh, PartitionSpec(*fits)))

    def segment(s: Segment) -> Segment:
        state = lambda arrays: tuple(pin(a, DATA, None, MODEL, None) for a in arrays)
        return Segment(state(s.keys), state(s.values), pin(s.positions, DATA, None), pin(s.valid, DATA, None))

    @functools.wraps(extend)
    def run(
        graphdef: Any, params: Any, tokens: Any, positions: Any, context: Any = (), valid: Any = None, at: Any = None
    ) -> tuple[jax.Array, Segment]:
        logits, made = extend(graphdef, params, tokens, positions, tuple(map(segment, context)), valid, at)
        return pin(logits, DATA, None, None), segment(made)

    return run


def fetch(tree: Any) -> Any:
    """Arrays on the host, as NumPy; every process gets the whole of arrays that lie on several hosts."""

    meshes = {a.sharding.mesh for a in jax.tree.leaves(tree) if not (a.is_fully_addressable or a.is_fully_replicated)}
    for mesh in meshes:
        tree = _whole(mesh)(tree)
    return jax.device_get(tree)


@functools.cache
def _whole(mesh: Mesh) -> Callable[[Any], Any]:
    return jax.jit(lambda tree: tree, out_shardings=NamedSharding(mesh, PartitionSpec()))


def imagined(text: str) -> AbstractMesh:
    """A mesh without devices, for counting what each would hold."""
    return AbstractMesh(sizes(text), (DATA, MODEL), axis_types=(AxisType.Auto,) * 2)
