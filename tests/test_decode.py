"""Chains: named draws, refill, stops, and a shared prefix, on mock models with a known law and on a random Qwen."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxmon.sampling.decode import Chains, Prefix, branch, pad, read, rows, sample
from jaxmon.sampling.keys import arm_key, draw_key
from jaxmon.sampling.sampler import Sampling, draw, law
from tests import tiny

STOP = jnp.array([0, 3], jnp.int32)
OWN_LAW = Sampling()
PROMPT = [5, 9, 2, 7, 11, 13, 8]


def run(model, n: int, *, first: int = 0, slots: int = 16, size: int | None = None, length: int = 12, **kw) -> Chains:
    extend, params = model
    prefix = read(extend, params, *pad(PROMPT, kw.pop("bucket", 8)))
    settings = {"sampling": Sampling(), "vocabulary": tiny.VOCABULARY} | kw
    key = arm_key(settings.pop("seed", 1), "record", settings.pop("arm", "x1"))
    return sample(
        extend,
        params,
        prefix,
        key,
        first + jnp.arange(size or n, dtype=jnp.int32),
        jnp.int32(n),
        STOP,
        slots=slots,
        length=length,
        **settings,
    )


def slow(model, chain: int, *, length: int = 12, sampling: Sampling = OWN_LAW, seed: int = 1) -> list[int]:
    """The slow twin: one chain, the whole text read anew for every token, no cache, no slots."""
    extend, params = model
    key, out = arm_key(seed, "record", "x1"), []
    for step in range(length):
        ids = jnp.asarray([PROMPT + out], jnp.int32)
        logits, _ = extend(params, ids, jnp.arange(ids.shape[1], dtype=jnp.int32)[None], ())
        logits = jnp.where(jnp.arange(logits.shape[-1])[None] < tiny.VOCABULARY, logits[:, -1], -jnp.inf)
        u = jax.random.uniform(draw_key(key, jnp.int32(chain), jnp.int32(step)), (1,))
        out.append(int(draw(*law(logits, sampling), u)[0]))
        if out[-1] in (0, 3):
            break
    return out


def listed(chains: Chains, i: int) -> list[int]:
    return np.asarray(chains.tokens[i, : int(chains.lengths[i])]).tolist()


@pytest.fixture(scope="module")
def qwen():
    return tiny.qwen()


@pytest.mark.parametrize(
    "sampling", [Sampling(), Sampling(temperature=0.7, top_k=20, top_p=0.8), Sampling(temperature=0.0)], ids=str
)
def test_sample_equals_its_slow_twin(qwen, sampling: Sampling):
    """Shared prefix, cache and refill change no token (KNOWN_BUGS 18, 19, 27, 32)."""
    chains = run(qwen, 12, slots=4, sampling=sampling)
    for i in range(12):
        assert listed(chains, i) == slow(qwen, i, sampling=sampling)


@pytest.mark.parametrize(
    ("first", "n", "slots", "size"),
    [(17, 1, 1, 1), (17, 1, 16, 16), (8, 16, 16, 16), (0, 256, 64, 256), (0, 20, 3, 64)],
)
def test_a4_chain_17_is_the_same_wherever_it_is_drawn(qwen, first: int, n: int, slots: int, size: int):
    """Alone, in a block of 16 and in a block of 256: the same tokens (KNOWN_BUGS 4; DESIGN idea 2)."""
    chains = run(qwen, n, first=first, slots=slots, size=size)
    assert listed(chains, 17 - first) == slow(qwen, 17)


def test_every_chain_of_a_block_is_the_same_in_other_blocks(qwen):
    whole = run(qwen, 64, slots=32)
    for slots, cuts in ((8, (0, 64)), (32, (0, 13, 40, 64)), (64, (0, 32, 64))):
        parts = [run(qwen, b - a, first=a, slots=slots, size=64) for a, b in itertools.pairwise(cuts)]
        tokens = np.concatenate([np.asarray(p.tokens)[: b - a] for p, a, b in zip(parts, cuts, cuts[1:], strict=False)])
        assert (tokens == np.asarray(whole.tokens)).all()


def test_lengths_and_stops(qwen):
    chains = run(qwen, 100, slots=16, length=6)
    lengths, tokens = np.asarray(chains.lengths), np.asarray(chains.tokens)
    assert (lengths >= 1).all()
    assert (lengths <= 6).all()
    assert np.asarray(chains.stopped).any()
    assert not np.asarray(chains.stopped).all()
    for i in range(100):
        body, last = tokens[i, : lengths[i] - 1], tokens[i, lengths[i] - 1]
        assert not np.isin(body, STOP).any()
        assert bool(chains.stopped[i]) == bool(np.isin(last, STOP))
        assert chains.stopped[i] or lengths[i] == 6
        assert (tokens[i, lengths[i] :] == 0).all()


@pytest.mark.parametrize(
    ("n", "slots", "tail"), [(64, 32, (16, 8)), (40, 16, (8, 4, 1)), (3, 16, (8, 4)), (0, 8, (4,))]
)
def test_fewer_slots_for_the_last_chains_change_no_token(qwen, n: int, slots: int, tail: tuple[int, ...]):
    """Chains that go on in fewer slots, and those that start there, are those of one loop."""
    narrowing, plain = (run(qwen, n, size=64, slots=slots, tail=t) for t in (tail, ()))
    for a, b in zip(jax.tree.leaves(narrowing), jax.tree.leaves(plain), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.fixture(scope="module", params=[tiny.qwen, tiny.gemma], ids=["qwen", "gemma"])
def family(request):
    return request.param()


BRANCHES = ((0, 5), (1, 9), (6, 1), (7, 12))  # tokens shared with PROMPT, tokens after them


def both(model, common: int, length: int) -> tuple[Prefix, Prefix]:
    """A text read after what it shares with PROMPT, and its slow twin, read whole."""
    extend, params = model
    rest = np.random.default_rng(length).integers(1, 60, length).tolist()
    base = read(extend, params, *pad(PROMPT, 24))
    found = branch(extend, params, base, np.int32(common), *pad(rest, 12), 24)
    return found, read(extend, params, *pad(PROMPT[:common] + rest, 24))


@pytest.mark.parametrize(("common", "length"), BRANCHES)
def test_a_text_read_after_what_it_shares_with_another_is_that_text_read_whole(family, common: int, length: int):
    found, whole = both(family, common, length)
    assert int(found.length) == int(whole.length) == common + length
    np.testing.assert_allclose(found.logits, whole.logits, atol=2e-4, rtol=0)
    (a,), (b,) = found.context, whole.context
    np.testing.assert_array_equal(a.positions, b.positions)
    np.testing.assert_array_equal(a.valid, b.valid)
    seen = np.asarray(b.valid)[0]
    for x, y in zip((*a.keys, *a.values), (*b.keys, *b.values), strict=True):
        np.testing.assert_allclose(np.asarray(x)[:, seen], np.asarray(y)[:, seen], atol=2e-5, rtol=0)


def test_chains_after_a_branch_are_those_after_the_text_read_whole(qwen):
    settings = {"sampling": Sampling(), "slots": 8, "length": 12, "vocabulary": tiny.VOCABULARY}
    given = (arm_key(1, "r", "x0:a"), jnp.arange(64, dtype=jnp.int32), jnp.int32(64), STOP)
    found, whole = (sample(*qwen, prefix, *given, **settings).tokens for prefix in both(qwen, 6, 9))
    np.testing.assert_array_equal(found, whole)


def test_prefixes_read_on_as_rows_are_read_on_alone(family):
    extend, params = family
    alone = [read(extend, params, *pad(t, 24)) for t in (PROMPT, PROMPT[:3], [*PROMPT, 4, 4, 9])]
    more, length = pad([21, 22, 23], 4)
    together = read(extend, params, np.repeat(more, 3, 0), length, rows(alone))
    for i, prefix in enumerate(alone):
        one = read(extend, params, more, length, prefix)
        np.testing.assert_allclose(together.logits[i], one.logits[0], atol=2e-4, rtol=0)
        assert int(together.length[i]) == int(one.length)


@pytest.mark.parametrize("count", [0, 1, 5, 9])
def test_count_is_traced_and_exact(qwen, count: int):
    chains = run(qwen, count, size=9, slots=4)
    assert (np.asarray(chains.lengths) > 0).sum() == count


def test_first_token_can_stop_a_chain():
    """A chain that ends with its first token, and the slot's next chain, are both recorded."""
    table = jnp.full((64, 64), -30.0).at[:, 0].set(0.0)
    chains = run((tiny.markov, table), 40, slots=4)
    assert (np.asarray(chains.lengths) == 1).all()
    assert np.asarray(chains.stopped).all()


