"""Model x precision x device: bytes of weights, bytes per 1,000 chains, how many chains fit. Writes models/README.md.

    python -m tools.memory_table            # prints the table
    python -m tools.memory_table --write    # puts it between the marks of models/README.md

Qwen3 rows are counted from our network's shapes and sharding table at the published sizes below. Gemma 4 rows are
counted from the published tensor shapes of the text models (parameters) and from which layers own keys (the others read
theirs; every owner is cached in full length, sliding or not).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

from absl import flags

from experiments import cli

README = Path(__file__).resolve().parent.parent / "models" / "README.md"
START, STOP = "<!-- tools/memory_table.py -->", "<!-- end of tools/memory_table.py -->"
LENGTH = 2048
GIB = 2**30

# layers, hidden, intermediate, heads, kv heads, head tied: the models' config.json
QWEN3 = {
    "Qwen3-0.6B": (28, 1024, 3072, 16, 8, True),
    "Qwen3-1.7B": (28, 2048, 6144, 16, 8, True),
    "Qwen3-4B": (36, 2560, 9728, 32, 8, True),
    "Qwen3-8B": (36, 4096, 12288, 32, 8, False),
    "Qwen3-14B": (40, 5120, 17408, 40, 8, False),
    "Qwen3-32B": (64, 5120, 25600, 64, 8, False),
}
# parameters, then (layers that own keys, kv heads, head dim) of sliding and of full layers
GEMMA4 = {
    "Gemma-4-E2B": (4_628_569_379, ((12, 1, 256), (3, 1, 512))),
    "Gemma-4-E4B": (7_463_013_418, ((20, 2, 256), (4, 2, 512))),
    "Gemma-4-26B-A4B": (25_233_141_790, ((25, 8, 256), (5, 2, 512))),
    "Gemma-4-31B": (30_697_345_340, ((50, 16, 256), (10, 4, 512))),
}
QWEN3_VOCABULARY, GEMMA4_VOCABULARY = 151_936, 262_144
DTYPES = {"float32": 2, "bfloat16": 1}  # times the bytes of bfloat16
# GB as the makers give them; the laptop's 16 GB are its main memory
DEVICES = {"v5e 16": 16, "laptop 16": 16, "A100 40": 40, "A100 80": 80, "H100 80": 80, "v5p 95": 95, "H200 141": 141}
AXES = (1, 2, 4, 8, 16)


@dataclasses.dataclass(frozen=True)
class Held:
    """What one device of a mesh 1 x `axis` holds: bytes of weights, and of a token's keys and values."""

    axis: int
    weights: int
    token: int


def qwen3(name: str) -> Iterator[Held]:
    """In bfloat16, by model axis, as far as the heads allow."""
    from models import memory, mesh
    from models.checkpoint import CheckpointError
    from models.extend import extend
    from models.families import FAMILIES, abstract
    from models.loading import DTYPES as KINDS
    from models.loading import laid

    family = FAMILIES["qwen3"]
    config = family.read(fields(name))
    graphdef, shapes = abstract(family, config, KINDS["bfloat16"])
    made = memory.states(extend, graphdef, shapes)
    for axis in AXES:
        try:
            held = memory.weights(laid(shapes, family, config, mesh.imagined(f"1x{axis}")))
        except CheckpointError:
            continue
        yield Held(axis, held, memory.token(made, axis))


def fields(name: str) -> dict[str, object]:
    """The live fields of a Qwen3 config.json."""
    layers, hidden, intermediate, heads, kv_heads, tied = QWEN3[name]
    return {
        "model_type": "qwen3",
        "vocab_size": QWEN3_VOCABULARY,
        "hidden_size": hidden,
        "intermediate_size": intermediate,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": 128,
        "max_position_embeddings": 40960,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1_000_000,
        "tie_word_embeddings": tied,
    }


def gemma4(name: str) -> Iterator[Held]:
    """In bfloat16, by model axis; weights are taken to divide evenly, kv heads are cut where the axis divides them."""
    parameters, owners = GEMMA4[name]
    for axis in AXES:
        heads = (layers * (k if k % axis else k // axis) * dim for layers, k, dim in owners)
        yield Held(axis, 2 * parameters // axis, 2 * 2 * sum(heads))


def rows() -> Iterator[list[str]]:
    yield ["model", "precision", "weights, GiB", "1,000 chains, GiB", *DEVICES]
    yield ["---"] * (4 + len(DEVICES))
    for names, held_by, vocabulary in ((QWEN3, qwen3, QWEN3_VOCABULARY), (GEMMA4, gemma4, GEMMA4_VOCABULARY)):
        for name in names:
            held = list(held_by(name))
            for dtype, wider in DTYPES.items():
                meshes = [Held(h.axis, h.weights * wider, h.token * wider) for h in held]
                gib = (meshes[0].weights / GIB, 1000 * LENGTH * meshes[0].token / GIB)
                cells = [cell(meshes, vocabulary, size * 1e9) for size in DEVICES.values()]
                yield [name, dtype, *(f"{g:,.1f}" for g in gib), *cells]


def cell(meshes: Sequence[Held], vocabulary: int, limit: float) -> str:
    """Chains on the smallest mesh 1 x axis that holds the weights and one chain."""
    from models import memory

    for m in meshes:
        if many := memory.fit(limit, m.weights, memory.chain(m.token, LENGTH, vocabulary)):
            return f"{many:,}" if m.axis == 1 else f"{many:,} on {m.axis}"
    return "none"


def table() -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows())


def main(argv: list[str]) -> None:
    if argv[1:]:
        raise ValueError(f"unexpected argument {argv[1]!r}")
    made = table()
    print(made)
    if flags.FLAGS.write:
        before, _, rest = README.read_text().partition(START)
        _, mark, after = rest.partition(STOP)
        if not mark:
            raise ValueError(f"{README}: lacks the marks {START} and {STOP}")
        README.write_text(f"{before}{START}\n{made}\n{STOP}{after}")


if __name__ == "__main__":
    flags.DEFINE_boolean("write", False, "Replace the table in models/README.md.")
    cli.start(main)
