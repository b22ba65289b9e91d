"""Answers are stated, never guessed: a table of hostile texts; outcomes of chains; properties."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmon.records import Option
from jaxmon.sampling.parsing import Outcome, menu, parse, statements

MEANINGS = {
    "A": "hyperthyroid (hyperthyroid conditions)",
    "F": "primary hypothyroid (hypothyroid conditions)",
    "G": "compensated hypothyroid (hypothyroid conditions)",
    "I": "increased binding protein (binding protein)",
    "K": "concurrent non-thyroidal illness (general health)",
}
LETTERS = menu([Option(code, meaning) for code, meaning in MEANINGS.items()])
NUMBERS = menu([Option(f"N{i}") for i in range(130)])


@dataclasses.dataclass(frozen=True)
class Marks:
    think_open: str | None
    think_close: str | None
    stops: tuple[str, ...] = ("<|im_end|>", "<|endoftext|>")


NONE, THINK = Marks(None, None), Marks("<think>", "</think>")

STATED = {  # text -> code
    "Answer: G": "G",
    "answer: G": "G",
    "ANSWER:G": "G",
    "Answer : G": "G",
    "Answer: G.": "G",
    "Answer: (G)": "G",
    "Answer: [G].": "G",
    "Answer: `G`": "G",
    "Answer: 'G'": "G",
    "Answer: “G”": "G",
    "**Answer: G**": "G",
    "**Answer:** G": "G",
    "**Answer**: **G**": "G",
    "*Answer:* _G_": "G",
    "Answer：G": "G",
    "- Answer: G\n": "G",
    "Answer:\n\nG": "G",
    "### Answer\nG": "G",
    "**Final Answer**\n\n**G**": "G",
    "So my final answer: G!": "G",
    "The final answer is G.": "G",
    "the answer is: **G**": "G",
    "The correct answer would be (G).": "G",
    "The answer is most likely G.": "G",
    r"\boxed{G}": "G",
    r"Answer: $\boxed{\text{G}}$": "G",
    r"\boxed{Answer: G}": "G",
    r"Answer: \(G\)": "G",
    "Answer: option G": "G",
    "Answer: CODE: G": "G",
    "Answer: G<|im_end|>": "G",
    "Answer: G: compensated hypothyroid (hypothyroid conditions)": "G",
    "Answer: G compensated hypothyroid": "G",
    "Answer: G (compensated hypothyroid)": "G",
    "Answer: G - compensated hypothyroid.": "G",
    "Answer: G — TSH is high. K is not it.": "G",  # a new sentence is not looked into
    "Answer: G, not F": "G",
    "Answer: G rather than F": "G",
    "Answer: G, because TSH is high": "G",
    "The answer is G because a high TSH says so": "G",
    "Answer: G. A TSH of 12 is high.": "G",
    "Answer: G, as I said": "G",  # "I said" is English
    "Answer: A": "A",
    "Answer: I.": "I",
    "Answer: A hyperthyroid": "A",
    "Answer: F\nWait, no.\nAnswer: G": "G",  # the last one wins
    "Answer: Z\nAnswer: G": "G",
    "Answer: G\nI hope this answer is helpful.": "G",  # "is helpful" states nothing
    "Answer: G\nNote that the answer is not F.": "G",
    "Answer: G. (An incorrect answer: F)": "G",
    "The answer is unclear at first. Answer: G": "G",
}

NOT_STATED = (
    "",
    "G",
    "I think it is G.",
    "Compensated hypothyroid.",
    "Answer:",
    "Answer: ",
    "Answer: CODE",
    "Answer: g",
    "Answer: Z",
    "Answer: Г",  # a Cyrillic letter
    "Answer: GK",
    "Answer: CI",
    "Answer: G/F",
    "Answer: G|F",
    "Answer: G-K",
    "Answer: G or F",
    "Answer: G and K",
    "Answer: G, F",
    "Answer: A, F, G, I, K",
    "Answer: A: hyperthyroid, F: primary hypothyroid, G: compensated hypothyroid",
    "Answer: (G) or (F)",
    "Answer: G (or F)",
    "Answer: I, as a doctor, would say G",
    "Answer: G — I ruled F out",  # in doubt malformed
    "Answer: one of A, F, G, I, K",
    "Answer: not G",
    "Answer: I think that it is G",  # the pronoun is no code
    "Answer: A patient like this has no diagnosis",
    "Answer: compensated hypothyroid",
    "Answer: None of the above",
    "Answer: G1",
    "The answer is not G.",
    "The answers: G",
    "downanswer: G",
    "This is a downgrade: G",
    r"\boxed{GK}",
    r"\boxed{}",
    "Answer: G\nAnswer: Z",  # off the menu: no earlier statement steps in
    "Answer: G\nAnswer:",
    "Answer: G\nSo the answer is Z.",
    "Answer: G\nThe answer is F or K.",
    "Answer: G\n" + r"\boxed{H}",
    "Answer: F\nAnswer: G or K",
)


@pytest.mark.parametrize("text", STATED)
def test_stated_answers(text):
    chain = parse(text, True, LETTERS, NONE)
    assert (chain.outcome, chain.code) == (Outcome.ANSWERED, STATED[text])


@pytest.mark.parametrize("text", NOT_STATED)
def test_g47_h51_what_is_not_stated_is_malformed(text):
    chain = parse(text, True, LETTERS, NONE)
    assert (chain.outcome, chain.code) == (Outcome.MALFORMED, None)


CODED = {  # codes that begin with other codes: only the whole code counts
    "Answer: N1": "N1",
    "Answer: N12": "N12",
    "Answer: N129.": "N129",
    "Answer: N130": None,
    "Answer: N": None,
    "Answer: N1 2": None,
    "Answer: N1, N2": None,
    "Answer: N1_2": None,
    "Answer: N1.5": None,
}


@pytest.mark.parametrize("text", CODED)
def test_h51_a_code_that_begins_another_code_is_not_it(text):
    assert parse(text, True, NUMBERS, NONE).code == CODED[text]


CHAINS = [  # text, stopped, outcome, code, thought, answer
    ("<think>\nhm\n</think>\n\nAnswer: G", True, "answered", "G", "hm", "\n\nAnswer: G"),
    ("<think>\nhm\n</think>\n\nAnswer: G", False, "truncated", None, "hm", "\n\nAnswer: G"),
    ("<think>\nhm\n", False, "truncated", None, "hm", ""),
    ("<think>\nAnswer: G", False, "truncated", None, "Answer: G", ""),
    ("<think>\nAnswer: G", True, "unclosed", None, "Answer: G", ""),
    ("<think>\nAnswer: G\n</think>\n\nHm.", True, "malformed", None, "Answer: G", "\n\nHm."),
    ("<think>\nAnswer: G\n</think>\n\nAnswer: F", True, "answered", "F", "Answer: G", "\n\nAnswer: F"),
    ("<think>a</think>Answer: F<think>b</think>Answer: G", True, "answered", "G", "aAnswer: Fb", "Answer: G"),
    ("<think>a</think>Answer: F<think>b", True, "unclosed", None, "aAnswer: Fb", ""),
    ("hm\n</think>\n\nAnswer: G", True, "answered", "G", "hm", "\n\nAnswer: G"),
    ("<think>\n\n</think>\n\nAnswer: G", True, "answered", "G", "", "\n\nAnswer: G"),
    ("Because. Answer: G", True, "answered", "G", "Because.", "Answer: G"),  # the channel was not used
    ("Because. Answer: G<|im_end|>", True, "answered", "G", "Because.", "Answer: G"),  # the stop mark is no text
    ("It is hypothyroid.<|im_end|>", True, "malformed", None, "It is hypothyroid.", ""),
    ("", True, "malformed", None, "", ""),
    ("", False, "truncated", None, "", ""),
]


@pytest.mark.parametrize(("text", "stopped", "outcome", "code", "thought", "answer"), CHAINS)
def test_g47_outcomes_with_a_thinking_channel(text, stopped, outcome, code, thought, answer):
    assert dataclasses.astuple(parse(text, stopped, LETTERS, THINK)) == (outcome, code, thought, answer)


def test_a_channel_that_the_prompt_opened():
    assert parse("hm Answer: G", True, LETTERS, THINK, opened=True).outcome == Outcome.UNCLOSED
    chain = parse("hm </think> Answer: G", True, LETTERS, THINK, opened=True)
    assert (chain.code, chain.thought) == ("G", "hm")


def test_without_a_channel_the_thought_ends_where_the_last_answer_begins():
    text = "TSH is high.\nAnswer: F\nNo: TT4 is normal.\n**Answer: G**"
    chain = parse(text, True, LETTERS, NONE)
    assert chain.thought == "TSH is high.\nAnswer: F\nNo: TT4 is normal.\n**"
    assert chain.answer == "Answer: G**"
    assert parse("TSH is high.", True, LETTERS, NONE).thought == "TSH is high."
    assert parse("<think>a</think>Answer: G", True, LETTERS, NONE).thought == "<think>a</think>"  # text like any other


PIECE = st.sampled_from(
    [
        "Answer:",
        " G",
        " F",
        " I",
        "\n",
        "the answer is",
        ".",
        " or",
        "<think>",
        "</think>",
        "**",
        " high",
        "\\boxed{",
        "}",
    ]
)


@given(st.lists(PIECE, max_size=14).map("".join), st.booleans(), st.sampled_from([NONE, THINK]))
def test_every_text_has_one_outcome_and_only_answered_has_a_code(text, stopped, channel):
    chain = parse(text, stopped, LETTERS, channel)
    assert (chain.code in LETTERS) == (chain.outcome == Outcome.ANSWERED)
    assert stopped or chain.outcome == Outcome.TRUNCATED
    assert chain.answer in text


@given(st.lists(PIECE, max_size=10).map("".join), st.sampled_from(sorted(MEANINGS)))
def test_a_closed_channel_and_a_final_line_always_give_that_answer(text, code):
    chain = parse(f"<think>{text}</think>\n\n{text}\n\nAnswer: {code}", True, LETTERS, THINK)
    in_channel = text.rsplit("</think>", 1)[-1]
    if "<think>" not in in_channel:
        assert (chain.outcome, chain.code) == (Outcome.ANSWERED, code)


def test_statements_are_in_order():
    found = statements("Answer: F, the answer is Z. Answer: G", LETTERS)
    assert [(s.start, s.code) for s in found] == [(0, "F"), (15, None), (28, "G")]
