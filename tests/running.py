"""Tiny models in memory, and the ways tests run them: the pure function, and layer by layer."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from models.attention import visible
from models.context import Segment
from models.loading import Model, load
from tests import checkpoints, gemma_cases

# Compiled once and run a few times: the compiler is asked not to optimise, which takes half as long.
QUICK = {"xla_backend_optimization_level": 0}
STEP = jax.jit(lambda e, g, p, *a: e(g, p, *a), static_argnums=(0, 1), compiler_options=QUICK)


@functools.cache
def tiny(name: str, dtype: str = "float32") -> Model:
    """The model of a case of tests/checkpoints.py, written as a folder and loaded from it."""
    with tempfile.TemporaryDirectory() as folder:
        return load(checkpoints.write_folder(Path(folder), checkpoints.CASES[name][0]), dtype)


@functools.cache
def tiny_gemma(name: str, dtype: str = "float32") -> Model:
    """The model of a case of tests/gemma_cases.py, likewise."""
    with tempfile.TemporaryDirectory() as folder:
        return load(gemma_cases.write_folder(Path(folder), gemma_cases.CASES[name]), dtype)


def extend(model: Model, tokens: Any, positions: Any, *rest: Any) -> tuple[jax.Array, Segment]:
    return STEP(model.extend, model.graphdef, model.params, jnp.asarray(tokens), jnp.asarray(positions), *rest)


def places(tokens: np.ndarray, start: int = 0) -> np.ndarray:
    return np.broadcast_to(start + np.arange(tokens.shape[1], dtype=np.int32), tokens.shape)


def take(segment: Segment, start: int, stop: int) -> Segment:
    """The slots [start, stop): the state of a part of a run, without recomputation."""
    return jax.tree.map(lambda a: a[:, start:stop], segment)


def hidden_states(model: Model, tokens: np.ndarray, positions: np.ndarray) -> list[np.ndarray]:
    """The embedding and the output of each layer, the layers run one by one."""
    states = _one_by_one(model.graphdef, model.params, jnp.asarray(tokens), jnp.asarray(positions))
    return [np.asarray(s) for s in states]


@functools.partial(jax.jit, static_argnums=0)
def _one_by_one(graphdef: Any, params: Any, tokens: jax.Array, positions: jax.Array) -> list[jax.Array]:
    network = nnx.merge(graphdef, params)
    masks = (visible(positions, positions, jnp.ones(tokens.shape, bool)),)
    states = [network.embedding[...][tokens]]
    for layer in network.layers:
        states.append(layer(states[-1], positions, (), masks)[0])
    return states
