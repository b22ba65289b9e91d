"""The arms of a record, and which chains of an arm are drawn together.

X = 1 is the whole record and is shared by all its attributes; X = 0 is drawn once per attribute. Chain ids [0, n) are
the selection batch, [n, 2n) the estimation batch (App. D).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from jaxmon.records import Record, remove

X1 = "x1"


def x0(attribute: str) -> str:
    """The name of the arm without one attribute."""
    return f"x0:{attribute}"


def arms(record: Record, attributes: Iterable[str]) -> dict[str, Record]:
    """Arm name -> the record as its prompt shows it: X = 1, then one X = 0 arm per attribute.

    Raises:
      ValueError: the record lacks one of the attributes.
    """
    return {X1: record} | {x0(name): remove(record, name) for name in attributes}


def shards(first: int, stop: int, size: int, *borders: int) -> list[tuple[int, int]]:
    """Cuts the chain ids [first, stop) at multiples of `size` and at `borders`; a shard is drawn and stored whole.

    The cuts do not depend on `first` and `stop` otherwise, so a range drawn in two stages has the same shards as the
    two ranges drawn one after the other.
    """
    cuts = {first, stop} | {b for b in borders if first < b < stop}
    cuts |= set(range(first - first % size + size, stop, size))
    points = sorted(cuts)
    return [(a, b) for a, b in itertools.pairwise(points) if a < b]


def unit_size(shard: int, slots: int, seconds: float, rate: float) -> int:
    """Chains of a unit: about `seconds` of work for a worker that draws `rate` chains a second, at most a shard.

    Not less than fill the slots: a smaller unit would take as long. A function of the config alone, since the cuts are
    names of files.

    Args: seconds, rate: 0 for units of a shard.
    """
    return min(shard, max(slots, int(seconds * rate))) if seconds * rate else shard


def together(slots: int, count: int) -> int:
    """How many units of `count` chains are drawn at once: as many as the slots hold, a power of two (few programs)."""
    return 1 << max(0, (slots // count).bit_length() - 1)
