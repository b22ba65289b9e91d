"""Int8 matrices: against a plain loop, on a mesh, and what they cost in bytes."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from models import int8, memory, mesh
from models.assign import by_path
from models.loading import load
from tests.checkpoints import QWEN3, write_folder
from tests.running import tiny


def widened(matrix: int8.Int8) -> np.ndarray:
    return np.asarray(matrix.values).astype(np.float32) * np.asarray(matrix.scale)


def test_every_column_by_hand() -> None:
    """Nearest of 255 steps of the column's largest entry; a column of zeros; the error is at most half a step."""
    matrix = np.random.default_rng(0).standard_normal((7, 5)).astype(np.float32)
    matrix[:, 2] = 0
    made = int8.quantise(jnp.asarray(matrix))
    for column in range(5):
        step = np.float32(np.abs(matrix[:, column]).max()) / np.float32(127)
        assert made.scale[0, column] == step
        for row in range(7):
            assert made.values[row, column] == (round(float(matrix[row, column] / step)) if step else 0)
    wide = widened(made)
    assert (np.abs(wide - matrix) <= np.asarray(made.scale) * 0.501).all()


@pytest.mark.parametrize("text", ["1x1", "2x2"])
def test_a_quantised_model_is_the_model_of_its_rounded_matrices(text: str, tmp_path: Path) -> None:
    """Logits equal those of float32 parameters rounded outside; bytes are what the shapes said before loading."""
    whole, made = tiny("qwen3"), load(write_folder(tmp_path, QWEN3), mesh=mesh.make(text), quantise=True)
    rounded = {
        p: jnp.asarray(widened(int8.quantise(a))) if int8.chosen(p) else a for p, a in by_path(whole.params).items()
    }
    params = jax.tree.unflatten(jax.tree.structure(whole.params), list(rounded.values()))
    tokens = np.arange(6, dtype=np.int32)[None]
    want, _ = whole.extend(whole.graphdef, params, jnp.asarray(tokens), jnp.asarray(tokens))
    got, _ = jax.jit(made.extend, static_argnums=0)(made.graphdef, made.params, tokens, tokens)
    np.testing.assert_allclose(got, want, atol=2e-5)
    assert made.fingerprint != whole.fingerprint
    kernels = sum(a.size for p, a in by_path(whole.params).items() if int8.chosen(p))
    columns = sum(a.shape[-1] for p, a in by_path(whole.params).items() if int8.chosen(p))
    if text == "1x1":
        assert memory.weights(made.params) == memory.weights(whole.params) - 3 * kernels + 4 * columns
