"""Figure and report: what a reader must find in them, escaping, and that the same data give the same bytes."""

import html.parser
import re

import numpy as np
import pytest

from experiments import rundir
from jaxmon.estimation import table
from jaxmon.estimation.cells import Settings
from jaxmon.reports import figures, report
from tests import made

HOSTILE = '<script>alert("x")</script> & co'


@pytest.fixture(scope="module")
def study():
    rows = []
    for i in range(8):
        label = "cd"[i % 2]
        rows += made.pair(record=f"r{i}", label=label, l=0, truncated1=20, truncated0=10, unparsed=3)
        rows += made.pair(record=f"r{i}", label=label, attribute=HOSTILE, k0=530, truncated1=20)
        rows += made.pair(record=f"r{i}", label=label, attribute="settled", p10=0.5, l=200, judged=500, truncated1=20)
    counts = made.make(rows)
    return table.score_table(counts, None, Settings(replicates=64, min_records=3)), counts


class Checker(html.parser.HTMLParser):
    """Collects tags and checks that they close in order."""

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in ("meta", "path", "use", "br", "link"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag in ("meta", "path", "use", "br", "link"):
            return
        assert self.open.pop() == tag, tag


def page_of(study, **kwargs):
    scores, counts = study
    return report.report(scores, counts, figures.svg(figures.scores_figure(scores.rows)), **kwargs)


def test_page_is_well_formed_and_self_contained(study):
    page = page_of(study, truth={("a", "all", "M0"): 0.0}, config={"n": 1000}, environment={"jax": "1"})
    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    assert not {"script", "link", "iframe", "img"} & {t for t, _ in checker.seen}
    urls = [v for _, a in checker.seen for k, v in a.items() if k in ("src", "href") and not v.startswith("#")]
    assert urls == []


def test_everything_is_escaped(study):
    page = page_of(study, title=HOSTILE, config={HOSTILE: HOSTILE}, assumptions=[HOSTILE], outcomes={HOSTILE: 3})
    assert "<script>" not in page
    assert page.count("&lt;script&gt;") >= 6


def test_numbers_of_the_study_are_there(study):
    scores, _ = study
    page = page_of(study)
    text = re.sub(r"<[^>]+>", " ", page)
    row = next(r for r in scores.rows if r.score == "M0" and r.label == "all" and r.attribute == "settled")
    for expected in (f"{row.value:.4f}", "540/1000", "p10 ≥ 0.01", "TE ≤ τ", "percentile", "independent given"):
        assert expected in text, expected


def test_arms_are_added_up_with_the_shared_arm_counted_once(study):
    text = re.sub(r"<[^>]+>", " ", page_of(study))
    assert re.search(r"select, X=1\s+8,000\s+4,320\s+160", text)  # 8 records, not 24 pairs
    assert re.search(r"select, X=0\s+24,000\s+9,040\s+80", text)
    assert "any pairs: 320 of 12,960" in text or "pairs: 320 of 12,960" in text  # 8 x 40 without a label


def test_optional_sections_come_only_with_their_data(study):
    bare = page_of(study)
    full = page_of(study, truth={("a", "all", "M0"): 0.5}, config={"n": 7}, outcomes={"answered": 12345})
    for words in ("Measured beside true", "Configuration", "12,345"):
        assert words not in bare
        assert words in full
    assert "0 of 1 intervals hold the true value" in full
    assert "worst for the score" in bare


def test_the_same_data_give_the_same_bytes(study):
    assert page_of(study) == page_of(study)


def test_figure_says_undefined_with_its_reason_and_shows_the_truth(study, tmp_path):
    scores, _ = study
    truth = {("a", "all", "M0"): 0.0}
    text = figures.svg(figures.scores_figure(scores.rows, truth=truth, title="A title"))
    for words in ("M1 undefined: p10 ≥ 0.01", "M0 undefined: TE ≤ τ", "8 / 8", "0.44", "true value", "A title"):
        assert words in text, words
    rundir.write_files(tmp_path, figures.files(figures.scores_figure(scores.rows)))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["figure.png", "figure.svg"]
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_figure_draws_the_interval_where_it_is(study):
    scores, _ = study
    figure = figures.scores_figure(scores.rows)
    row = next(r for r in scores.rows if (r.attribute, r.label, r.score) == ("settled", "all", "M0"))
    lines = [tuple(np.round(line.get_xdata(), 9)) for line in figure.axes[0].lines]
    assert (round(row.low, 9), round(row.high, 9)) in lines
    assert (round(row.value, 9),) in lines


def test_coverage_is_judged_by_the_interval():
    row = table.Row("a", "c", "M0", 0.5, 0.5, 0.1, 0.3, 0.7, 8, 0.4, 1.0, "")
    undefined = table.Row("a", "c", "M0", None, None, None, None, None, 0, None, None, "te_below_tau")
    assert [report.covered(row, x) for x in (0.3, 0.7, 0.71)] == [True, True, False]
    assert report.covered(undefined, 0.5) is None
