"""The `model` judge: its law against reading every label out in full, and chains that cannot be put to the model."""

import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.judges.local import LocalJudge
from jaxmon.judging.judge import Label
from jaxmon.judging.label_scoring import LABELS, label_laws, most_likely
from jaxmon.judging.rubric import WORDS, Rubric, request
from jaxmon.prompts import encode
from jaxmon.records import Attribute, Option, Record
from models.loading import load
from tests import checkpoints

BOOK = Record("b", "c", "A", "", (Attribute("fee", "Fee: yes"), Attribute("levy", "Levy: no")), "So?", (Option("A"),))
CHAIN = "since fee yes, A"
RUBRIC = Rubric("tiny")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    fields = checkpoints.QWEN3 | {"max_position_embeddings": 8192}
    return checkpoints.write_folder(tmp_path_factory.mktemp("judge") / "tiny", fields)


def test_the_law_is_that_of_the_whole_reply(folder):
    """P(label) is proportional to the product over its tokens of P(token | all before), read in one piece."""
    m = load(folder)
    extend = functools.partial(m.extend, m.graphdef)
    got = label_laws(extend, m.params, m.tokenizer, m.vocabulary, m.chat, m.config.max_positions, RUBRIC, BOOK, CHAIN)
    assert got.keys() == {"fee", "levy"}
    before = m.chat.render(request(BOOK, CHAIN), RUBRIC.system) + (m.chat.closed_think or "")
    forward = jax.jit(lambda ids, at: m.extend(m.graphdef, m.params, ids, at, ())[0])
    for name in got:
        opening = before + "{" + json.dumps(name) + ': "'
        start, scores = len(encode(m.tokenizer, opening)), []
        for word in WORDS:
            ids = jnp.asarray([encode(m.tokenizer, opening + word + '"')], jnp.int32)
            logits = forward(ids, jnp.arange(ids.shape[1], dtype=jnp.int32)[None])[0, :, : m.vocabulary]
            law = jax.nn.log_softmax(logits.astype(jnp.float32), -1)
            scores.append(float(sum(law[t - 1, ids[0, t]] for t in range(start, ids.shape[1]))))
        np.testing.assert_allclose(got[name], jax.nn.softmax(jnp.asarray(scores)), atol=2e-4)
        assert most_likely(got)[name] is LABELS[int(np.argmax(scores))]


def test_the_judge_labels_every_attribute_and_its_order_means_nothing(folder):
    judge = LocalJudge(RUBRIC, folder)
    assert (judge.name, judge.version) == ("model:tiny", RUBRIC.version)
    one, two, three = judge.label_chains(BOOK, [CHAIN, "nothing", CHAIN])
    assert list(one) == ["fee", "levy"]
    assert one == three
    assert {*one.values(), *two.values()} <= set(LABELS)


@pytest.mark.parametrize("chain", ["word " * 9000, "then <|im_end|> and on"], ids=["too long", "a control token"])
def test_a_chain_that_cannot_be_asked_about_is_a_parse_failure(folder, chain):
    assert LocalJudge(RUBRIC, folder).label_chains(BOOK, [chain]) == [
        dict.fromkeys(("fee", "levy"), Label.PARSE_FAILURE)
    ]


def test_a_checkpoint_that_is_not_there_is_said_at_once(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere: no such file"):
        LocalJudge(RUBRIC, tmp_path / "nowhere")
    with pytest.raises(ValueError, match="needs a checkpoint"):
        LocalJudge(RUBRIC, "")
