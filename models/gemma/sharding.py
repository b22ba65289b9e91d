"""Where the parameters of Gemma 3 and Gemma 4 lie on a mesh: heads, hidden units and experts over the model axis.

As for Qwen (models/qwen/sharding.py). Layers differ in kv heads and, with shared keys and values, in hidden units; the
per-layer embedding's table is cut by its rows, what is small is whole on every device.
"""

from models.mesh import MODEL, Place

PLACES = (
    Place("embedding", (MODEL, None), "vocab_size", spare=True),
    Place("per_layer.table", (MODEL, None), "ple_vocab", spare=True),
    Place("*.q_proj.kernel", (None, MODEL), "num_heads"),
    Place("*.[kv]_proj.kernel", (None, MODEL), "num_kv_heads", spare=True),
    Place("*.o_proj.kernel", (MODEL, None), "num_heads"),
    Place("*.gate_proj.kernel", (None, MODEL), "intermediate_sizes"),
    Place("*.up_proj.kernel", (None, MODEL), "intermediate_sizes"),
    Place("*.down_proj.kernel", (MODEL, None), "intermediate_sizes"),
    Place("*.experts.*", (MODEL, None, None), "num_experts", spare=True),
    Place("*.router.*", ()),
    Place("*per_layer.*", ()),
    Place("*.scalar", ()),
    Place("*norm.weight", ()),
)
