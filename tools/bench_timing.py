"""How work is timed, and what a figure of the benchmark is. Knows: clocks. Does not know: what is timed."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax


@dataclasses.dataclass(frozen=True)
class Figure:
    """One line of the table: what was measured, its value and unit, and the target it is held against, if any."""

    name: str
    value: float
    unit: str
    target: str = ""

    def line(self) -> str:
        target = f"   (target {self.target})" if self.target else ""
        return f"{self.name:66}{self.value:14,.4g} {self.unit}{target}"


def medians(
    work: Mapping[str, Callable[[], Any]], repeats: int, ready: Mapping[str, Callable[[], Any]] | None = None
) -> dict[str, float]:
    """Seconds per call, the median of alternating repeats, after each call has been made ready.

    Args: ready: a cheaper call than that itself which compiles and loads what it needs, by name.
    """
    for name, call in work.items():
        jax.block_until_ready((ready or {}).get(name, call)())
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(repeats):
        for name, call in work.items():
            began = time.perf_counter()
            jax.block_until_ready(call())
            seconds[name].append(time.perf_counter() - began)
    return {name: statistics.median(values) for name, values in seconds.items()}
