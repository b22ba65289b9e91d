"""Agreement coefficients: closed forms, an independent implementation's values, clusters; the gold set."""

import json
from pathlib import Path

import numpy as np
import pytest

from experiments import comparing, error_file, gold_file
from jaxmon.judging import agreement as a
from jaxmon.judging.judge import LexicalJudge
from jaxmon.tasks.thyroid.lexicon import LEXICON
from tests.conftest import ROOT

GOLD = ROOT / "experiments" / "gold"


def simulated(rng: np.random.Generator, shape: tuple[int, int], law: list[float]) -> np.ndarray:
    truth, keep = rng.choice(3, size=shape[0], p=law), rng.random(shape) < 0.7
    return np.where(keep, truth[:, None], rng.choice(3, size=shape, p=law))


def test_values_of_an_independent_implementation():
    """irrCAC 0.4.4 (PyPI; it asks for an older SciPy, so its values are written down here) on the same draws."""
    rng = np.random.default_rng(0)
    for shape, law, expected in (
        ((60, 2), [0.2, 0.3, 0.5], (0.45632, 0.52252, 0.35013)),
        ((80, 3), [0.05, 0.05, 0.9], (0.91378, 0.94272, 0.51582)),
        ((40, 4), [0.6, 0.1, 0.3], (0.65199, 0.53649, 0.52871)),
    ):
        kinds, counts = np.unique(simulated(rng, shape, law), axis=0, return_counts=True)
        found = a.coefficients(kinds, counts, 3)
        assert [found[c] for c in ("AC1", "AC2", "fleiss")] == pytest.approx(expected, abs=6e-6)  # 5 decimals


def test_closed_forms():
    """Two raters, a 2x2 table [[a, b], [c, d]]: raw, Cohen and AC1 from their textbook forms."""
    table = np.array([[40, 9], [6, 45]])
    kinds = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    found = a.coefficients(kinds, table.ravel(), 2)
    p = table / 100
    raw, one, two = p.trace(), p.sum(1), p.sum(0)
    by_chance, q = (one * two).sum(), (one + two) / 2
    assert found["raw"] == pytest.approx(raw)
    assert found["cohen"] == pytest.approx((raw - by_chance) / (1 - by_chance))
    assert found["AC1"] == found["AC2"] == pytest.approx((raw - 2 * q[0] * q[1]) / (1 - 2 * q[0] * q[1]))
    assert found["fleiss"] == pytest.approx((raw - (q**2).sum()) / (1 - (q**2).sum()))


def test_the_kappa_paradox_is_flagged():
    """Two raters agree on 94 of 100 items, nearly all of one label: kappa is near zero, AC1 near one."""
    ratings = np.array([[0, 0]] * 94 + [[0, 1]] * 3 + [[1, 0]] * 3)
    found = a.agreement(ratings, [str(i) for i in range(100)], 2, replicates=50)
    assert found.coefficients["cohen"].value < 0 < 0.93 < found.coefficients["AC1"].value
    assert any("kappa misleads" in flag for flag in found.flags)
    assert a.agreement(np.array([[0, 0], [1, 1], [0, 1]] * 9), ["x", "y", "z"] * 9, 2, 20).flags == ()


def test_a_rater_with_one_label_only_is_flagged():
    ratings = np.array([[i % 2, 1] for i in range(40)])
    found = a.agreement(ratings, [str(i) for i in range(40)], 2, replicates=50)
    assert found.coefficients["cohen"].value == pytest.approx(0)
    assert any(flag.startswith("Rater 2 gives one label only") for flag in found.flags)
    same = a.agreement(np.ones((9, 2), int), list("abcabcabc"), 2, replicates=20)
    assert same.coefficients["cohen"] == a.Estimate(None)  # 0/0
    assert same.coefficients["AC1"].value == 1


