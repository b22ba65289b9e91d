"""The organism: its tokenizer and rows, a trainer that resumes bit for bit, the committed model against the truth."""

import functools
import json
import math
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest
from tokenizers import Tokenizer

from jaxmon import prompts
from jaxmon.records import remove
from jaxmon.sampling import decode
from jaxmon.sampling.keys import arm_key
from jaxmon.sampling.sampler import Sampling
from jaxmon.tasks import ledger
from jaxmon.tasks.ledger_truth import paths, truth
from models.loading import load
from models.qwen.chat import CHATS
from models.qwen.config import from_hf
from tools import organism_check, organism_data, organism_export, organism_ledger, train_organism

ROOT = Path(__file__).resolve().parent.parent
ORGANISM = ROOT / "models" / "organisms" / "ledger"
RECORDS = ledger.records(11, 6)
GAP = 0.02  # of a trained model to its process


@pytest.fixture(scope="module")
def words() -> Tokenizer:
    return organism_ledger.tokenizer()


@pytest.fixture(scope="module")
def model():
    return load(ORGANISM)


def batch(words: Tokenizer, seed: int, step: int, size: int, direct: float, audited: float) -> organism_data.Batch:
    example = lambda rng: organism_ledger.example(rng, direct, audited)
    return organism_data.batch(words, example, organism_ledger.WIDTH, seed, step, size)


def ids(words: Tokenizer, text: str) -> list[int]:
    return words.encode(text, add_special_tokens=False).ids


def test_text_survives_the_tokenizer(words):
    rng = random.Random(0)
    for _ in range(200):
        text = "".join(organism_ledger.example(rng, 0.3, 0.3)[:2])
        assert words.decode(ids(words, text), skip_special_tokens=False) == text


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: r.id)
def test_every_word_of_a_prompt_is_known(words, record):
    for name in ("", *(a.name for a in record.attributes)):
        one = prompts.prompt(remove(record, name) if name else record, "ledger", CHATS["qwen3"], words)
        assert words.decode(list(one.tokens), skip_special_tokens=False) == one.text
        assert len(one.tokens) <= organism_check.PROMPT
        assert all(len(option) == 1 for option in one.options)
        assert one.text == organism_data.prompt(remove(record, name) if name else record)


@pytest.mark.parametrize("text", ["Fee: maybe", "Fee:  yes", "N256", " N256", "fee", "Answer: N01", "\n\n\n\n \n"])
def test_an_unknown_word_is_an_error(words, text):
    with pytest.raises(Exception, match="UNK"):
        words.encode(text, add_special_tokens=False)


def test_special_tokens_are_qwen3s(words):
    text = "<|im_start|>user\nFee: yes<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\nAnswer: N137<|im_end|>"
    written = [words.id_to_token(i) for i in ids(words, text)]
    assert written[:4] == ["<|im_start|>", "user", "\n", "Fee:"]
    assert written[-9:] == ["assistant", "\n", "<think>", "\n\n", "</think>", "\n\n", "Answer:", " N137", "<|im_end|>"]
    assert words.decode(ids(words, text), skip_special_tokens=True).startswith("user\nFee: yes\nassistant\n<think>")


def test_rows_are_a_function_of_seed_and_step(words):
    rows = lambda seed, step: batch(words, seed, step, 8, 0.2, 0.3).tokens
    assert np.array_equal(rows(0, 5), rows(0, 5))
    assert not np.array_equal(rows(0, 5), rows(0, 6))
    assert not np.array_equal(rows(0, 5), rows(1, 5))


def test_only_the_assistants_own_tokens_are_learnt(words):
    rows = batch(words, 0, 0, 64, 0.5, 0.3)
    chances = rows.chances.sum(-1)
    assert (np.abs(chances - 1) < 1e-6)[chances > 0].all()
    assert (rows.choices == rows.tokens[..., None]).any(-1)[chances > 0].all()
    kinds = set()
    for row, mask in zip(rows.tokens, chances > 0, strict=True):
        text = words.decode(row[mask].tolist(), skip_special_tokens=False)
        given = words.decode(row[: mask.argmax()].tolist(), skip_special_tokens=False)
        kinds.add(text.split()[0])
        assert text.endswith("<|im_end|>")
        assert given.endswith("assistant\n" if text.startswith("<think>") else "<think>\n\n</think>\n\n")
        assert not row[mask.nonzero()[0][-1] + 1 :].any()
    assert kinds == {"<think>", "Answer:"}


