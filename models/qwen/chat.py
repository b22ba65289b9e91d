"""Turns of a chat as text: an own renderer, the families' differences as data.

Knows: the turn markers, the default system turn and the thinking channel of Qwen2, Qwen2.5 and Qwen3. Does not know:
what is asked. A checkpoint's own template is compared with known phrases to pick the row; it is never executed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from tokenizers import Tokenizer

from models.checkpoint import CheckpointError


@dataclasses.dataclass(frozen=True)
class Chat:
    """One family's turns.

    Attributes:
      name: which row of CHATS this is.
      default_system: the system turn written when the caller gives none; None for no turn.
      think_open, think_close: the thinking channel's markers; None where the family has none.
      closed_think: what a turn that must not think opens with (the no-CoT arm, T = 0); None likewise.
      stops: texts of the tokens that end a turn.
      reserved: texts that are single control tokens of the tokenizer; a message may not contain them.
    """

    name: str
    default_system: str | None
    think_open: str | None = None
    think_close: str | None = None
    closed_think: str | None = None
    turn_open: str = "<|im_start|>"
    turn_close: str = "<|im_end|>"
    stops: tuple[str, ...] = ("<|im_end|>", "<|endoftext|>")
    reserved: tuple[str, ...] = ()

    def render(self, user: str, system: str | None = None) -> str:
        """The text up to and including the assistant's turn opening; the model writes on from there.

        With thinking, Qwen3 itself writes `<think>`; for T = 0 append `closed_think`.

        Args:
          user: the user's message.
          system: the system message; None takes the family's default (which may be no turn at all).

        Raises:
          ValueError: a message contains the text of a control token, which would be read as the token itself.
        """
        system = self.default_system if system is None else system
        turns = [("system", system)] if system is not None else []
        turns.append(("user", user))
        for role, content in turns:
            if found := [t for t in (self.turn_open, self.turn_close, *self.reserved) if t in content]:
                raise ValueError(f"the {role} message contains the control token {found[0]!r}")
        written = "".join(f"{self.turn_open}{role}\n{content}{self.turn_close}\n" for role, content in turns)
        return f"{written}{self.turn_open}assistant\n"


# Default system turns: the chat templates published with the models (Qwen2-0.5B-Instruct, Qwen2.5-Coder-0.5B-Instruct,
# Qwen3-8B). Thinking markers: Qwen3's template, enable_thinking=False.
CHATS = {
    "qwen2": Chat("qwen2", "You are a helpful assistant."),
    "qwen2.5": Chat("qwen2.5", "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."),
    "qwen3": Chat("qwen3", None, "<think>", "</think>", "<think>\n\n</think>\n\n"),
}

# model_type -> rows to try in order, each with a phrase that marks its template; the first is taken without a template
MARKS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "qwen2": (("qwen2.5", "You are Qwen, created by Alibaba Cloud."), ("qwen2", "You are a helpful assistant")),
    "qwen3": (("qwen3", "enable_thinking"),),
}


def choose(family: str, template: str | None, tokenizer: Tokenizer) -> Chat:
    """The row for a checkpoint, with the tokenizer's control tokens as its reserved texts.

    Raises:
      CheckpointError: a template of another kind, or a marker that is not one token of this tokenizer.
    """
    rows = MARKS[family]
    fitting = [name for name, mark in rows if template is None or mark in template]
    if not fitting:
        raise CheckpointError(
            f"the chat template is none of those known for {family} ({', '.join(n for n, _ in rows)})"
        )
    chat = CHATS[fitting[0]]
    markers = [m for m in (chat.turn_open, chat.turn_close, chat.think_open, chat.think_close) if m is not None]
    if broken := [m for m in markers if tokenizer.token_to_id(m) is None]:
        raise CheckpointError(f"the tokenizer lacks the chat markers {', '.join(broken)}")
    return dataclasses.replace(chat, reserved=tuple(t.content for t in tokenizer.get_added_tokens_decoder().values()))
