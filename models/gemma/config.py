"""The live fields of a Gemma 3 or Gemma 4 checkpoint's text model; the families differ in data here, not in code.

Knows: what each live field of config.json sets (tables.py lists the others). A multimodal config is read through its
`text_config`. Does not know: files, tensors.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from models.checkpoint import CheckpointError
from models.fields import count, flag, positive, size, understood
from models.gemma.tables import (
    CHECKED,
    DEFAULTS,
    FULL,
    INERT,
    LIVE,
    MULTIMODAL,
    MULTIMODAL_ENDINGS,
    SIZES,
    SLIDING,
)
from models.rope import Rope, make_rope


@dataclasses.dataclass(frozen=True)
class LayerShape:
    """What differs from layer to layer."""

    head_dim: int  # H
    kv_heads: int  # K
    rope: Rope
    window: int | None  # how many tokens it sees, itself among them; None is all
    value_proj: bool  # False: values are made of the key projection (K = V)
    intermediate_size: int
    source: int  # which of the stored keys and values it reads
    owns: bool  # it makes those itself; otherwise an earlier layer of its type does


@dataclasses.dataclass(frozen=True)
class Experts:
    """The mixture beside the dense MLP: each token goes to `chosen` of `total` experts."""

    total: int  # E
    chosen: int
    intermediate_size: int


@dataclasses.dataclass(frozen=True)
class GemmaConfig:
    """Shapes and switches of one model. The head is always the embedding.

    Norms multiply by (norm_offset + w): 1 + w in Gemma 3, w in Gemma 4.
    """

    vocab_size: int  # V, rows of the embedding
    hidden_size: int  # D
    num_heads: int  # N
    layers: tuple[LayerShape, ...]
    norm_eps: float
    norm_offset: float
    query_scale: float  # of the attention scores
    value_norm: bool  # values are normalised, without a weight
    layer_scalars: bool  # each layer's output is multiplied by a number of its own
    logit_cap: float | None  # logits = cap tanh(logits / cap)
    ple_size: int  # width of the per-layer embeddings; 0 where there are none
    ple_vocab: int  # their rows
    experts: Experts | None
    max_positions: int
    tied: bool = True

    @property
    def num_layers(self) -> int:
        return len(self.layers)

    @property
    def num_kv_heads(self) -> tuple[int, ...]:
        return tuple(layer.kv_heads for layer in self.layers)

    @property
    def intermediate_sizes(self) -> tuple[int, ...]:
        return tuple(layer.intermediate_size for layer in self.layers)

    @property
    def num_experts(self) -> int:
        return self.experts.total if self.experts else 0

    @property
    def stored(self) -> tuple[LayerShape, ...]:
        """The layers that own keys and values: the first ones, and the only ones in a segment."""
        return tuple(layer for layer in self.layers if layer.owns)

    @property
    def ropes(self) -> tuple[Rope, ...]:
        """One per layer of a segment."""
        return tuple(layer.rope for layer in self.stored)

    @property
    def windows(self) -> tuple[int | None, ...]:
        """How many tokens back each layer sees; None is all of them."""
        return tuple(layer.window for layer in self.layers)

    @property
    def state_size(self) -> int:
        """Numbers that a token leaves in a segment."""
        return sum(2 * layer.kv_heads * layer.head_dim for layer in self.stored)

    @property
    def query_width(self) -> int:
        """Query numbers of a token, over all layers."""
        return sum(self.num_heads * layer.head_dim for layer in self.layers)

    @property
    def idle_parameters(self) -> int:
        """Parameters that a token is not multiplied with: per-layer embeddings, experts it is not sent to."""
        idle = self.num_layers * self.ple_vocab * self.ple_size
        if self.experts:
            e = self.experts
            idle += self.num_layers * (e.total - e.chosen) * 3 * self.hidden_size * e.intermediate_size
        return idle


def from_hf(given: Mapping[str, Any]) -> GemmaConfig:
    """Reads the fields of config.json, of the text model or of the multimodal one.

    Raises:
      CheckpointError: a field that is unknown, missing, contradictory or out of range, by name.
    """
    family = str(given.get("model_type"))[:6]
    fields = _text(given)
    understood(fields, family, LIVE[family], CHECKED[family], INERT)
    if family == "gemma3":
        fields = DEFAULTS | {k: v for k, v in fields.items() if v is not None}
    sizes = {name: size(fields, name) for name in SIZES}
    cap = fields.get("final_logit_softcapping")
    ple = count(fields, "hidden_size_per_layer_input")
    experts = _experts(fields)
    return GemmaConfig(
        vocab_size=sizes["vocab_size"],
        hidden_size=sizes["hidden_size"],
        num_heads=sizes["num_attention_heads"],
        layers=_layers(fields, sizes, family),
        norm_eps=positive(fields, "rms_norm_eps"),
        norm_offset=1.0 if family == "gemma3" else 0.0,
        query_scale=positive(fields, "query_pre_attn_scalar") ** -0.5 if family == "gemma3" else 1.0,
        value_norm=family == "gemma4",
        layer_scalars=family == "gemma4",
        logit_cap=None if cap is None else positive(fields, "final_logit_softcapping"),
        ple_size=ple,
        ple_vocab=size(fields, "vocab_size_per_layer_input") if ple else 0,
        experts=experts,
        max_positions=size(fields, "max_position_embeddings"),
    )


def _text(given: Mapping[str, Any]) -> dict[str, Any]:
    """The text model's fields; those beside it must be known to be of no account to text."""
    inner = given.get("text_config")
    if inner is None:
        return dict(given)
    if not isinstance(inner, Mapping):
        raise CheckpointError(f"config field text_config must be an object, got {inner!r}")
    outer = {k for k in given if not k.endswith(MULTIMODAL_ENDINGS)} - {"text_config", "tie_word_embeddings"}
    if unknown := sorted(outer - set(MULTIMODAL) - set(INERT)):
        raise CheckpointError(f"config field {', '.join(unknown)} beside text_config is not understood")
    tied = {"tie_word_embeddings": given["tie_word_embeddings"]} if "tie_word_embeddings" in given else {}
    return {**tied, **inner}


