"""The live fields of a Qwen2 or Qwen3 checkpoint; the difference of the two families is data here, not code.

Knows: what each field of config.json does. A field is live (it sets something below), inert (INERT says why) or
refused by name. Does not know: files, tensors.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from models import fields as fields_of_all
from models.checkpoint import CheckpointError
from models.fields import flag, positive, size, understood
from models.rope import Rope, make_rope


@dataclasses.dataclass(frozen=True)
class QwenConfig:
    """Shapes and switches of one model.

    Qwen2 has biases on q, k, v and no head norms; Qwen3 has head norms and (by default) no biases.
    """

    vocab_size: int  # V, rows of the embedding
    hidden_size: int  # D
    intermediate_size: int
    num_layers: int  # L
    num_heads: int  # N
    num_kv_heads: int  # K
    head_dim: int  # H
    rope: Rope
    norm_eps: float
    tied: bool  # the output head is the embedding
    qkv_bias: bool
    output_bias: bool
    head_norms: bool
    max_positions: int

    @property
    def ropes(self) -> tuple[Rope, ...]:
        """One per layer."""
        return (self.rope,) * self.num_layers

    @property
    def windows(self) -> tuple[int | None, ...]:
        """How many tokens back each layer sees; None is all of them."""
        return (None,) * self.num_layers

    @property
    def state_size(self) -> int:
        """Numbers that a token leaves in a segment."""
        return 2 * self.num_layers * self.num_kv_heads * self.head_dim

    @property
    def query_width(self) -> int:
        """Query numbers of a token, over all layers."""
        return self.num_layers * self.num_heads * self.head_dim

    @property
    def idle_parameters(self) -> int:
        """Parameters that are looked up and not multiplied with."""
        return 0 if self.tied else self.vocab_size * self.hidden_size


SIZES = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "max_position_embeddings",
)
LIVE = {
    "qwen2": {
        *SIZES,
        "head_dim",
        "rms_norm_eps",
        "rope_theta",
        "rope_scaling",
        "rope_parameters",
        "tie_word_embeddings",
    },
    "qwen3": {
        *SIZES,
        *("head_dim", "rms_norm_eps", "rope_theta", "rope_scaling", "rope_parameters", "tie_word_embeddings"),
        "attention_bias",
    },
}
CHECKED = {  # one value is built; any other is refused
    "hidden_act": ("silu",),
    "use_sliding_window": (False, None),
    "is_encoder_decoder": (False,),
    "chunk_size_feed_forward": (0,),
    "quantization_config": (None,),
}
INERT = {
    **fields_of_all.INERT,
    "architectures": "checked against the family",
    "layer_types": "checked: full attention only",
    "sliding_window": "used only with use_sliding_window, which must be off",
    "max_window_layers": "used only with use_sliding_window, which must be off",
    "bos_token_id": "Qwen prepends no token",
    "_attn_implementation_autoset": "which kernel, not what it computes",
}


def from_hf(fields: Mapping[str, Any]) -> QwenConfig:
    """Reads the fields of config.json (legacy `rope_scaling` or `rope_parameters`).

    Raises:
      CheckpointError: a field that is unknown, missing, contradictory or out of range, by name.
    """
    family = fields.get("model_type")
    if family not in LIVE:
        raise CheckpointError(f"model_type {family!r} is not supported (have {', '.join(LIVE)})")
    understood(fields, family, LIVE[family], CHECKED, INERT)
    sizes = {name: size(fields, name) for name in SIZES if name != "num_key_value_heads"}
    layers, heads, width = sizes["num_hidden_layers"], sizes["num_attention_heads"], sizes["hidden_size"]
    _full_attention(fields, family, layers)
    kv_heads = heads if fields.get("num_key_value_heads", 0) is None else size(fields, "num_key_value_heads")
    if heads % kv_heads:
        raise CheckpointError(
            f"config field num_attention_heads ({heads}) is not a multiple of num_key_value_heads ({kv_heads})"
        )
    if fields.get("head_dim") is None:
        if width % heads:
            raise CheckpointError(
                f"config field hidden_size ({width}) is not a multiple of num_attention_heads ({heads})"
            )
        if family == "qwen3":  # transformers would take 128, others D/N: a silent choice could be the wrong one
            raise CheckpointError("config field head_dim is missing")
    head_dim = width // heads if fields.get("head_dim") is None else size(fields, "head_dim")
    if head_dim % 2:
        raise CheckpointError(f"config field head_dim ({head_dim}) is odd; rotary embeddings turn pairs")
    bias = flag(fields, "attention_bias")
    return QwenConfig(
        vocab_size=sizes["vocab_size"],
        hidden_size=width,
        intermediate_size=sizes["intermediate_size"],
        num_layers=layers,
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=head_dim,
        rope=_rope(fields, head_dim, sizes["max_position_embeddings"]),
        norm_eps=positive(fields, "rms_norm_eps"),
        tied=flag(fields, "tie_word_embeddings"),
        qkv_bias=family == "qwen2" or bias,
        output_bias=bias,
        head_norms=family == "qwen3",
        max_positions=sizes["max_position_embeddings"],
    )


def _full_attention(fields: Mapping[str, Any], family: str, layers: int) -> None:
    want = {"qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}[family]
    if fields.get("architectures") not in (None, [want]):
        raise CheckpointError(f"config field architectures is {fields['architectures']}; only [{want!r}] is built")
    types = fields.get("layer_types")
    if types is not None and list(types) != ["full_attention"] * layers:
        raise CheckpointError(f"config field layer_types must be {layers} times 'full_attention', got {types}")


def _rope(fields: Mapping[str, Any], head_dim: int, max_positions: int) -> Rope:
    old, new = fields.get("rope_scaling"), fields.get("rope_parameters")
    for name, value in (("rope_scaling", old), ("rope_parameters", new)):
        if value is not None and not isinstance(value, Mapping):
            raise CheckpointError(f"config field {name} must be an object or null, got {value!r}")
    if old and new and _canonical(old) != _canonical(new):
        raise CheckpointError("config fields rope_scaling and rope_parameters contradict each other")
    scaling = new or old or {}
    thetas = {
        float(positive(f, "rope_theta")) for f in (fields, old or {}, new or {}) if f.get("rope_theta") is not None
    }
    if len(thetas) != 1:
        raise CheckpointError(
            f"config field rope_theta {'is missing' if not thetas else f'has two values {sorted(thetas)}'}"
        )
    try:
        return make_rope(head_dim, thetas.pop(), scaling, max_positions)
    except ValueError as error:
        raise CheckpointError(f"config field {'rope_parameters' if new else 'rope_scaling'}: {error}") from None


def _canonical(scaling: Mapping[str, Any]) -> dict[str, Any]:
    kept = {k: v for k, v in scaling.items() if v is not None and k not in ("type", "rope_type", "rope_theta")}
    return {**kept, "rope_type": scaling.get("rope_type", scaling.get("type", "default"))}
