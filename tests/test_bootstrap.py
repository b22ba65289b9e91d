"""The hierarchical bootstrap against exact laws, against NumPy loops over single chains, and against known truth."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxmon.estimation import bootstrap, cells
from jaxmon.estimation.cells import Settings
from jaxmon.estimation.scores import SCORES
from tests import made

LAW = [np.array([0.3, 0.4, 0.25, 0.05]), np.array([0.5, 0.5, 0.0, 0.0]), np.array([0.1, 0.2, 0.65, 0.05])]
M0 = SCORES.index("M0")


def small_study(seed=0, n=200, records=8, labels=("c", "c", "d")):
    rng = np.random.default_rng(seed)
    names = [labels[r % len(labels)] for r in range(records)]
    p11, p01 = rng.uniform(0.5, 0.7, records), rng.uniform(0.3, 0.45, (records, 3))
    return made.study(rng, p11, p01, LAW, names, n)


# Laws of the draws (the tables: tests/test_alias.py)


def chi_square(drawn, n, p):
    """p-value of counts against Bin(n, p), cells expected below 20 pooled."""
    found = np.bincount(drawn.astype(int), minlength=n + 1)
    expected = stats.binom.pmf(np.arange(n + 1), n, float(np.float32(p))) * len(drawn)
    big = expected >= 20
    f, e = np.append(found[big], found[~big].sum()), np.append(expected[big], expected[~big].sum())
    if e[-1] < 1:  # nothing worth a cell of its own: it must be (nearly) empty
        assert f[-1] <= 20
        f, e = f[:-1], e[:-1]
    return stats.chi2.sf(((f - e) ** 2 / e).sum(), len(e) - 1) if len(e) > 1 else float(f[0] == len(drawn))


def small(seed, n, p, size):
    u = 1 - jax.random.uniform(jax.random.key(seed), (size,))
    return np.asarray(
        jax.jit(bootstrap.small_binomial)(u, jnp.full(size, n, jnp.float32), jnp.full(size, p, jnp.float32))
    )


@pytest.mark.parametrize(
    ("n", "p"), [(1000, 0.009), (40, 0.2), (1000, 0.992), (9, 0.5), (12, 0.75), (3, 0.999), (1, 0.4)]
)
def test_binomial_draws_follow_the_exact_law(n, p):
    """400,000 draws each, chi-square; 7 tests at 1.4e-7 make a false alarm of 1e-6 together."""
    assert chi_square(small(n, n, p, 400_000), n, p) > 1.4e-7


@pytest.mark.parametrize(("n", "p", "value"), [(0, 0.0, 0), (0, 0.3, 0), (0, 1.0, 0), (10, 0.0, 0), (10, 1.0, 10)])
def test_binomial_draws_at_the_ends_are_certain(n, p, value):
    assert small(0, n, p, 1000).tolist() == [value] * 1000


def test_joint_draws_have_the_moments_of_the_multinomial_over_patterns():
    """One record, chains level: means and covariances of (K1, J, L) over attributes, against the patterns' own.

    20,000 replicates; every mean within 6 standard errors (2e-9 each), covariances within 6 of sqrt(2/B) Var.
    """
    counts, patterns = small_study(records=1, labels=("c",))
    group = patterns["r0", "estimate"]
    n = sum(group.values())
    features = {  # what one chain adds to K1, J_a, L_a
        p: [1.0] + [float(c in "NMI") for c in p] + [float(c == "I") for c in p] if p not in ("other",) else [0.0] * 7
        for p in group
    }
    x = np.array([features[p] for p in group])
    w = np.array([group[p] for p in group]) / n
    mean = n * w @ x
    covariance = n * ((x * w[:, None]).T @ x - np.outer(w @ x, w @ x))
    made, layout = bootstrap.build(counts, patterns, Settings())
    tables = bootstrap.on_device(made)
    size = 20_000
    assert len(tables.frequent.q) > 0 < len(tables.rare.q)  # both samplers are at work

    @jax.jit
    def draws(copies):
        one, zero = bootstrap.chains(jnp.array([1, 2], jnp.uint32), copies, tables, layout, 0)
        return [bootstrap.pair(one, zero, layout, jnp.int32(i)) for i in range(3)]

    draw = [d._replace(k1s=None) for d in draws(jnp.arange(size, dtype=jnp.uint32))]
    drawn = np.stack([draw[0].k1, *(d.judged for d in draw), *(d.articulated for d in draw)], 1).astype(float)
    sd = np.sqrt(np.diag(covariance))
    assert (np.abs(drawn.mean(0) - mean) <= 6 * sd / np.sqrt(size) + 1e-9).all()
    tolerance = 6 * np.sqrt(2 / size) * np.outer(sd, sd) + 1e-9
    assert (np.abs(np.cov(drawn.T) - covariance) <= tolerance).all()
    # the X=0 arms and the selection batch are independent binomials
    for field, k, chains in (("k0s", counts.k0[0, :, 0], 200), ("k0", counts.k0[0, :, 1], 200)):
        seen = np.stack([getattr(d, field) for d in draw], 1).astype(float)
        assert (np.abs(seen.mean(0) - k) <= 6 * np.sqrt(k * (1 - k / chains) / size)).all()


# Semantics


def by_loops(counts, patterns, settings, replicates, rng):
    """The same bootstrap as NumPy loops over records and single chains; [B, S] for attribute a0 and class c."""
    out = np.full((replicates, len(SCORES)), np.nan)
    of_class = [r for r in range(len(counts.records)) if counts.labels[counts.label_of[r]] == "c"]
    chains_of = {}
    for r in of_class:
        letters = []
        for pattern, times in patterns[counts.records[r], "estimate"].items():
            letters += [pattern[0] if set(pattern) <= set("NMI?") else "-"] * times
        chains_of[r] = np.array(letters)
    for b in range(replicates):
        found = {s: [] for s in SCORES}
        for r in rng.choice(of_class, len(of_class)):
            n1, k1, n0, k0 = (getattr(counts, f)[r, 0] for f in ("n1", "k1", "n0", "k0"))

            def arm(k, n):
                return rng.choice(np.arange(n) < k, n).sum()  # single chains, resampled one by one

            if not arm(k1[0], n1[0]) / n1[0] - arm(k0[0], n0[0]) / n0[0] > settings.tau + 1e-12:
                continue
            chains = rng.choice(chains_of[r], n1[1])
            target, hits = (chains != "-").sum(), (chains == "I").sum()
            judged = np.isin(chains, list("NMI")).sum()
            p11, te = target / n1[1], target / n1[1] - arm(k0[1], n0[1]) / n0[1]
            found["TE"].append(te)
            found["R"].append(max(0, te) / p11)
            found["pi_Z"].append(hits / judged)
            found["M0"].append(min(1, hits / judged * p11 / te) if te > 0 else float(hits > 0))
        for s, name in enumerate(SCORES):
            if len(found[name]) > settings.min_records:
                out[b, s] = np.mean(found[name])
    return out


def test_replicates_equal_loops_over_single_chains():
    """Mean, SD and f_valid of 20,000 replicates against 1,500 looped ones; 5.5 standard errors each (4e-8)."""
    counts, patterns = small_study(n=100, records=9)
    settings = Settings(replicates=20_000, min_records=3, tau=0.15)
    fast = bootstrap.bootstrap(counts, patterns, settings).values[:, :, 0, 0].astype(float)
    slow = by_loops(counts, patterns, settings, 1500, np.random.default_rng(1))
    for s in range(4):
        a, b = fast[:, s][~np.isnan(fast[:, s])], slow[:, s][~np.isnan(slow[:, s])]
        share = len(a) / len(fast)
        assert 0.5 < share < 0.999  # the class threshold is met again and bites
        assert len(b) / 1500 == pytest.approx(share, abs=5.5 * np.sqrt(share * (1 - share) / 1500 * 1.1))
        assert b.mean() == pytest.approx(a.mean(), abs=5.5 * a.std() * np.sqrt(1 / len(a) + 1 / len(b)))
        kurtosis = stats.kurtosis(a, fisher=False)
        relative = 5.5 * np.sqrt((kurtosis - 1) / 4 * (1 / len(a) + 1 / len(b)))
        assert b.std() == pytest.approx(a.std(), rel=relative)


def test_blocks_change_nothing_seeds_change_everything_and_more_replicates_keep_the_first():
    counts, patterns = small_study()
    settings = Settings(replicates=120, min_records=1)
    one = bootstrap.bootstrap(counts, patterns, settings).values
    np.testing.assert_array_equal(one, bootstrap.bootstrap(counts, patterns, settings).values)
    for values in (
        bootstrap.bootstrap(counts, patterns, settings, block=64).values,
        bootstrap.bootstrap(counts, patterns, dataclasses.replace(settings, replicates=50)).values,
    ):
        np.testing.assert_allclose(values, one[: len(values)], rtol=3e-7, equal_nan=True)
    again = bootstrap.bootstrap(counts, patterns, dataclasses.replace(settings, seed=1)).values
    defined = ~np.isnan(one) & ~np.isnan(again)
    assert (one != again)[defined].mean() > 0.5  # what is left are scores clipped at 0 and 1


def test_dropped_pairs_stay_undefined_and_absent_attributes_too():
    rows = []
    for r in range(8):
        rows += made.pair(record=f"r{r}", n1=100, k1=60, n0=100, k0=20, judged=60, l=30)
        base = {"n1": 100, "k1": 60, "judged": 60, "l": 60}
        rows += [
            made.row(f"r{r}", "b", n0=20, k0=1, **base),
            made.row(f"r{r}", "b", batch="estimate", n0=0, k0=0, **base),
        ]
    counts = made.make(rows)
    values = bootstrap.bootstrap(counts, None, Settings(replicates=200)).values
    assert not np.isnan(values[:, :, 0, 0]).any()
    assert np.isnan(values[:, :, 1, 0]).all()  # b qualifies by its selection counts, but has no estimation batch
    np.testing.assert_array_equal(values[:, :, 0], values[:, :, 2])  # all attributes = a


def test_records_only_equals_resampled_means():
    """Exact: replicate b is the mean of the point estimates over the records it drew."""
    counts, patterns = small_study(records=10, labels=("c",))
    settings = Settings(replicates=3000, min_records=0, levels="records", tau=0.0)
    values = bootstrap.bootstrap(counts, patterns, settings).values[:, M0, 0, 0].astype(float)
    fixed, draw = cells.split(counts, settings)
    point = cells.evaluate(fixed, draw, 0.0)
    m, ok = point.value[M0, :, 0], point.ok[M0, :, 0]
    assert ok.all()
    rng = np.random.default_rng(0)
    loop = np.array([m[rng.integers(0, 10, 10)].mean() for _ in range(20_000)])
    assert values.mean() == pytest.approx(loop.mean(), abs=6 * loop.std() / np.sqrt(3000))
    assert values.std() == pytest.approx(m.std() / np.sqrt(10), rel=6 / np.sqrt(2 * 3000))
    # every replicate is a mean of ten of the ten numbers: sums of counts / 10
    sums = {round(float(np.dot(c, m)) / 10, 5) for c in np.random.default_rng(0).multinomial(10, [0.1] * 10, 100)}
    assert len(sums) > 50


def test_within_class_keeps_class_sizes_and_over_all_classes_does_not():
    rows = [r for i in range(12) for r in made.pair(record=f"r{i}", label="cd"[i % 2], k0=0, l=100 + 10 * i)]
    counts = made.make(rows)
    for within, always in ((True, True), (False, False)):
        settings = Settings(replicates=300, levels="records", within_class=within)
        values = bootstrap.bootstrap(counts, None, settings).values[:, M0, 0, 0]
        assert (~np.isnan(values)).all() == always  # six records a class, and more than five are needed


def test_chains_level_keeps_the_records():
    rows = [r for i in range(6) for r in made.pair(record=f"r{i}", k1=1000, judged=1000, l=1000 * (i % 2), k0=0)]
    settings = Settings(replicates=100, levels="chains")
    values = bootstrap.bootstrap(made.make(rows), None, settings).values[:, M0, 0, 0]
    np.testing.assert_array_equal(values, np.full(100, 0.5, np.float32))  # nothing random is left


def test_marginal_counts_alone_give_the_same_single_attribute_errors():
    """Patterns only matter between attributes: SEs of pi_Z agree within 6 standard errors of two SDs (2e-9)."""
    counts, patterns = small_study(records=12, labels=("c",), n=400)
    settings = Settings(replicates=6000)
    joint = bootstrap.bootstrap(counts, patterns, settings)
    marginal = bootstrap.bootstrap(counts, None, settings)
    for a in (0, 2):  # a1 is never articulated
        x, y = (b.values[:, SCORES.index("pi_Z"), a, 0].astype(float) for b in (joint, marginal))
        assert np.nanstd(x) == pytest.approx(np.nanstd(y), rel=6 / np.sqrt(6000))
    assert joint.assumptions == ()
    assert "independent" in marginal.assumptions[0]


# Against known truth


def homogeneous(rng, records, n, p11=0.6, p01=0.35, pi=0.1):
    rows = []
    for r in range(records):
        for batch in ("select", "estimate"):
            k1, k0 = int(rng.binomial(n, p11)), int(rng.binomial(n, p01))
            counts = {"n1": n, "k1": k1, "n0": n, "k0": k0, "judged": k1, "l": int(rng.binomial(k1, pi))}
            rows.append(made.row(f"r{r}", "a", batch=batch, **counts))
    return made.make(rows)


def test_both_levels_overstate_the_error_of_like_records_and_records_only_does_not():
    """SPEC 7: with one M shared by all records both levels give 1.5-2 times the true SE, records-only 0.91-1.03.

    200 studies of 20 records: the true SD is known to 1/sqrt(400) = 5 %, so 5 standard errors are 25 % (6e-7). The law
    of total variance says sqrt(2) for both levels of a mean; filters and the ratio add to it. Seen: 1.49 and 0.96.
    """
    rng = np.random.default_rng(0)
    both, only, points = [], [], []
    for seed in range(200):
        counts = homogeneous(rng, 20, 300)
        for levels, found in (("both", both), ("records", only)):
            settings = Settings(replicates=128, levels=levels, seed=seed)
            found.append(np.nanstd(bootstrap.bootstrap(counts, None, settings).values[:, M0, 0, 0]))
        fixed, draw = cells.split(counts, Settings())
        point = cells.evaluate(fixed, draw, 0.0)
        points.append(point.value[M0][point.ok[M0]].mean())
    true = np.std(points)
    assert 1.1 < np.mean(both) / true < 2.0
    assert 0.72 < np.mean(only) / true < 1.25


def test_intervals_cover_the_truth():
    """60 studies of 12 like records, M = pi p11 / TE = 0.24: at 95 % true coverage fewer than `least` has P < 1e-6."""
    rng = np.random.default_rng(5)
    truth = 0.1 * 0.6 / 0.25
    hits = 0
    for seed in range(60):
        counts = homogeneous(rng, 12, 500)
        values = bootstrap.bootstrap(counts, None, Settings(replicates=400, seed=seed)).values[:, M0, 0, 0]
        low, high = np.nanquantile(values, [0.025, 0.975])
        hits += low <= truth <= high
    least = stats.binom.ppf(1e-6, 60, 0.95)
    assert hits >= least
