"""The turns of Gemma 3 and Gemma 4 as data.

Gemma 4 is asked to think by the first line of its system turn and writes `<|channel>thought` … `<channel|>` itself. Not
to think, E2B and E4B go on right after the turn's opening (an empty channel makes them think in the open); the larger
models are given the empty channel. Gemma 3 has no thinking channel and no system turn. Source: the published templates.
"""

from __future__ import annotations

from models.chat import Chat

_ORDINARY = r"\s+|▁+|</?(?!unused)[a-z]+[1-6]?>"  # runs of blanks and the tags of HTML are single tokens


def _gemma4(name: str, closed_think: str) -> Chat:
    return Chat(
        name,
        default_system=None,
        think_open="<|channel>thought",
        think_close="<channel|>",
        closed_think=closed_think,
        closing="\n<channel|>",
        think_switch="<|think|>",
        assistant="model",
        begin="<bos>",
        turn_open="<|turn>",
        turn_close="<turn|>",
        trimmed=True,
        stops=("<turn|>", "<eos>", "<|tool_response>"),
        marks=("<bos>", "<|turn>", "<turn|>", "<|think|>", "<|channel>", "<channel|>"),
        ordinary=_ORDINARY,
    )


CHATS = {
    "gemma3": Chat(
        "gemma3",
        default_system=None,
        system_role=None,
        assistant="model",
        begin="<bos>",
        turn_open="<start_of_turn>",
        turn_close="<end_of_turn>",
        trimmed=True,
        stops=("<end_of_turn>", "<eos>"),
        marks=("<bos>", "<start_of_turn>", "<end_of_turn>"),
        ordinary=_ORDINARY,
    ),
    "gemma4": _gemma4("gemma4", "<|channel>thought\n<channel|>"),
    "gemma4 edge": _gemma4("gemma4 edge", ""),  # E2B and E4B
}
