"""Turns as text: golden token ids with the real tokenizer, the same shapes with the tiny one, and no injection."""

from __future__ import annotations

import pytest
from tokenizers import Tokenizer

from models.chat import Chat, choose
from models.checkpoint import CheckpointError
from models.qwen.chat import CHATS, MARKS
from tests import published
from tests.checkpoints import TOKENIZER
from tests.published import ids

START, END, NEWLINE, BLANK_LINE, THINK, UNTHINK = 151644, 151645, 198, 271, 151667, 151668
USER, SYSTEM, ASSISTANT = 872, 8948, 77091


@pytest.fixture(scope="module")
def real() -> Tokenizer:
    return published.tokenizer("qwen3")


@pytest.fixture(scope="module")
def tiny() -> Tokenizer:
    return Tokenizer.from_file(str(TOKENIZER))


def qwen3(tokenizer: Tokenizer) -> Chat:
    return choose(CHATS, MARKS["qwen3"], None, tokenizer)


def test_46_golden_ids_thinking_on(real: Tokenizer) -> None:
    """The prompt ends after the assistant's turn opening; the model itself writes <think>."""
    hello = ids(real, "Hello")
    expected = [START, USER, NEWLINE, *hello, END, NEWLINE, START, ASSISTANT, NEWLINE]
    assert ids(real, qwen3(real).render("Hello")) == expected


def test_46_golden_ids_thinking_off(real: Tokenizer) -> None:
    """The no-CoT arm is the same prompt plus the closed, empty block."""
    chat = qwen3(real)
    assert chat.closed_think is not None
    assert ids(real, chat.closed_think) == [THINK, BLANK_LINE, UNTHINK, BLANK_LINE]
    on, off = ids(real, chat.render("Hello")), ids(real, chat.render("Hello") + chat.closed_think)
    assert off == [*on, THINK, BLANK_LINE, UNTHINK, BLANK_LINE]


def test_closing_a_chain_of_thought(real: Tokenizer) -> None:
    assert ids(real, f"\n{qwen3(real).think_close}\n\n") == [NEWLINE, UNTHINK, BLANK_LINE]


def test_golden_ids_with_a_system_turn(real: Tokenizer) -> None:
    system = [START, SYSTEM, NEWLINE, *ids(real, "Be brief."), END, NEWLINE]
    with_system, without = (ids(real, qwen3(real).render("Hello", s)) for s in ("Be brief.", None))
    assert with_system == system + without


def test_qwen25_writes_its_default_system_turn(real: Tokenizer) -> None:
    """The control tokens of the two generations have the same ids."""
    chat = choose(CHATS, MARKS["qwen2"], None, real)
    assert (chat.think_open, chat.think_close, chat.closed_think) == (None, None, None)
    default = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."
    assert chat.render("Hi") == chat.render("Hi", default)
    assert ids(real, chat.render("Hi"))[:3] == [START, SYSTEM, NEWLINE]
    assert chat.render("Hi", "") == chat.render("Hi", default).replace(default, "")  # asked for: an empty turn


@pytest.mark.parametrize("system", [None, "Be brief."])
def test_46_own_renderer_equals_the_published_template(system: str | None) -> None:
    folder = published.folder("qwen3")
    transformers = pytest.importorskip("transformers")
    theirs = transformers.AutoTokenizer.from_pretrained(str(folder))
    turns = [{"role": "system", "content": system}] if system else []
    turns.append({"role": "user", "content": "  What is\n\n2 + 2?  "})
    chat = CHATS["qwen3"]
    assert chat.closed_think is not None
    for thinking, added in ((True, ""), (False, chat.closed_think)):
        text = theirs.apply_chat_template(turns, tokenize=False, add_generation_prompt=True, enable_thinking=thinking)
        assert text == chat.render(turns[-1]["content"], system) + added


def test_golden_ids_with_the_tiny_tokenizer(tiny: Tokenizer) -> None:
    """The committed tokenizer of the tests: markers are single ids, whatever surrounds them."""
    mark = {t: tiny.token_to_id(t) for t in ("<|im_start|>", "<|im_end|>", "<think>", "</think>")}
    assert list(mark.values()) == [277, 278, 281, 282]
    got = ids(tiny, CHATS["qwen3"].render("Hi") + str(CHATS["qwen3"].closed_think))
    assert [i for i in got if i >= 276] == [277, 278, 277, 281, 282]
    blank = ids(tiny, "\n\n")
    turns = [277, *ids(tiny, "user\nHi"), 278, *ids(tiny, "\n"), 277, *ids(tiny, "assistant\n")]
    assert got == [*turns, 281, *blank, 282, *blank]
    assert tiny.decode(got, skip_special_tokens=False) == CHATS["qwen3"].render("Hi") + "<think>\n\n</think>\n\n"


def test_48_nothing_is_prepended(tiny: Tokenizer) -> None:
    """Qwen has no beginning-of-text token: not in the rendered text, not by the tokenizer, not when done twice."""
    for name, chat in CHATS.items():
        text = chat.render("Hi")
        assert text.startswith("<|im_start|>"), name
        assert tiny.encode(text).ids == ids(tiny, text)
        assert tiny.token_to_id("<|endoftext|>") not in ids(tiny, text)
        assert text.count("<|im_start|>assistant") == 1


MARKERS = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<think>", "</think>", "<tool_call>"]


@pytest.mark.parametrize("role", ["user", "system"])
@pytest.mark.parametrize("marker", MARKERS)
def test_a_message_cannot_carry_control_tokens(tiny: Tokenizer, marker: str, role: str) -> None:
    chat = choose(CHATS, MARKS["qwen3"], None, tiny)
    messages = {"user": "Hi", "system": "Be brief."} | {role: f"before{marker}after"}
    with pytest.raises(
        ValueError, match=f"the {role} message contains the control token '{marker}'".replace("|", r"\|")
    ):
        chat.render(**messages)


def test_harmless_neighbours_of_control_tokens_pass(tiny: Tokenizer) -> None:
    text = "a < b, <b>, im_start, <|x|>, </ think>"
    assert text in choose(CHATS, MARKS["qwen3"], None, tiny).render(text)


@pytest.mark.parametrize(
    ("family", "template", "name"),
    [
        ("qwen3", None, "qwen3"),
        ("qwen3", "... enable_thinking is false ...", "qwen3"),
        ("qwen2", None, "qwen2.5"),
        ("qwen2", "{{ 'You are Qwen, created by Alibaba Cloud. You are a helpful assistant.' }}", "qwen2.5"),
        ("qwen2", "<|im_start|>system\nYou are a helpful assistant<|im_end|>", "qwen2"),
    ],
)
def test_the_template_picks_the_row(tiny: Tokenizer, family: str, template: str | None, name: str) -> None:
    assert choose(CHATS, MARKS[family], template, tiny).name == name


@pytest.mark.parametrize(("family", "template"), [("qwen2", "<|User|>"), ("qwen3", "<|im_start|>assistant\n<think>\n")])
def test_foreign_templates_are_refused(tiny: Tokenizer, family: str, template: str) -> None:
    with pytest.raises(CheckpointError, match="the chat template is none of those known"):
        choose(CHATS, MARKS[family], template, tiny)


def test_47_a_tokenizer_that_would_split_a_marker_is_refused() -> None:
    from tokenizers import models

    with pytest.raises(CheckpointError, match=r"lacks the chat markers <\|im_start\|>, <\|im_end\|>, <think>"):
        choose(CHATS, MARKS["qwen3"], None, Tokenizer(models.BPE()))
