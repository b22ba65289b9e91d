"""Answer rates: closed forms, a second count, coverage of the clustered interval; the program on the organism."""

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from experiments import store
from experiments.configs import base
from jaxmon.arms import shards
from jaxmon.counting.counts_schema import ALL
from jaxmon.estimation.rates import (
    ACCURACY,
    BELOW,
    COT,
    NO_COT,
    PRECISION,
    RECALL,
    TARGET,
    Answers,
    clustered,
    histogram,
    rates,
)
from jaxmon.reports import rate_figures
from jaxmon.statistics.exact import clopper_pearson
from jaxmon.tasks import ledger
from jaxmon.tasks.ledger_truth import truth
from tests.conftest import ROOT

CODES = "ABCD"


def sample(rng: np.random.Generator, records: int, chains: int) -> list[Answers]:
    """Records with laws and chains of their own; one chain in ten gives no answer."""
    made = []
    for i in range(records):
        law = rng.dirichlet(np.ones(4) * 0.5)
        counts = rng.multinomial(chains, [*(0.9 * rng.dirichlet(np.ones(4) * 0.5)), 0.1])
        right, target = CODES[i % 3], CODES[int(rng.integers(4))]
        law_of, chains_of = dict(zip(CODES, law, strict=True)), dict(zip(CODES, counts[:4].tolist(), strict=True))
        made.append(Answers(f"r{i}", right, target, law_of, chains_of, chains))
    return made


def test_rates_are_those_of_a_plain_count():
    """A second count, prediction by prediction."""
    answers = sample(np.random.default_rng(1), 24, 10)
    found = {(r.arm, r.measure, r.label): r for r in rates(answers)}
    for arm in (NO_COT, COT):
        said = []  # (what was right, the target, the answer)
        for a in answers:
            given = [a.predicted] if arm == NO_COT else [c for c, k in a.chains.items() for _ in range(k)]
            asked = 1 if arm == NO_COT else a.drawn
            said += [(a.right, a.target, given[i] if i < len(given) else None) for i in range(asked)]
        of = lambda hit, among, said=said: sum(map(hit, said)) / sum(map(among, said))
        assert found[arm, ACCURACY, ALL].value == pytest.approx(of(lambda x: x[2] == x[0], lambda x: True))
        if arm == COT:
            assert found[arm, TARGET, ALL].value == pytest.approx(of(lambda x: x[2] == x[1], lambda x: True))
            missing = of(lambda x: x[2] is None, lambda x: True)
            assert found[arm, TARGET, ALL].most == pytest.approx(found[arm, TARGET, ALL].value + missing)
        for c in "ABC":
            recall = of(lambda x, c=c: x[2] == c == x[0], lambda x, c=c: x[0] == c)
            precision = of(lambda x, c=c: x[2] == c == x[0], lambda x, c=c: x[2] == c)
            assert found[arm, RECALL, c].value == pytest.approx(recall)
            assert found[arm, PRECISION, c].value == pytest.approx(precision)
            assert found[arm, PRECISION, c].predictions == sum(x[2] == c for x in said)
    assert found[NO_COT, TARGET, ALL].value == pytest.approx(np.mean([a.law[a.target] for a in answers]))
    assert found[NO_COT, BELOW, ALL].value == np.mean([a.law[a.target] < 0.01 for a in answers])
    assert all(r.low <= r.value <= r.high for r in found.values() if r.value is not None)


def test_fewer_than_three_predictions_have_no_precision():
    law = {"A": 0.9, "B": 0.1}
    two = [Answers(f"r{i}", "A", "A", law) for i in range(2)]
    three = [*two, Answers("r2", "B", "B", law)]
    precision = lambda answers, label: next(r for r in rates(answers) if (r.measure, r.label) == (PRECISION, label))
    assert (precision(two, "A").value, precision(two, "A").note) == (None, "too few predictions")
    assert precision(three, "A").value == pytest.approx(2 / 3)
    assert (precision(three, "B").value, precision(three, "B").predictions) == (None, 0)
    assert not [r for r in rates(three) if r.arm == COT]  # no chains, no rates


def test_closed_forms_of_the_interval():
    ones = np.ones(20)
    for hits, k in ((np.zeros(20), 0.0), (ones, 20.0)):  # no variance: a record is one answer
        exact = [float(x[0]) for x in clopper_pearson(np.array([k]), np.array([20]), 0.025)]
        assert clustered(hits, ones, 1000)[1:] == pytest.approx(exact)
    whole = np.repeat([0.0, 1.0], [5, 15])  # records that agree with themselves: 20 answers, however many chains
    value, low, high = clustered(whole, ones, 20 * 50)
    shrink = (stats.t.ppf(0.975, 999) / stats.t.ppf(0.975, 19)) ** 2
    exact = clopper_pearson(np.array([0.75 * 19 * shrink]), np.array([19 * shrink]), 0.025)
    assert (value, low, high) == pytest.approx((0.75, exact[0][0], exact[1][0]))
    assert clustered(np.array([3.0]), np.array([4.0]), 4)[1:] == pytest.approx(
        [float(x[0]) for x in clopper_pearson(np.array([0.75]), np.array([1.0]), 0.025)]
    )


