"""How fast is the bootstrap? The tabled bootstrap beside the plain loop over chains, on the same data in the same run.

    python -m tools.bench_bootstrap

A made-up study: 500 records, 22 attributes, n = 1000. As in the paper most attributes do nothing: `--effects` of them
per record do, the rest are null, and the two-stage rule decides which pairs get an estimation batch (about a fifth of
the null ones, by luck). A third of the attributes is never articulated.

The loop resamples records, then single chains of every batch and attribute as an array of truth values, and counts; it
is timed on `--looped` replicates and scaled up. Both do the whole of a replicate, filters and pooled means included.
Wall and processor seconds are printed: on a machine that is shared only the second can be compared.

Recorded (2 x86-64 CPUs with nothing beside it, jax 0.10.2, numpy 2.4.6; 3,529 of 11,000 pairs live): 4.8 to 4.9 s
compiled, 7.7 processor seconds; 7.5 s with compilation; 1.0 GiB with the runtime; loop 3,383 processor seconds, 445
times as many, 700 times as long. Building the tables (0.7 s) is serial.
"""

from __future__ import annotations

import os
import platform
import resource
import time

import numpy as np
from absl import flags

from experiments import cli
from jaxmon.counting import counts as counts_of
from jaxmon.counting import counts_schema
from jaxmon.counting import patterns as patterns_of
from jaxmon.counting.counts import Counts
from jaxmon.counting.patterns import Patterns
from jaxmon.estimation import cells
from jaxmon.estimation.cells import Settings
from jaxmon.rules import adaptive

RECORDS = flags.DEFINE_integer("records", 500, "Records, in 10 classes.", 10)
ATTRIBUTES = flags.DEFINE_integer("attributes", 22, "Attributes of each record.", 1)
EFFECTS = flags.DEFINE_integer("effects", 3, "Attributes with an effect, of each record.", 0)
CHAINS = flags.DEFINE_integer("chains", 1000, "Chains per arm and batch.", 10)
LOOPED = flags.DEFINE_integer("looped", 2, "Replicates of the plain loop.", 1)
BENCHED = flags.DEFINE_integer("benched", 10_000, "Replicates of the bootstrap.", 2)