def _experts(fields: Mapping[str, Any]) -> Experts | None:
    if not flag(fields, "enable_moe_block"):
        return None
    names = ("num_experts", "top_k_experts", "moe_intermediate_size")
    experts = Experts(*(size(fields, name) for name in names))
    if experts.chosen > experts.total:
        raise CheckpointError(f"config field top_k_experts ({experts.chosen}) exceeds num_experts ({experts.total})")
    return experts


def _layers(fields: Mapping[str, Any], sizes: Mapping[str, int], family: str) -> tuple[LayerShape, ...]:
    """Each layer's shape, from its type and from which layers share keys and values."""
    types, heads = _types(fields, sizes["num_hidden_layers"]), sizes["num_attention_heads"]
    first_shared = len(types) - count(fields, "num_kv_shared_layers")
    if first_shared < 1 or (missing := sorted(set(types[first_shared:]) - set(types[:first_shared]))):
        what = f"no layer before has {missing[0]}" if first_shared >= 1 else f"there are {len(types)} layers"
        raise CheckpointError(
            f"config field num_kv_shared_layers is {fields['num_kv_shared_layers']}: nothing to share with, {what}"
        )
    kinds = {kind: _kind(fields, kind, family) for kind in dict.fromkeys(types)}
    for kind, shape in kinds.items():
        if heads % shape.kv_heads:
            raise CheckpointError(
                f"config field num_attention_heads ({heads}) is not a multiple of the {shape.kv_heads} key/value heads "
                f"of {kind}"
            )
    last = {kind: max(i for i, k in enumerate(types[:first_shared]) if k == kind) for kind in set(types[:first_shared])}
    wide = 2 if flag(fields, "use_double_wide_mlp") else 1
    return tuple(
        dataclasses.replace(
            kinds[kind],
            intermediate_size=sizes["intermediate_size"] * (wide if i >= first_shared else 1),
            source=i if i < first_shared else last[kind],
            owns=i < first_shared,
        )
        for i, kind in enumerate(types)
    )