@pytest.mark.parametrize("length", [1, 2])
def test_shortest_limits(length: int):
    table = jnp.full((64, 64), -30.0).at[:, 5].set(0.0)
    chains = run((tiny.markov, table), 10, slots=4, length=length)
    assert (np.asarray(chains.lengths) == length).all()
    assert not np.asarray(chains.stopped).any()


def test_padding_of_the_prompt_changes_nothing(qwen):
    """Another bucket, other chains' neighbours: the same tokens (KNOWN_BUGS 24, 26, 29)."""
    tokens = [np.asarray(run(qwen, 16, bucket=b).tokens) for b in (1, 8, 64)]
    assert (tokens[0] == tokens[1]).all()
    assert (tokens[0] == tokens[2]).all()


def test_vocabulary_padding_is_never_drawn():
    chains = run((tiny.markov, jnp.zeros((64, 64))), 500, slots=100, vocabulary=10)
    assert np.asarray(chains.tokens).max() == 9


def test_nan_logits_are_reported_per_chain():
    table = jnp.zeros((64, 64)).at[9].set(jnp.nan)
    chains = run((tiny.markov, table), 200, slots=50, length=8)
    for i in range(200):
        body = listed(chains, i)
        assert bool(chains.finite[i]) == (9 not in body[:-1])