def study(rng: np.random.Generator, records: int, attributes: int, effects: int, n: int) -> tuple[Counts, Patterns]:
    """Counts and patterns of a study under the two-stage rule."""
    plan = adaptive.Plan(n=n, stage1=n // 5)
    said = rng.uniform(0.05, 0.9, attributes) * (np.arange(attributes) % 3 > 0)  # pi_Z of each attribute
    rows, found = [], []
    for r in range(records):
        record, p11 = f"r{r:04}", rng.uniform(0.4, 0.7)
        p01 = np.full(attributes, p11)
        p01[rng.choice(attributes, effects, replace=False)] -= rng.uniform(0.1, 0.35, effects)
        k1 = rng.binomial(n, p11, 2)
        letters = np.where(rng.random((k1[1], attributes)) < said, "I", "N")
        words, times = np.unique(["".join(x) for x in letters], return_counts=True)
        law = [("estimate", str(w), int(c)) for w, c in zip(words, times, strict=True)]
        law += [("estimate", "other", int(n - k1[1]))]
        law += [("select", "unjudged", int(k1[0])), ("select", "other", int(n - k1[0]))]
        found += [{"record": record, "batch": b, "pattern": p, "count": c} for b, p, c in law]
        for a in range(attributes):
            first = rng.binomial(plan.stage1, p01[a])
            kept = bool(adaptive.keep(k1[0], first, plan))
            k0 = (first + kept * rng.binomial(n - plan.stage1, p01[a]), kept * rng.binomial(n, p01[a]))
            for b, batch in enumerate(counts_schema.BATCHES):
                row: dict[str, object] = {
                    "record": record,
                    "attribute": f"a{a:02}",
                    "label": f"c{r % 10}",
                    "batch": batch,
                }
                row |= {"n1": n, "k1": int(k1[b]), "n0": adaptive.batch_sizes(kept, plan)[b], "k0": int(k0[b])}
                row |= {"judged": int(k1[1]) * b, "l": int((letters[:, a] == "I").sum()) * b, "p10": 0.001}
                rows.append(row | {"p00": 0.001, "truncated1": 0, "truncated0": 0, "unparsed": 0})
    made = counts_of.from_table(counts_schema.from_rows(rows))
    return made, patterns_of.from_table(patterns_of.from_rows(found), made)


def loop(counts: Counts, patterns: Patterns, replicates: int, rng: np.random.Generator) -> list[np.ndarray]:
    """The plain bootstrap: every chain is an element of an array and is drawn by its index."""
    settings = Settings()
    fixed, data = cells.split(counts, settings)
    chains = []  # per record: its target answers' labels [n1, attributes], -1 where the answer is not the target
    for record in counts.records:
        group = patterns[record, "estimate"]
        words = {w: np.array([c == "I" for c in w], np.int8) for w in group if w != "other"}
        blank = np.full(len(counts.attributes), -1, np.int8)
        chains.append(np.repeat([words.get(w, blank) for w in group], list(group.values()), axis=0))

    def arm(k: float, n: int) -> int:
        return int((np.arange(n) < k)[rng.integers(0, n, n)].sum())

    out = []
    of_class = [np.flatnonzero(counts.label_of == c) for c in range(len(counts.labels))]
    for _ in range(replicates):
        chosen = np.concatenate([rng.choice(c, len(c)) for c in of_class])
        draw = cells.Draw(*(np.zeros(fixed.live.shape) for _ in cells.Draw._fields))
        for i, r in enumerate(chosen):
            drawn = chains[r][rng.integers(0, len(chains[r]), len(chains[r]))]
            target = drawn[drawn[:, 0] >= 0]
            draw.k1s[i] = arm(data.k1s[r].max(), counts.n1[r, 0, 0])
            draw.k1[i] = draw.judged[i] = len(target)
            draw.articulated[i] = target.sum(0)
            for a in np.flatnonzero(fixed.live[r]):
                draw.k0s[i, a] = arm(data.k0s[r, a], counts.n0[r, a, 0])
                draw.k0[i, a] = arm(data.k0[r, a], counts.n0[r, a, 1])
        scores = cells.evaluate(cells.Fixed(*(x[chosen] for x in fixed)), draw, settings.zero_over_zero)
        classes = np.eye(len(counts.labels))[counts.label_of[chosen]]
        mean, size = cells.means(scores.value, scores.ok, scores.ok, classes, settings.min_records)
        out.append(np.where(size > 0, mean, np.nan))
    return out


def main(argv: list[str]) -> None:
    if argv[1:]:
        raise ValueError(f"unexpected argument {argv[1]!r}")
    import jax

    from jaxmon.estimation.bootstrap import bootstrap

    b, rng = BENCHED.value, np.random.default_rng(0)
    counts, patterns = study(rng, RECORDS.value, ATTRIBUTES.value, EFFECTS.value, CHAINS.value)
    live = counts.present & ~counts.dropped
    print(f"{live.shape[0]} records, {live.shape[1]} attributes, {live.sum()} of {live.size} pairs live, B = {b}")

    def clock() -> np.ndarray:
        return np.array([time.perf_counter(), time.process_time()])

    spent = []
    for seed in range(3):
        start = clock()
        fast = bootstrap(counts, patterns, Settings(replicates=b, seed=seed)).values
        spent.append(clock() - start)
        kind = "with compilation" if seed == 0 else "compiled"
        print("tables, {}: {:.2f} s, {:.2f} processor s".format(kind, *spent[-1]), flush=True)
    print(f"peak memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")
    start = clock()
    slow = np.array(loop(counts, patterns, LOOPED.value, rng))
    looped = (clock() - start) * b / LOOPED.value
    print("loop over chains: {:.0f} s, {:.0f} processor s; ratio {:.0f}, {:.0f}".format(*looped, *looped / spent[-1]))
    away = (slow[:, :, -1, -1].mean(0) - fast[:, :, -1, -1].mean(0)) / fast[:, :, -1, -1].std(0)
    print("all attributes and classes, loop minus tables in SDs of a replicate:", np.round(away, 1))
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, jax {jax.__version__}, numpy {np.__version__}")


if __name__ == "__main__":
    cli.start(main)