def test_intervals_widen_with_clusters():
    """Items copied k times within a chain tell no more than one: the interval is that of the chains."""
    base = simulated(np.random.default_rng(1), (200, 2), [0.3, 0.3, 0.4])
    one = a.agreement(base, [str(i) for i in range(200)], replicates=400)
    copied = a.agreement(np.repeat(base, 6, 0), [str(i) for i in range(200) for _ in range(6)], replicates=400)
    alone = a.agreement(np.repeat(base, 6, 0), [str(i) for i in range(1200)], replicates=400)
    width = lambda x: x.coefficients["raw"].high - x.coefficients["raw"].low
    assert width(copied) == pytest.approx(width(one), rel=1e-9)
    assert width(alone) < 0.6 * width(one)  # 1/sqrt(6) = 0.41
    p = one.coefficients["raw"].value  # against the binomial's normal interval; 400 replicates: the width's SE is < 6 %
    assert width(one) == pytest.approx(2 * 1.96 * np.sqrt(p * (1 - p) / 200), rel=0.3)


def test_bad_input():
    with pytest.raises(ValueError, match="two raters, got 3 and 1"):
        a.agreement(np.zeros((3, 1), int), list("abc"))
    with pytest.raises(ValueError, match="got 0 and 2"):
        a.agreement(np.zeros((0, 2), int), [])


def test_the_gold_set_is_whole():
    chains = [g for name in ("ledger", "thyroid") for g in gold_file.read(GOLD / f"{name}.jsonl")]
    assert sum(len(g.labels) for g in chains) == 280
    assert {label.value for g in chains for label in g.labels.values()} == set("NMI")
    assert len({g.thought for g in chains}) == len(chains)


def test_measured_limits_of_the_lexical_judge(tmp_path):
    """The figures in LexicalJudge's docstring; exact on the organism."""
    lines = comparing.compare_gold(GOLD / "thyroid.jsonl", ["lexical"], "", 0, tmp_path)
    rows = json.loads((tmp_path / "agreement.json").read_text())
    assert [round(r["coefficients"]["raw"]["value"], 2) for r in rows] == [0.76, 0.76]
    error = error_file.read(tmp_path / "error-lexical:thyroid.json", LexicalJudge(LEXICON))
    assert (round(error.sensitivity.value, 2), round(error.false_positive.value, 2)) == (0.64, 0.10)
    assert "     I     5    27    57     0" in lines
    lines = comparing.compare_gold(GOLD / "ledger.jsonl", ["lexical"], "", 0, tmp_path)
    assert json.loads((tmp_path / "agreement.json").read_text())[0]["coefficients"]["raw"]["value"] == 1


def line(**changed: object) -> str:
    row = json.loads((GOLD / "thyroid.jsonl").read_text().splitlines()[9]) | changed
    return json.dumps({k: v for k, v in row.items() if v is not ...})


NAMES = ("age", "sex", "sick", "goitre", "TSH", "TT4", "T4U", "FTI")
BAD = {
    "no file": (None, "No such file"),
    "empty": ("", "no chains"),
    "no json": ("{", "line 1"),
    "no object": ("3", "line 1"),
    "a field missing": (line(thought=...), "line 1: field 'thought' is missing"),
    "a label missing": (line(labels={}), "labels and attributes differ in FTI, T4U"),
    "an unknown label": (line(labels=dict.fromkeys(NAMES, "I")), "unknown label 'I'"),
    "twice": (line() + "\n" + line(), "line 2: the id 'thyroid-gold-10' is there twice"),
    "no such task": (line(task="weather"), "no task 'weather'"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_bad_gold_files_are_one_line(what, tmp_path):
    text, words = BAD[what]
    if text is not None:
        (tmp_path / "gold.jsonl").write_text(text)
    with pytest.raises((ValueError, OSError)) as caught:
        comparing.compare_gold(tmp_path / "gold.jsonl", ["lexical"], "", 0, tmp_path)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_error_files_of_another_judge_are_refused(tmp_path):
    comparing.compare_gold(GOLD / "ledger.jsonl", ["lexical"], "", 0, tmp_path)
    path = tmp_path / "error-lexical:ledger.json"
    assert error_file.read(path).sensitivity.value == 1
    with pytest.raises(ValueError, match="holds the error rates of lexical:ledger"):
        error_file.read(path, LexicalJudge(LEXICON))
    for text in ("{}", "[]", '{"judge": 1', path.read_text().replace('"k": 28.0', '"k": 29.0')):
        Path(tmp_path / "bad").write_text(text)
        with pytest.raises(ValueError, match="no error rates of a judge"):
            error_file.read(tmp_path / "bad")
