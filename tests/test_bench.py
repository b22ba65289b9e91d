"""What the benchmark claims beyond seconds: slot occupancy, compilations per bucket, memory that shares the prompt."""

from __future__ import annotations

import numpy as np
import pytest

from models.loading import Model, load
from tools import bench_decode, bench_programs


@pytest.fixture(scope="module")
def model() -> Model:
    return load("models/organisms/ledger")


def slot_steps(lengths: list[int], widths: list[int]) -> int:
    """Slots times steps of the sampler's loops, step by step: an idle slot takes the next chain before the step."""
    waiting, left, count = list(lengths), [0] * widths[0], 0
    while waiting or any(left):
        while len(widths) > 1 and len(waiting) + sum(n > 0 for n in left) <= widths[1]:
            widths = widths[1:]
            left = sorted(left, reverse=True)[: widths[0]]
        left = [n if n else (waiting.pop(0) if waiting else 0) for n in left]
        left, count = [max(0, n - 1) for n in left], count + widths[0]
    return count


@pytest.mark.parametrize("widths", [[1], [3], [8], [50], [16, 4], [16, 8, 2, 1]], ids=str)
def test_occupancy_is_that_of_the_loop(widths: list[int]) -> None:
    lengths = np.random.default_rng(len(widths)).integers(1, 30, 40)
    slots, *tail = widths
    expected = lengths.sum() / slot_steps(lengths.tolist(), widths)
    assert bench_decode.occupancy(lengths, slots, tail) == pytest.approx(expected)
    assert bench_decode.waiting(lengths, slots) <= bench_decode.occupancy(lengths, slots) + 1e-12


def test_another_prompt_of_the_same_bucket_compiles_nothing(model: Model) -> None:
    _, again, other = (f.value for f in bench_programs.compilations(model, slots=3, length=5, bucket=48))
    assert (again, other) == (0, 2)  # of another bucket: the reading and the loop


def test_a_longer_prompt_costs_the_same_for_few_chains_and_for_many(model: Model) -> None:
    """Bytes grow with prompt + slots x chain, not with prompt x slots."""
    held = {(p, s): bench_programs.used(model, p, s, 8) for p in (64, 512) for s in (4, 32)}
    few, many = (held[512, s] - held[64, s] for s in (4, 32))
    assert many - few < 0.5 * few * (32 / 4 - 1)  # far from 8 times as much
