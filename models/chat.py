"""Turns of a chat as text: an own renderer, the families' differences as data.

Knows: what a turn consists of, and how a checkpoint's row is picked from its family's table. Does not know: any
family's marks (the chat.py of its folder), what is asked. A checkpoint's own template is compared with known phrases to
pick the row; it is never executed.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence

from tokenizers import Tokenizer

from models.checkpoint import CheckpointError


@dataclasses.dataclass(frozen=True)
class Chat:
    """One family's turns.

    Attributes:
      name: which row of the family's table this is.
      default_system: the system turn written when the caller gives none; None for no turn.
      think_open, think_close: the thinking channel's marks; None where the family has none.
      closed_think: what a turn that must not think opens with (the no-CoT arm, T = 0), "" where nothing has to be
        written; None without a channel.
      closing: what is written after a chain that is cut, so that the answer follows: the channel's end, if any.
      think_switch: first line of a system turn that asks for thinking; None where the prompt does not say.
      system_role: the role of the system turn; None where its text stands before the user's.
      assistant: the role of the model's turn.
      begin: written once, before the first turn.
      turn_open, turn_close: the marks around a turn.
      trimmed: turns lose white space at their ends.
      stops: texts of the tokens that end a turn.
      marks: texts that must be single tokens.
      ordinary: pattern of added tokens (not special ones) that are text like any other, e.g. line breaks.
      reserved: texts that are single control tokens of the tokenizer; a message may not contain them.
    """

    name: str
    default_system: str | None
    think_open: str | None = None
    think_close: str | None = None
    closed_think: str | None = None
    closing: str = "\n"
    think_switch: str | None = None
    system_role: str | None = "system"
    assistant: str = "assistant"
    begin: str = ""
    turn_open: str = "<|im_start|>"
    turn_close: str = "<|im_end|>"
    trimmed: bool = False
    stops: tuple[str, ...] = ("<|im_end|>", "<|endoftext|>")
    marks: tuple[str, ...] = ()
    ordinary: str | None = None
    reserved: tuple[str, ...] = ()

    def render(self, user: str, system: str | None = None, thinking: bool = True) -> str:
        """The text up to and including the assistant's turn opening; the model writes on from there.

        With thinking the model itself opens the channel. A turn that must not think is rendered without, and begins
        with `closed_think`.

        Args:
          user: the user's message.
          system: the system message; None takes the family's default (which may be no turn at all).
          thinking: whether a family whose prompt says so is asked to think.

        Raises:
          ValueError: a message contains the text of a control token, which would be read as the token itself.
        """
        system = self.default_system if system is None else system
        messages = {"user": user} if system is None else {"system": system, "user": user}
        for role, content in messages.items():
            if found := [t for t in (self.turn_open, self.turn_close, *self.reserved) if t in content]:
                raise ValueError(f"the {role} message contains the control token {found[0]!r}")
        if self.trimmed:
            messages = {role: content.strip() for role, content in messages.items()}
        if self.think_switch and thinking:
            messages = {"system": f"{self.think_switch}\n{messages.get('system', '')}", "user": messages["user"]}
        if self.system_role is None and "system" in messages:
            messages = {"user": f"{messages['system']}\n\n{messages['user']}"}
        turns = "".join(f"{self.turn_open}{role}\n{text}{self.turn_close}\n" for role, text in messages.items())
        return f"{self.begin}{turns}{self.turn_open}{self.assistant}\n"


def choose(
    chats: Mapping[str, Chat], rows: Sequence[tuple[str, str]], template: str | None, tokenizer: Tokenizer
) -> Chat:
    """The row for a checkpoint, with the tokenizer's control tokens as its reserved texts.

    Args:
      chats: the family's table.
      rows: names of rows to try in order, each with a phrase that marks its template; the first without a template.
      template: the checkpoint's own template; None where it has none.
      tokenizer: the checkpoint's.

    Raises:
      CheckpointError: a template of another kind, or a mark that is not one token of this tokenizer.
    """
    fitting = [name for name, mark in rows if template is None or mark in template]
    if not fitting:
        raise CheckpointError(f"the chat template is none of those known ({', '.join(name for name, _ in rows)})")
    chat = chats[fitting[0]]
    if broken := [m for m in chat.marks if tokenizer.token_to_id(m) is None]:
        raise CheckpointError(f"the tokenizer lacks the chat markers {', '.join(broken)}")
    added = tokenizer.get_added_tokens_decoder().values()
    plain = re.compile(chat.ordinary) if chat.ordinary else None
    reserved = tuple(t.content for t in added if t.special or plain is None or not plain.fullmatch(t.content))
    return dataclasses.replace(chat, reserved=reserved)
