"""Matrices as int8 with one scale per output channel; activations, norms, embedding and head stay as they are.

    y[o] = s[o] sum_i x[i] q[i, o],  s[o] = max_i |w[i, o]| / 127,  q = round(w / s)

A parameter is quantised if its path ends in "kernel" (in, out), but for the router of a mixture, whose choices a
rounding would change; a family takes part by using `product`. The barrier ties a matrix to what it multiplies, so that
a compiler need not widen all of them before a sampling loop and hold both.
XLA for CPUs does it all the same: a compiled loop asks for 4 bytes of temporary memory per weight, so there int8 saves
nothing while chains are drawn. The library made for this (qwix) patches the products of a module while it runs and
quantises a model that is already loaded; here matrices are quantised one by one as they arrive, wherever they lie.

Knows: paths' endings, shardings of what it is given. Does not know: any family, files.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct
from jax.sharding import NamedSharding, PartitionSpec

Array = jax.Array


@struct.dataclass
class Int8:
    """A quantised matrix.

    Attributes:
      values: int8 [in, out].
      scale: float32 [1, out].
    """

    values: Array
    scale: Array

    def __getitem__(self, everything: Any) -> Int8:
        """`parameter[...]`, as of any other parameter."""
        assert everything is ...
        return self


def chosen(path: str) -> bool:
    return path.endswith("kernel") and "router" not in path


def quantise(matrix: Array) -> Int8:
    """Rounds to the nearest of 255 steps; a column of zeros stays zeros. Parts stay on the devices that hold them."""
    sharding = matrix.sharding
    return _quantise(sharding if isinstance(sharding, NamedSharding) else None)(matrix)


@functools.cache
def _quantise(sharding: NamedSharding | None) -> Callable[[Array], Int8]:
    def run(matrix: Array) -> Int8:
        wide = matrix.astype(jnp.float32)
        scale = jnp.abs(wide).max(0, keepdims=True) / 127
        steps = jnp.round(wide / jnp.where(scale == 0, 1, scale))
        return Int8(jnp.clip(steps, -127, 127).astype(jnp.int8), scale)

    if sharding is None:
        return jax.jit(run)
    where: Any = Int8(sharding, _of_columns(sharding))  # type: ignore[arg-type]  # shardings where arrays stand
    return jax.jit(run, out_shardings=where)


def _of_columns(sharding: NamedSharding) -> NamedSharding:
    """Where [1, out] lies beside a matrix: cut along out as the matrix is."""
    return NamedSharding(sharding.mesh, PartitionSpec(None, *sharding.spec[1:]))


def abstract(shape: jax.ShapeDtypeStruct) -> Int8:
    """Shapes of `quantise`, for counting."""
    beside = _of_columns(shape.sharding) if isinstance(shape.sharding, NamedSharding) else None
    values: Any = jax.ShapeDtypeStruct(shape.shape, jnp.int8, sharding=shape.sharding)
    return Int8(values, jax.ShapeDtypeStruct((1, shape.shape[1]), jnp.float32, sharding=beside))  # type: ignore[arg-type]  # a shape


def product(x: Array, matrix: Array | Int8) -> Array:
    """x [B, T, in] times a matrix [in, out], quantised or not; sums in float32, the scale after them."""
    if not isinstance(matrix, Int8):
        return jnp.einsum("btd,df->btf", x, matrix, preferred_element_type=jnp.float32).astype(x.dtype)
    values, x = jax.lax.optimization_barrier((matrix.values, x))
    y = jnp.einsum("btd,df->btf", x, values.astype(x.dtype), preferred_element_type=jnp.float32)
    return (y * matrix.scale[None]).astype(x.dtype)
