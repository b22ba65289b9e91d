"""Keys by name: distinct for distinct names, equal for equal names, and a seed that must be given."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmon.sampling.keys import arm_key, draw_key


def test_a1_keys_of_all_chain_step_pairs_are_distinct():
    """4 arms × 200 chains × 100 steps: 80,000 keys of 64 bits; a chance collision has probability 2e-10."""
    seen = []
    for record, arm in (("r1", "x1"), ("r1", "x0:sex"), ("r2", "x1"), ("r2", "x0:sex")):
        key = arm_key(0, record, arm)
        chain, step = jnp.meshgrid(jnp.arange(200), jnp.arange(100), indexing="ij")
        keys = jax.vmap(lambda c, s, key=key: jax.random.key_data(draw_key(key, c, s)))(chain.ravel(), step.ravel())
        seen.append(np.asarray(keys))
    rows = np.concatenate(seen)
    assert len(np.unique(rows, axis=0)) == len(rows)


def test_a_name_decides_alone():
    same = jax.random.key_data(arm_key(7, "r1", "x1")) == jax.random.key_data(arm_key(7, "r1", "x1"))
    assert bool(same.all())
    others = [
        arm_key(8, "r1", "x1"),
        arm_key(7, "r2", "x1"),
        arm_key(7, "r1", "x0"),
        arm_key(7, "x1", "r1"),
        arm_key(7, "r1x", "1"),
    ]
    for other in others:
        assert (jax.random.key_data(other) != jax.random.key_data(arm_key(7, "r1", "x1"))).any()


def test_the_keys_of_release_one():
    """Golden values: published chains must be replayable by name for ever."""
    assert jax.random.key_data(arm_key(0, "record", "x1")).tolist() == GOLDEN_ARM
    assert (
        jax.random.key_data(draw_key(arm_key(0, "record", "x1"), jnp.int32(17), jnp.int32(3))).tolist() == GOLDEN_DRAW
    )


GOLDEN_ARM = [3426745853, 781615]
GOLDEN_DRAW = [1951178710, 544725547]


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_out_of_range_is_refused(seed: int):
    with pytest.raises(ValueError, match="seed"):
        arm_key(seed, "r", "a")


def test_a5_a_missing_seed_is_an_error():
    assert inspect.signature(arm_key).parameters["seed"].default is inspect.Parameter.empty
    with pytest.raises(TypeError):
        arm_key(record="r", arm="a")
