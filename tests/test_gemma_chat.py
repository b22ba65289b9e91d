"""Gemma's turns as text: golden ids with the real tokenizer, shapes with the tiny one; one <bos>; the channel."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Tokenizer

from jaxmon import prompts
from jaxmon.sampling.parsing import Outcome, parse
from jaxmon.tasks import ledger
from models.chat import Chat, choose
from models.checkpoint import CheckpointError
from models.families import FAMILIES
from models.gemma.chat import CHATS
from tests import published
from tests.gemma_cases import TOKENIZER
from tests.published import ids

ROOT = Path(__file__).resolve().parent.parent
BOS, TURN, END, THINK, CHANNEL, UNCHANNEL = 2, 105, 106, 98, 100, 101
THOUGHT, NEWLINE, SYSTEM, USER, MODEL = 45518, 107, 9731, 2364, 4368


@pytest.fixture(scope="module")
def real() -> Tokenizer:
    return published.tokenizer("gemma4")


@pytest.fixture(scope="module")
def tiny() -> Tokenizer:
    return Tokenizer.from_file(str(TOKENIZER))


def row(name: str, tokenizer: Tokenizer) -> Chat:
    return choose(CHATS, [(name, "")], None, tokenizer)


@pytest.mark.parametrize("name", ["gemma4", "gemma4 edge"])
def test_46_48_golden_ids_thinking_on(real: Tokenizer, name: str) -> None:
    """A system turn whose first line asks for thinking; the model itself opens the channel. One <bos>."""
    hello, brief = ids(real, "Hello"), ids(real, "Be brief.")
    turn = [TURN, USER, NEWLINE, *hello, END, NEWLINE, TURN, MODEL, NEWLINE]
    chat = row(name, real)
    on = ids(real, chat.render("  Hello\n"))
    assert on == [BOS, TURN, SYSTEM, NEWLINE, THINK, NEWLINE, END, NEWLINE, *turn]
    with_system = [BOS, TURN, SYSTEM, NEWLINE, THINK, NEWLINE, *brief, END, NEWLINE, *turn]
    assert ids(real, chat.render("Hello", " Be brief. ")) == with_system


@pytest.mark.parametrize(
    ("name", "block"), [("gemma4", [CHANNEL, THOUGHT, NEWLINE, UNCHANNEL]), ("gemma4 edge", [])], ids=["large", "edge"]
)
def test_46_golden_ids_thinking_off(real: Tokenizer, name: str, block: list[int]) -> None:
    """E2B and E4B go on after the model's turn opening; the larger models are given the empty channel."""
    chat, hello = row(name, real), ids(real, "Hello")
    assert chat.closed_think is not None
    off = ids(real, chat.render("Hello", thinking=False) + chat.closed_think)
    assert off == [BOS, TURN, USER, NEWLINE, *hello, END, NEWLINE, TURN, MODEL, NEWLINE, *block]
    system = ids(real, chat.render("Hello", "Be brief.", thinking=False))
    assert system[:4] == [BOS, TURN, SYSTEM, NEWLINE]
    assert THINK not in system


def test_closing_a_cut_chain(real: Tokenizer) -> None:
    answer = ids(real, "Answer:")
    assert ids(real, prompts.early_text(row("gemma4", real))) == [NEWLINE, UNCHANNEL, *answer]


def test_control_tokens_have_the_published_ids(real: Tokenizer) -> None:
    chat = row("gemma4", real)
    assert {real.token_to_id(t) for t in chat.stops} == {1, 106, 50}
    assert [real.token_to_id(t) for t in chat.marks] == [BOS, TURN, END, THINK, CHANNEL, UNCHANNEL]
    ordinary = "a\n\n\nb\tc  d <b>bold</b> <td> <div> <|x|> < turn|> [multi] <unused>"
    assert ordinary in chat.render(ordinary)
    for text in ("<|image>", "<eos>", "<unused7>", "[multimodal]", "<|channel>", '<|"|>', "<tool_response|>"):
        with pytest.raises(ValueError, match="control token"):
            chat.render(f"before{text}after")


@pytest.mark.parametrize("name", CHATS)
def test_48_exactly_one_bos(tiny: Tokenizer, name: str) -> None:
    """In the rendered text alone: encoded without special tokens, as everywhere in this project."""
    chat = row(name, tiny)
    for system in (None, "Be brief."):
        for thinking in (True, False):
            got = ids(tiny, chat.render("Hi", system, thinking))
            assert got.count(tiny.token_to_id("<bos>")) == 1
            assert got[0] == tiny.token_to_id("<bos>")


def test_gemma3_puts_the_system_text_before_the_users(tiny: Tokenizer) -> None:
    chat = row("gemma3", tiny)
    want = "<bos><start_of_turn>user\nBe brief.\n\nHi<end_of_turn>\n<start_of_turn>model\n"
    assert chat.render(" Hi ", "Be brief.") == want
    assert chat.render("Hi") == want.replace("Be brief.\n\n", "")
    assert (chat.closed_think, chat.think_open) == (None, None)


@pytest.mark.parametrize("name", ["gemma4", "gemma4 edge"])
def test_the_study_asks_for_thinking_in_one_arm_alone(tiny: Tokenizer, name: str) -> None:
    """T = 1 starts from the prompt that asks for it, T = 0 from the one that does not; options continue both alike."""
    chat, record = row(name, tiny), ledger.records(0, 1)[0]
    made = prompts.prompt(record, "ledger", chat, tiny)
    think = tiny.token_to_id("<|think|>")
    assert made.plain is not None
    assert think in made.tokens
    assert think not in made.plain
    assert (
        tiny.decode(list(made.plain), skip_special_tokens=False) + made.forced_text
        == chat.render(prompts.message(record, ""), thinking=False) + f"{chat.closed_think}Answer:"
    )
    after = prompts.continuations(tiny, made.text + prompts.early_text(chat), [" " + o.code for o in record.options])
    assert made.options == after


CODES = {"G": (), "F": ()}


@pytest.mark.parametrize(
    ("text", "stopped", "outcome", "code", "thought"),
    [
        ("<|channel>thought\nIt is G.\n<channel|>Answer: G<turn|>", True, Outcome.ANSWERED, "G", "It is G."),
        ("<|channel>thought\n<channel|>Answer: F<turn|>", True, Outcome.ANSWERED, "F", ""),
        ("Answer: F<eos>", True, Outcome.ANSWERED, "F", ""),
        ("<|channel>thought\nAnswer: G<turn|>", True, Outcome.UNCLOSED, None, "Answer: G"),
        ("<|channel>thought\nAnswer: G<channel|>Well.<turn|>", True, Outcome.MALFORMED, None, "Answer: G"),
        ("<|channel>thought\nlong", False, Outcome.TRUNCATED, None, "long"),
        ("<|channel>thought\na<channel|>Answer: G", False, Outcome.TRUNCATED, None, "a"),
    ],
)
def test_47_channels_are_read(text: str, stopped: bool, outcome: Outcome, code: str | None, thought: str) -> None:
    """What is inside the channel is thought, whatever it says; only what follows it answers."""
    got = parse(text, stopped, CODES, CHATS["gemma4"])
    assert (got.outcome, got.code, got.thought) == (outcome, code, thought)


def test_the_config_and_the_template_pick_the_row(tiny: Tokenizer) -> None:
    for family, template in (("gemma3", "<|turn>user"), ("gemma4", "<start_of_turn>user")):

        class Shapes:
            ple_size = 0

        with pytest.raises(CheckpointError, match="the chat template is none of those known"):
            choose(CHATS, FAMILIES[family].rows(Shapes), template, tiny)