def test_a1_a3_prefix_agreement_and_distinct_first_tokens():
    """Uniform mock, V = 61: distinct first tokens of 64 chains and pairwise agreement follow V (KNOWN_BUGS 1, 3)."""
    n, v = 4000, tiny.VOCABULARY
    chains = run((tiny.markov, jnp.zeros((64, 64))), n, slots=500, length=3)
    tokens = np.asarray(chains.tokens)
    longer = np.asarray(chains.lengths) == 3
    pairs = tokens[:-1:2], tokens[1::2]
    both = longer[:-1:2] & longer[1::2]
    first = (pairs[0][:, 0] == pairs[1][:, 0]).sum()
    assert stats.binom.ppf(5e-7, n // 2, 1 / v) <= first <= stats.binom.isf(5e-7, n // 2, 1 / v)
    two = (pairs[0][both][:, :2] == pairs[1][both][:, :2]).all(-1).sum()
    assert two <= stats.binom.isf(1e-6, both.sum(), (v - 2) ** -2.0)
    assert len(set(tokens[:64, 0].tolist())) >= 25  # 64 throws into 61 cells: fewer than 25 has chance < 1e-6


def test_step_counts_of_a_known_markov_chain():
    """Chain lengths of a two-state mock are geometric: chi-square, false-alarm probability 1e-6."""
    table = jnp.full((64, 64), -jnp.inf).at[:, 0].set(jnp.log(0.3)).at[:, 5].set(jnp.log(0.7))
    n, length = 20_000, 9
    lengths = np.asarray(run((tiny.markov, table), n, slots=1000, length=length).lengths)
    expected = np.array([0.3 * 0.7 ** (k - 1) for k in range(1, length)] + [0.7 ** (length - 1)]) * n
    observed = np.bincount(lengths, minlength=length + 1)[1:]
    assert ((observed - expected) ** 2 / expected).sum() < stats.chi2.isf(1e-6, length - 1)


def test_a2_key_is_an_argument_and_one_compilation_serves_all_prompts(qwen):
    """Another prompt, arm, seed, range or count of the same bucket does not recompile (KNOWN_BUGS 2)."""
    extend, params = qwen
    run(qwen, 5, size=32)
    before = sample._cache_size()
    for seed, arm, n, first in ((2, "x1", 7, 0), (1, "x0:a", 32, 9), (9, "b", 1, 100)):
        run(qwen, n, first=first, size=32, seed=seed, arm=arm)
    other = read(extend, params, *pad(PROMPT[:3], 8))
    sample(
        extend, params, other, arm_key(0, "r", "a"), jnp.arange(32, dtype=jnp.int32), jnp.int32(3), STOP,
        sampling=Sampling(), slots=16, length=12, vocabulary=tiny.VOCABULARY,
    )  # fmt: skip
    assert sample._cache_size() == before


def test_reading_in_two_parts_equals_reading_at_once(qwen):
    extend, params = qwen
    whole = read(extend, params, *pad(PROMPT, 8))
    for cut in range(1, len(PROMPT)):
        parts = read(extend, params, *pad(PROMPT[cut:], 8), read(extend, params, *pad(PROMPT[:cut], 8)))
        assert isinstance(parts, Prefix)
        assert int(parts.length) == len(PROMPT)
        np.testing.assert_allclose(np.asarray(parts.logits), np.asarray(whole.logits), atol=2e-4)


def test_nothing_to_read_is_refused():
    with pytest.raises(ValueError, match="empty"):
        pad([], 8)
