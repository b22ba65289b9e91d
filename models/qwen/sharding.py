"""Where the parameters of Qwen2 and Qwen3 lie on a mesh: heads and hidden units over the model axis.

Products that make heads or hidden units are cut by columns, those that end them by rows, so a layer adds partial sums
twice. Keys and values are whole on every device where there are fewer kv heads than the axis; so is a vocabulary that
it does not divide.
"""

from models.mesh import MODEL, Place

PLACES = (
    Place("embedding", (MODEL, None), "vocab_size", spare=True),
    Place("head", (MODEL, None), "vocab_size", spare=True),
    Place("*.q_proj.kernel", (None, MODEL), "num_heads"),
    Place("*.q_proj.bias", (MODEL,), "num_heads"),
    Place("*.[kv]_proj.kernel", (None, MODEL), "num_kv_heads", spare=True),
    Place("*.[kv]_proj.bias", (MODEL,), "num_kv_heads", spare=True),
    Place("*.o_proj.kernel", (MODEL, None), "num_heads"),
    Place("*.o_proj.bias", (None,)),
    Place("*.gate_proj.kernel", (None, MODEL), "intermediate_size"),
    Place("*.up_proj.kernel", (None, MODEL), "intermediate_size"),
    Place("*.down_proj.kernel", (MODEL, None), "intermediate_size"),
    Place("*norm.weight", (None,)),
)
