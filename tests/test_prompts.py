"""The wording, golden; the boundary of text and token ids, on small tokenizers and (where present) real ones."""

import dataclasses

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from jaxmon.prompts import continuations, encode, forced_text, instruction, option_text, prompt
from jaxmon.records import Attribute, Option, Record, remove
from jaxmon.sampling.parsing import menu, parse
from models.qwen.chat import CHATS
from tests import published

RECORD = Record(
    id="r1",
    label="G",
    target="G",
    preamble="A patient.",
    attributes=(Attribute("age", "Age is 3."), Attribute("sex", "Sex is F.")),
    question="Which?",
    options=(Option("F", "first"), Option("G", "second")),
)


def characters(merges: list[tuple[str, str]]) -> Tokenizer:
    """Byte-level BPE over ASCII with the given merges, and no pre-tokenizer that would keep words apart."""
    alphabet = {c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    vocabulary = alphabet | {a + b: len(alphabet) + i for i, (a, b) in enumerate(merges)}
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return tokenizer


PLAIN = characters([])


def test_golden_wording():
    assert (
        instruction("thyroid", CHATS["qwen3"]) == 'Reply with one line that reads "Answer:" and one of the codes above.'
    )
    assert instruction("thyroid", CHATS["qwen2.5"]) == (
        "Explain your reasoning in at most three sentences. "
        'Then write a last line that reads "Answer:" and one of the codes above.'
    )
    assert instruction("ledger", CHATS["qwen3"]) == ""
    assert forced_text(CHATS["qwen3"]) == "<think>\n\n</think>\n\nAnswer:"
    assert forced_text(CHATS["qwen2.5"]) == "Answer:"
    assert option_text(RECORD.options[1]) == " G"


def test_golden_prompts():
    thinking = prompt(RECORD, "thyroid", CHATS["qwen3"], PLAIN)
    assert thinking.text == (
        "<|im_start|>user\nA patient.\nAge is 3.\nSex is F.\nWhich?\nF: first\nG: second\n"
        'Reply with one line that reads "Answer:" and one of the codes above.'
        "<|im_end|>\n<|im_start|>assistant\n"
    )
    bare = prompt(RECORD, "ledger", CHATS["qwen3"], PLAIN)
    assert bare.text == (
        "<|im_start|>user\nA patient.\nAge is 3.\nSex is F.\nWhich?\nF: first\nG: second<|im_end|>\n"
        "<|im_start|>assistant\n"
    )


@pytest.mark.parametrize("family", ["qwen3", "qwen2.5"])
@pytest.mark.parametrize("task", ["thyroid", "ledger"])
def test_text_and_ids_agree_and_the_forced_line_reads_as_that_answer(family, task):
    chat, codes = CHATS[family], menu(RECORD.options)
    p = prompt(RECORD, task, chat, PLAIN)
    for option, tokens in zip(RECORD.options, p.options, strict=True):
        whole = p.text + p.forced_text + option_text(option)
        assert [*p.tokens, *p.forced, *tokens] == encode(PLAIN, whole)
        chain = parse(p.forced_text + option_text(option), True, codes, chat)
        assert (chain.code, chain.thought) == (option.code, "")


def test_both_arms_of_x_differ_by_the_sentence_alone():
    full = prompt(RECORD, "thyroid", CHATS["qwen3"], PLAIN)
    without = prompt(remove(RECORD, "sex"), "thyroid", CHATS["qwen3"], PLAIN)
    assert full.text.replace("Sex is F.\n", "") == without.text
    assert (full.forced, full.options) == (without.forced, without.options)


def test_a_tokenizer_that_joins_the_boundary_is_refused():
    joining = characters([(":", "Ġ")])  # ": " is one token: " G" after "Answer:" would have no ids of its own
    assert continuations(PLAIN, "Answer:", [" G"]) != continuations(PLAIN, "Answer:", [" F"])
    with pytest.raises(ValueError, match="' G' after 'Answer:': the tokenizer joins the two at their boundary"):
        continuations(joining, "Answer:", [" G"])
    with pytest.raises(ValueError, match=r"record r1: ' F' after .* joins the two"):
        prompt(RECORD, "thyroid", CHATS["qwen3"], joining)
    with pytest.raises(ValueError, match=r"record r1: 'Answer:' after .* joins the two"):
        prompt(RECORD, "thyroid", CHATS["qwen2.5"], characters([("Ċ", "A")]))
    with pytest.raises(ValueError, match="'' after 'Answer:' has no tokens"):
        continuations(PLAIN, "Answer:", [""])


def test_a_control_token_in_a_record_is_refused_by_name():
    spiked = dataclasses.replace(RECORD, question="Which?<|im_end|>")
    with pytest.raises(ValueError, match=r"record r1: .*<\|im_end\|>"):
        prompt(spiked, "thyroid", CHATS["qwen3"], PLAIN)


def test_g46_g48_golden_ids_of_the_real_qwen3_tokenizer():
    tokenizer = published.tokenizer("qwen3")
    p = prompt(RECORD, "thyroid", CHATS["qwen3"], tokenizer)
    assert p.tokens[:3] == (151644, 872, 198)  # <|im_start|> user, newline: no BOS before it, no system turn
    assert p.tokens[-5:] == (151645, 198, 151644, 77091, 198)
    assert p.forced == (151667, 271, 151668, 271, 16141, 25)  # the closed block, then "Answer" ":"
    assert [tokenizer.decode(list(o)) for o in p.options] == [" F", " G"]
    assert all(len(o) == 1 for o in p.options)
    assert tokenizer.decode(list(p.tokens), skip_special_tokens=False) == p.text
