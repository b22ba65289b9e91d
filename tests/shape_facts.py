"""Full-size models as facts: config fields, and the names and shapes of every tensor of their published checkpoints.

tests/golden/shapes.json holds them with layers of equal shape written once: name with # for the layer -> shape ->
layers.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from tests.checkpoints import GOLDEN

FILE = GOLDEN / "shapes.json"
Shapes = Mapping[str, tuple[int, ...]]
_LAYER = re.compile(r"(?<=\.layers\.)\d+(?=\.)")


def facts() -> dict[str, dict[str, Any]]:
    """name -> {"config": fields of config.json, "tensors": name -> shape}."""
    stored = json.loads(FILE.read_text())
    return {name: {"config": row["config"], "tensors": expand(row["tensors"])} for name, row in stored.items()}


def compress(shapes: Shapes) -> dict[str, dict[str, list[int]]]:
    found: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for name, shape in shapes.items():
        layer = _LAYER.search(name)
        size = "x".join(map(str, shape))
        found[_LAYER.sub("#", name)][size].append(int(layer[0]) if layer else -1)
    return {name: dict(sizes) for name, sizes in found.items()}


def expand(compressed: Mapping[str, Mapping[str, list[int]]]) -> dict[str, tuple[int, ...]]:
    return {
        name.replace("#", str(layer)): tuple(int(n) for n in size.split("x") if n)
        for name, sizes in compressed.items()
        for size, layers in sizes.items()
        for layer in layers
    }