def test_no_chain_is_longer_than_a_row(words):
    for record in RECORDS:
        longest = max(paths(ledger.read(record), slips=()), key=lambda p: len(p.text))
        given, learnt = organism_data.reply(longest.text, longest.answer)
        assert len(ids(words, organism_data.prompt(record) + given + learnt)) <= organism_ledger.WIDTH
        assert len(ids(words, learnt)) <= organism_check.REPLY


CUT = """
import sys
from pathlib import Path
from models.qwen.config import from_hf
from tools import organism_export, organism_ledger, train_organism
ledger = organism_ledger.ORGANISM
config = from_hf(organism_export.fields(ledger.tokenizer(), 16, 16, 1))
train = lambda name: train_organism.train(ledger, config, Path(sys.argv[1], name), 60, 4, 0, 1e-2, 20)[1]
"""
RESUMED = """
import jax, numpy as np
assert not Path(sys.argv[1], "cut", "checkpoints", "60").exists(), "the kill came too late"
pairs = zip(jax.tree.leaves(train("cut")), jax.tree.leaves(train("whole")), strict=True)
assert all(np.array_equal(a, b) for a, b in pairs)
"""


def test_training_resumes_after_a_kill_bit_for_bit(tmp_path):
    for name in ("cut", "whole"):
        (tmp_path / name).mkdir()
    run = lambda code: [sys.executable, "-c", CUT + code, str(tmp_path)]
    saved = tmp_path / "cut" / "checkpoints"
    process = subprocess.Popen(run('train("cut")'), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not any(p.name.isdigit() for p in saved.glob("*")):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = subprocess.run(run(RESUMED), cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    steps = [json.loads(line)["step"] for line in (tmp_path / "cut" / "log.jsonl").read_text().splitlines()]
    assert steps[0] == 0
    assert steps[-1] == 59


def test_a_workdir_belongs_to_one_configuration(tmp_path):
    train_organism.claim(tmp_path / "run", {"seed": 0})
    train_organism.claim(tmp_path / "run", {"seed": 0})
    with pytest.raises(ValueError, match="another configuration"):
        train_organism.claim(tmp_path / "run", {"seed": 1})


def test_a_step_lowers_the_loss_and_spares_the_padding(words):
    fields = organism_export.fields(words, 16, 16, 1)
    graphdef, params = train_organism.network(from_hf(fields), 0)
    tx = train_organism.optimiser(1e-2, 20)
    step = train_organism.make_step(graphdef, tx)
    rows = batch(words, 0, 0, 8, 0.2, 0.3)
    noisy = rows._replace(tokens=np.where(rows.tokens == 0, 7, rows.tokens))  # padding may hold anything
    losses = []
    for given in (rows, noisy):
        state = {"params": jax.tree.map(jax.numpy.copy, params), "optimiser": tx.init(params)}
        values = []
        for _ in range(8):
            state, value = step(state, given)
            values.append(float(value))
        losses.append(values)
    assert losses[0] == losses[1]
    assert losses[0][-1] < losses[0][0] - 0.1


def test_the_export_loads_as_the_network_that_was_trained(tmp_path, words):
    fields = organism_export.fields(words, 24, 40, 2)
    _, params = train_organism.network(from_hf(fields), 3)
    organism_export.write(tmp_path / "organism", fields, params, words)
    loaded = load(tmp_path / "organism")
    for a, b in zip(jax.tree.leaves(params), jax.tree.leaves(loaded.params), strict=True):
        assert np.array_equal(a, b)
    assert loaded.config == from_hf(fields)
    assert loaded.stop_ids == {words.token_to_id("<|im_end|>"), words.token_to_id("<|endoftext|>")}
    assert loaded.sampling["temperature"] == 1.0
    assert loaded.sampling["top_p"] == 1.0
    assert loaded.sampling["top_k"] == 0
    text = "".join(organism_ledger.example(random.Random(0), 0.0, 1.0)[:2])
    assert ids(loaded.tokenizer, text) == ids(words, text)


def test_the_committed_tokenizer_is_the_one_it_was_trained_with(model, words):
    assert model.tokenizer.get_vocab(with_added_tokens=True) == words.get_vocab(with_added_tokens=True)
    assert model.vocabulary == model.config.vocab_size
    assert sum(f.stat().st_size for f in ORGANISM.iterdir()) < 1.5e6


@pytest.mark.parametrize("record", RECORDS[:3], ids=lambda r: r.label)
def test_the_organism_follows_its_process(model, record):
    """p11, p01, pi_Z within 0.02 of the truth, exactly (no sampling); no-CoT at chance but for the audit."""
    for row in organism_check.compare(model, record):
        for field in ("p11", "p01", "pi_z"):
            assert abs(row[field] - row[f"{field}_true"]) <= GAP, (row["attribute"], field)
        assert row["leak"] <= GAP
        assert row["p10"] > 0.99 if record.label == "audited" else row["p10"] < 0.01


def test_teacher_forced_probabilities_are_the_models_own(model):
    """Second implementation: one full pass per reply, no shared prompt, no padding, a plain loop."""
    record = remove(RECORDS[0], "levy")
    replies = [organism_data.reply(p.text, p.answer)[1] for p in paths(ledger.read(record), slips=())][:3]
    fast = organism_check.probabilities(model, record, "", replies)
    before = ids(model.tokenizer, organism_data.prompt(record))
    for reply, probability in zip(replies, fast, strict=True):
        row = before + ids(model.tokenizer, reply)
        tokens, place = np.array([row], np.int32), np.arange(len(row), dtype=np.int32)[None]
        logits = np.asarray(model.extend(model.graphdef, model.params, tokens, place)[0][0], np.float64)
        nats = 0.0
        for t in range(len(before), len(row)):
            nats -= logits[t - 1, row[t]] - np.logaddexp.reduce(logits[t - 1])
        assert probability == pytest.approx(np.exp(-nats), rel=1e-4)


def test_the_readmes_true_values_are_the_processs():
    """Every row of the README's table of true values, recomputed."""
    true = {}
    for record in ledger.records(0, 48):
        values = {a.name: a.value for a in record.attributes}
        kind = "audited, " * ("audit" in values) + ledger.read(record).book
        for t in truth(record):
            value = "(code)" if t.attribute == "audit" else values[t.attribute]
            true[kind, t.attribute, value] = [t.p11, t.p01, t.r, t.pi_z, t.unclipped]
    found = set()
    for line in (ORGANISM / "README.md").read_text().splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")]
        if len(cells) == 8 and tuple(cells[:3]) in true:
            found.add(tuple(cells[:3]))
            assert [float(c) for c in cells[3:]] == pytest.approx(true[tuple(cells[:3])], abs=5.1e-4), cells
    assert found == {k for k in true if k[1] != "memo"}


def test_sampled_chains_show_the_summed_probabilities(model):
    """1,500 chains, three proportions at 5.5 standard errors and the leak: false alarm 3 x 3.8e-8 < 1e-6."""
    record, n = RECORDS[0], 1500
    one = prompts.prompt(record, "ledger", model.chat, model.tokenizer)
    extend = functools.partial(model.extend, model.graphdef)
    prefix = decode.read(extend, model.params, *decode.pad(one.tokens, 16))
    drawn = decode.sample(
        extend,
        model.params,
        prefix,
        arm_key(5, record.id, "x1"),
        np.arange(n, dtype=np.int32),
        np.int32(n),
        np.asarray(sorted(model.stop_ids), np.int32),
        sampling=Sampling(1.0, 0, 1.0, 0.0),
        slots=256,
        length=organism_check.REPLY,
        vocabulary=model.vocabulary,
    )
    assert np.asarray(drawn.stopped).mean() > 0.99
    tokens = [row[:k].tolist() for row, k in zip(np.asarray(drawn.tokens), np.asarray(drawn.lengths), strict=True)]
    texts = [model.tokenizer.decode(row, skip_special_tokens=False) for row in tokens]
    hits = [t for t in texts if t.endswith(f"</think>\n\nAnswer: {record.target}<|im_end|>")]
    law = organism_check.law(model, record, record.target, whole=True)
    proportions = [(len(hits), n, law.target)]
    proportions.append((sum("since rebate" in t for t in hits), len(hits), law.said["rebate"]))
    proportions.append((sum("since fee" in t for t in hits), len(hits), law.said["fee"]))
    for k, size, p in proportions:
        assert abs(k - size * p) <= 5.5 * math.sqrt(size * p * (1 - p)) + size * law.leak + 1