def _types(fields: Mapping[str, Any], layers: int) -> list[str]:
    types = fields.get("layer_types")
    if types is None:  # older Gemma 3 configs give the period of the full layers, or leave even that out
        period = [size(fields, n) for n in ("sliding_window_pattern", "_sliding_window_pattern") if fields.get(n)]
        types = [FULL if (i + 1) % (period or [6])[0] == 0 else SLIDING for i in range(layers)]
    if not isinstance(types, list) or len(types) != layers or set(types) - {SLIDING, FULL}:
        raise CheckpointError(f"config field layer_types must list {layers} times {SLIDING!r} or {FULL!r}, got {types}")
    return types


def _kind(fields: Mapping[str, Any], kind: str, family: str) -> LayerShape:
    """What the layers of one type have in common."""
    full = kind == FULL
    head_dim, kv_heads = size(fields, "head_dim"), size(fields, "num_key_value_heads")
    k_eq_v = full and flag(fields, "attention_k_eq_v")
    if full and family == "gemma4":
        own = _full_layers(fields, k_eq_v)
        head_dim, kv_heads = own.get("head_dim", head_dim), own.get("num_key_value_heads", kv_heads)
    window = None if full else size(fields, "sliding_window")
    return LayerShape(head_dim, kv_heads, _rope(fields, kind, head_dim), window, not k_eq_v, 0, 0, True)


def _full_layers(fields: Mapping[str, Any], k_eq_v: bool) -> dict[str, int]:
    """Head size and key/value heads of Gemma 4's full layers, as published or as `transformers` saves them again."""
    saved = fields.get("per_layer_config")
    if saved is None:
        own = {"head_dim": size(fields, "global_head_dim")}
        if k_eq_v and fields.get("num_global_key_value_heads") is not None:
            own["num_key_value_heads"] = size(fields, "num_global_key_value_heads")
        return own
    full = [str(i) for i, kind in enumerate(fields["layer_types"]) if kind == FULL]
    if not isinstance(saved, Mapping) or sorted(saved) != sorted(full) or len({str(v) for v in saved.values()}) > 1:
        raise CheckpointError("config field per_layer_config must say the same of every full layer and nothing else")
    (own, *_) = saved.values()
    if not isinstance(own, Mapping) or set(own) - {"head_dim", "num_key_value_heads"}:
        raise CheckpointError(
            f"config field per_layer_config holds {own!r}; only head_dim, num_key_value_heads are built"
        )
    return {name: size(own, name) for name in own}


def _rope(fields: Mapping[str, Any], kind: str, head_dim: int) -> Rope:
    """A type's frequencies: `rope_parameters` by type, or Gemma 3's older fields (scaling of the full layers alone)."""
    given = fields.get("rope_parameters")
    if given is not None and fields.get("rope_scaling") is not None:
        raise CheckpointError("config fields rope_parameters and rope_scaling are both given")
    if given is None and "rope_theta" in fields:
        theta = fields["rope_theta" if kind == FULL else "rope_local_base_freq"]
        given = {kind: {**((fields.get("rope_scaling") or {}) if kind == FULL else {}), "rope_theta": theta}}
    own = given.get(kind) if isinstance(given, Mapping) else None
    if not isinstance(own, Mapping):
        raise CheckpointError(f"config field rope_parameters must have an object {kind}, got {given!r}")
    try:
        return make_rope(head_dim, positive(own, "rope_theta"), own, size(fields, "max_position_embeddings"))
    except ValueError as error:
        raise CheckpointError(f"config field rope_parameters, {kind}: {error}") from None
