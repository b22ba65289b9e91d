"""The turns of Qwen2, Qwen2.5 and Qwen3 as data.

Default system turns: the chat templates published with the models (Qwen2-0.5B-Instruct, Qwen2.5-Coder-0.5B-Instruct,
Qwen3-8B). Thinking marks: Qwen3's template, enable_thinking=False.
"""

from __future__ import annotations

from collections.abc import Mapping

from models.chat import Chat

_TURN = ("<|im_start|>", "<|im_end|>")
_THINK = ("<think>", "</think>")

CHATS = {
    "qwen2": Chat("qwen2", "You are a helpful assistant.", marks=_TURN),
    "qwen2.5": Chat("qwen2.5", "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.", marks=_TURN),
    "qwen3": Chat(
        "qwen3",
        None,
        *_THINK,
        closed_think="<think>\n\n</think>\n\n",
        closing="\n</think>\n\n",
        marks=(*_TURN, *_THINK),
    ),
}

# model_type -> rows to try in order, each with a phrase that marks its template; the first is taken without a template
MARKS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "qwen2": (("qwen2.5", "You are Qwen, created by Alibaba Cloud."), ("qwen2", "You are a helpful assistant")),
    "qwen3": (("qwen3", "enable_thinking"),),
}
