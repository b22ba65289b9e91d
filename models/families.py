"""Which families there are: one row each, of what their folders provide.

Knows: how a config names its family, and where the parts of a family are. Does not know: files, tensors.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import jax
from flax import nnx

from models.assign import Rule
from models.chat import Chat
from models.checkpoint import CheckpointError
from models.gemma import chat as gemma_chat
from models.gemma import config as gemma_config
from models.gemma import modeling as gemma
from models.gemma import params as gemma_params
from models.gemma import sharding as gemma_sharding
from models.mesh import Place
from models.qwen import chat as qwen_chat
from models.qwen import config as qwen_config
from models.qwen import modeling as qwen
from models.qwen import params as qwen_params
from models.qwen import sharding as qwen_sharding

Config = qwen_config.QwenConfig | gemma_config.GemmaConfig
Names = Collection[str]


@dataclasses.dataclass(frozen=True)
class Family:
    """One row.

    Attributes:
      read: fields of config.json -> shapes.
      network: (shapes, dtype, rngs) -> the module.
      rules, ignored, twins: the name table, what is not read, what may be stored twice; of a config and a checkpoint's
        tensor names (`models.assign.fill`).
      chats: its turns; rows: (row of chats, phrase of its template), in the order they are tried.
      places: where its parameters lie on a mesh.
      sampling: published settings; a checkpoint's own file comes first.
    """

    read: Callable[[Mapping[str, Any]], Any]
    network: Callable[..., nnx.Module]
    rules: Callable[[Any, Names], Sequence[Rule]]
    ignored: Callable[[Any, Names], Sequence[str]]
    twins: Callable[[Any, Names], Mapping[str, str]]
    chats: Mapping[str, Chat]
    rows: Callable[[Any], Sequence[tuple[str, str]]]
    places: Sequence[Place]
    sampling: Mapping[str, float]


def _qwen(name: str, **sampling: float) -> Family:
    return Family(
        read=qwen_config.from_hf,
        network=qwen.Qwen,
        rules=lambda config, names: qwen_params.RULES,
        ignored=lambda config, names: qwen_params.IGNORED,
        twins=lambda config, names: qwen_params.TWINS if config.tied else {},
        chats=qwen_chat.CHATS,
        rows=lambda config: qwen_chat.MARKS[name],
        places=qwen_sharding.PLACES,
        sampling=sampling,
    )


def _gemma(rows: Callable[[Any], Sequence[tuple[str, str]]]) -> Family:
    return Family(
        read=gemma_config.from_hf,
        network=gemma.Gemma,
        rules=gemma_params.rules,
        ignored=gemma_params.ignored,
        twins=lambda config, names: gemma_params.twins(names),
        chats=gemma_chat.CHATS,
        rows=rows,
        places=gemma_sharding.PLACES,
        sampling={"temperature": 1.0, "top_k": 64, "top_p": 0.95, "min_p": 0.0},
    )


# Published thinking-mode sampling of Qwen3, Qwen2.5's and the Gemmas' generation_config.json.
FAMILIES: Mapping[str, Family] = {
    "qwen2": _qwen("qwen2", temperature=0.7, top_k=20, top_p=0.8, min_p=0.0),
    "qwen3": _qwen("qwen3", temperature=0.6, top_k=20, top_p=0.95, min_p=0.0),
    "gemma3": _gemma(lambda config: (("gemma3", "<start_of_turn>"),)),
    "gemma4": _gemma(lambda config: (("gemma4 edge" if config.ple_size else "gemma4", "<|turn>"),)),
}
# Names of the text models and of the multimodal ones that hold them.
ALIASES = {"gemma3_text": "gemma3"} | {f"gemma4_{n}": "gemma4" for n in ("text", "unified", "unified_text")}


class _OneKey:
    """In place of nnx.Rngs where only shapes are wanted: counting the keys would be most of the work."""

    def params(self) -> jax.Array:
        return jax.random.key(0)


def abstract(family: Family, config: Config, dtype: Any) -> tuple[nnx.GraphDef, Any]:
    """The network of a config with shapes in place of parameters, split: no memory."""
    return nnx.split(nnx.eval_shape(lambda: family.network(config, dtype, _OneKey())))


def family_of(fields: Mapping[str, Any]) -> str:
    """The family of a config.json.

    Raises:
      CheckpointError: a model_type that is not built.
    """
    kind = fields.get("model_type")
    name = ALIASES.get(str(kind), str(kind))
    if name not in FAMILIES:
        raise CheckpointError(f"model_type {kind!r} is not supported (have {', '.join([*FAMILIES, *ALIASES])})")
    return name