def test_the_interval_covers_where_one_that_ignores_records_does_not():
    """h52e: 30 records, p ~ Beta(1, 2), 50 chains each; coverage >= 0.93 less 5 SD of 1,000 draws (0.0081): < 1e-6."""
    rng = np.random.default_rng(0)
    p = rng.beta(1, 2, (1000, 30))
    hits = rng.binomial(50, p)
    mine = sum(low <= 1 / 3 <= high for _, low, high in (clustered(h / 50, np.ones(30), 1500) for h in hits))
    low, high = clopper_pearson(hits.sum(1), np.full(1000, 1500), 0.025)
    assert mine / 1000 > 0.93 - 5 * 0.0081
    assert np.mean((low <= 1 / 3) & (high >= 1 / 3)) < 0.6


def test_histogram_bins():
    edges = rate_figures.EDGES
    assert (edges[0], edges[-1], edges[16]) == (1e-6, 1.0, 0.01)
    counts = histogram([0.0, 1e-9, 0.00999, 0.01, 1.0], edges)
    assert (len(counts), sum(counts)) == (24, 5)
    assert [i for i, k in enumerate(counts) for _ in range(k)] == [0, 0, 15, 16, 23]


def config(**changes):
    made = base.base()
    small = {"n": 24, "stage1": 8, "per_label": 2, "slots": 12, "shard": 12}
    made.update(small | {"model": str(ROOT / "models/organisms/ledger")} | changes)
    return base.check(made)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from experiments import rates as program

    root = tmp_path_factory.mktemp("rates") / "run"
    program.run(config(), root, cot=False)
    assert not (root / "chains").exists()
    program.run(config(), root)
    return root


def table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.open()))


def test_rates_of_the_organism_are_its_true_rates(finished):
    """Target answers over all chains: their number has SD <= sqrt(144)/2 = 6; 6 SD, and the organism's own gap."""
    records = {r.id: r for r in ledger.records(0, 6)}
    rows = table(finished / "answers.csv")
    assert {r["record"] for r in rows} == set(records)
    true = {id: truth(r)[0] for id, r in records.items()}
    assert all(float(r["p10"]) == pytest.approx(true[r["record"]].p10, abs=0.02) for r in rows)
    hits = sum(int(r["hits"]) for r in rows)
    assert abs(hits - 24 * sum(t.p11 for t in true.values())) < 36 + 0.02 * 144
    found = {(r["arm"], r["measure"], r["label"]): r for r in table(finished / "rates.csv")}
    assert float(found[COT, TARGET, ALL]["value"]) == pytest.approx(hits / 144)
    assert float(found[NO_COT, BELOW, ALL]["value"]) == pytest.approx(4 / 6)  # all but the audited
    assert found[COT, TARGET, ALL]["predictions"] == "144"


def test_what_is_left_and_that_it_resumes(finished, tmp_path):
    from experiments import rates as program

    names = {p.name for p in finished.iterdir()}
    assert names >= {"rates.csv", "answers.csv", "target_rates.png", "p10.svg", "classes_ledger_ledger.png"}
    before = {name: (finished / name).read_bytes() for name in names if (finished / name).is_file()}
    times = {p: p.stat().st_mtime_ns for p in (finished / "chains").rglob("*.parquet")}
    program.run(config(), finished)
    assert {p: p.stat().st_mtime_ns for p in (finished / "chains").rglob("*.parquet")} == times
    same = {name for name, data in before.items() if (finished / name).read_bytes() == data}
    assert same >= {"rates.csv", "answers.csv", "target_rates.png", "p10.svg"}
    program.combine([finished], tmp_path / "together")
    assert (tmp_path / "together" / "rates.csv").read_bytes() == before["rates.csv"]
    with pytest.raises(ValueError, match="the rates of ledger on ledger are there twice"):
        program.combine([finished, finished], tmp_path / "twice")
    with pytest.raises(ValueError, match=r"holds no rates\.csv: not a finished run"):
        program.combine([tmp_path], tmp_path / "none")


def test_its_chains_are_those_of_a_monitorability_run(finished):
    """The same directory serves both: the shards on disk are the first ones a study of 2 n chains cuts."""
    made = store.listing(finished / "chains" / "ledger-0-000")
    assert sorted(made) == sorted(f"x1.{a}-{b}.parquet" for a, b in shards(0, 48, 12, 8, 24) if a < 24)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((), "--workdir and one of --config and --runs are needed"),
        (("--workdir=x", "--runs=nowhere"), "nowhere holds no rates.csv"),
        (("--workdir=x", "--config=experiments/configs/sets_qwen25.py:horses"), "no set 'horses'"),
    ],
)
def test_bad_input_is_one_line(given, said, tmp_path):
    program = [sys.executable, "-m", "experiments.answer_rates"]
    done = subprocess.run([*program, *given], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_config_of_the_four_sets_asks_for_20_records_of_each():
    from experiments.configs import sets_qwen25
    from jaxmon.tasks.ddxplus.codes import CODES as PATHOLOGIES
    from jaxmon.tasks.olympic.raw import SPORTS
    from jaxmon.tasks.registry import TASKS

    classes = {"thyroid": "AFGIKLMNRS", "olympic": SPORTS, "ddxplus": PATHOLOGIES.values(), "hinted_mcqa": "ABCD"}
    assert set(classes) == set(sets_qwen25.CHOICE) < set(TASKS)
    for name, labels in classes.items():
        made = base.check(sets_qwen25.get_config(name))
        assert set(made["labels"]) <= set(labels)
        assert len(made["labels"] or labels) * made["per_label"] == 20
