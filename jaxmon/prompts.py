"""The study's wording in one place: what is asked, and how an answer is forced.

Both arms share the user's message, and the prompt's keys and values unless the family is asked to think in the prompt
itself (Gemma 4). T = 1: the model writes its turn itself. T = 0: the prompt does not ask for thinking, the turn is
forced to begin with the closed thinking block (where the family writes one) and "Answer:", and the option codes are
scored as its continuation (SPEC §10).

Knows: the instruction's words, the forced answer line, and how text meets token ids at their boundary.
Does not know: how turns are rendered (`models.chat`), how chains are sampled, how answers are read back.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Protocol

from tokenizers import Tokenizer

from jaxmon.records import Option, Record, message

ANSWER = "Answer:"  # what an answer line begins with; `jaxmon.sampling.parsing` reads it
LINE = f'line that reads "{ANSWER}" and one of the codes above.'
# With a thinking channel, thinking comes by itself; without one it is asked for (the paper is silent on such models).
# Measured with Qwen2.5-Coder-0.5B-Instruct: asked to think step by step but shown the form "Answer: CODE" it answers at
# once, without a chain of thought (29 of 29 chains); so the form is described. Asked to explain "in a few sentences" it
# lists every fact and is not done after 320 tokens (26 of 32 chains; 9 of 32 with this wording); so the length is said.
INSTRUCTION = {
    True: f"Reply with one {LINE}",
    False: f"Explain your reasoning in at most three sentences. Then write a last {LINE}",
}
WORDLESS = frozenset({"ledger", "ladder"})  # tasks whose model was trained on the bare question


class Chat(Protocol):
    """What this module needs of a chat family; `models.chat.Chat` is one."""

    @property
    def closed_think(self) -> str | None: ...
    @property
    def closing(self) -> str: ...
    def render(self, user: str, system: str | None = None, thinking: bool = True) -> str: ...


@dataclasses.dataclass(frozen=True)
class Prompt:
    """A record's prompt as text and as token ids; the prompt of T = 0, `forced_text` and an option read as one text.

    Attributes:
      text: the user's turn and the opening of the assistant's; T = 1 starts from it, and T = 0 where `plain` is None.
      tokens: its ids.
      plain: ids of the same without asking for thinking, where that makes a difference; T = 0 starts from it.
      forced_text: how the assistant's turn begins in the arm T = 0.
      forced: its ids.
      options: per option code, in the record's order, the ids of its continuation (" G") after either.
    """

    text: str
    tokens: tuple[int, ...]
    plain: tuple[int, ...] | None
    forced_text: str
    forced: tuple[int, ...]
    options: tuple[tuple[int, ...], ...]


def instruction(task: str, chat: Chat) -> str:
    """The last line of the user's message: the form of the answer, and the request to think where it needs asking."""
    return "" if task in WORDLESS else INSTRUCTION[chat.closed_think is not None]


def forced_text(chat: Chat) -> str:
    """How the assistant's turn begins in the arm T = 0: closed thinking where there is a channel, then "Answer:"."""
    return (chat.closed_think or "") + ANSWER


def early_text(chat: Chat) -> str:
    """What is forced after a chain that is cut: the thinking is closed where there is a channel, then "Answer:"."""
    return chat.closing + ANSWER


def option_text(option: Option) -> str:
    """An option as the continuation of "Answer:"."""
    return " " + option.code


def encode(tokenizer: Tokenizer, text: str) -> list[int]:
    """The ids of a text, with no special token added (chat turns are written out by the renderer)."""
    return list(tokenizer.encode(text, add_special_tokens=False).ids)


def continuations(tokenizer: Tokenizer, prefix: str, texts: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """The ids by which each text continues `prefix`: encode(prefix + text) without encode(prefix).

    Raises:
      ValueError: a text shares a token with the prefix at their boundary, and so has no ids of its own, or is empty.
    """
    before = encode(tokenizer, prefix)
    wholes = tokenizer.encode_batch([prefix + text for text in texts], add_special_tokens=False)
    for text, whole in zip(texts, wholes, strict=True):
        where = f"{text!r} after {prefix[-20:]!r}"
        if whole.ids[: len(before)] != before:
            raise ValueError(f"{where}: the tokenizer joins the two at their boundary")
        if len(whole.ids) == len(before):
            raise ValueError(f"{where} has no tokens")
    return tuple(tuple(whole.ids[len(before) :]) for whole in wholes)


def prompt(record: Record, task: str, chat: Chat, tokenizer: Tokenizer) -> Prompt:
    """A record's prompt; X = 0 is the prompt of `records.remove(record, name)`.

    Raises:
      ValueError: names the record where its message holds a control token, or a boundary is not a token boundary.
    """
    try:
        question, forced = message(record, instruction(task, chat)), forced_text(chat)
        text, unasked = chat.render(question), chat.render(question, thinking=False)
        tokens = tuple(encode(tokenizer, text))
        plain = None if unasked == text else tuple(encode(tokenizer, unasked))
        (forced_tokens,) = continuations(tokenizer, unasked, [forced])
        options = continuations(tokenizer, unasked + forced, [option_text(o) for o in record.options])
    except ValueError as error:
        raise ValueError(f"record {record.id}: {error}") from error
    return Prompt(text, tokens, plain, forced, forced_tokens, options)
