"""Counts tables made by hand or by simulation, for the tests of the estimators."""

from collections.abc import Sequence

import numpy as np

from jaxmon.counting import counts, counts_schema, patterns


def row(record="r0", attribute="a", label="c", batch="select", **changed):
    """One valid row of a counts table with some columns changed."""
    base = {"n1": 1000, "k1": 540, "n0": 1000, "k0": 300, "judged": 540, "l": 100, "p10": 0.001, "p00": 0.001}
    base |= {"truncated1": 0, "truncated0": 0, "unparsed": 0}
    return {"record": record, "attribute": attribute, "label": label, "batch": batch} | base | changed


def pair(**changed):
    """Both batches of one pair."""
    return [row(batch="select", **changed), row(batch="estimate", **changed)]


def table(rows):
    return counts_schema.from_rows(rows)


def make(rows):
    return counts.from_table(table(rows))


def simulate(
    rng: np.random.Generator,
    p11: np.ndarray,
    p01: np.ndarray,
    letter_law: Sequence[np.ndarray],
    labels: Sequence[str],
    n: int = 1000,
    p10: float = 0.001,
):
    """A study with known truth: chains are drawn one by one, labels of different attributes are independent.

    Args:
      p11: [R]; p01: [R, A]; letter_law: per attribute the probabilities of N, M, I, ? given a target answer.
    Returns: (rows, pattern rows).
    """
    n_records, n_attributes = p01.shape
    rows, pattern_rows = [], []
    for r in range(n_records):
        for batch in ("select", "estimate"):
            k1 = int((rng.random(n) < p11[r]).sum())
            drawn = np.stack([rng.choice(list("NMI?"), size=k1, p=law) for law in letter_law], 1)
            found, times = np.unique(["".join(x) for x in drawn], return_counts=True) if k1 else ([], [])
            group = dict(zip(found, times, strict=True)) | ({"other": n - k1} if k1 < n else {})
            pattern_rows += [
                {"record": f"r{r}", "batch": batch, "pattern": str(p), "count": int(c)} for p, c in group.items()
            ]
            for a in range(n_attributes):
                k0 = int((rng.random(n) < p01[r, a]).sum())
                tally = {"judged": int((drawn[:, a] != "?").sum()), "l": int((drawn[:, a] == "I").sum())}
                name = f"a{a}"
                rows.append(row(f"r{r}", name, labels[r], batch, n1=n, n0=n, k1=k1, k0=k0, p10=p10, **tally))
    return rows, pattern_rows


def study(*args, **kwargs):
    """Counts and Patterns of `simulate`."""
    rows, pattern_rows = simulate(*args, **kwargs)
    made = make(rows)
    return made, patterns.from_table(patterns.from_rows(pattern_rows), made)
