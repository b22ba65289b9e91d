"""What makes a counts table usable, as tables of rules; the first fault becomes one line.

Knows: the meaning of the columns (counts.py). Does not know: files.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from jaxmon.counting.counts_schema import ALL, BATCHES, LOST, RATES, TALLIES, TEXTS, CountsError

Columns = Mapping[str, np.ndarray]


def place(text: Columns, i: int) -> str:
    """Where row i (from 0) is, for messages."""
    return f"row {i + 1} (record {text['record'][i]}, attribute {text['attribute'][i]}, batch {text['batch'][i]})"


def check_rows(text: Columns, number: Columns, rate: Columns, source: str) -> None:
    """Rules that one row can break.

    Args:
      text, number, rate: columns by name, each [rows]; number is int64, rate float64 with NaN = not measured.
      source: the file, for messages.
    Raises: CountsError.
    """
    n = number
    estimate = text["batch"] == "estimate"
    rules: list[tuple[str, np.ndarray, str]] = [
        *((c, text[c] == "", "empty") for c in TEXTS),
        *((c, text[c] == ALL, f"the name {ALL!r} is kept for pooled rows") for c in ("attribute", "label")),
        ("batch", ~np.isin(text["batch"], BATCHES), "unknown batch, expected select or estimate"),
        *((c, n[c] < 0, "negative") for c in TALLIES + LOST),
        ("n1", (n["n1"] == 0) & ~estimate, "no chains in the selection batch"),
        ("n0", (n["n1"] == 0) & (n["n0"] > 0), "chains without the attribute but none with it (n1 = 0)"),
        ("k1", n["k1"] > n["n1"], "more target answers than chains (n1 = {n1})"),
        ("k0", n["k0"] > n["n0"], "more target answers than chains (n0 = {n0})"),
        ("judged", n["judged"] > n["k1"], "more judged chains than target answers (k1 = {k1})"),
        ("l", n["l"] > n["judged"], "more articulated than judged chains (judged = {judged})"),
        ("truncated1", n["k1"] + n["truncated1"] > n["n1"], "k1 + truncated1 exceed n1 = {n1} (k1 = {k1})"),
        ("truncated0", n["k0"] + n["truncated0"] > n["n0"], "k0 + truncated0 exceed n0 = {n0} (k0 = {k0})"),
        (
            "unparsed",
            n["k1"] + n["k0"] + n["truncated1"] + n["truncated0"] + n["unparsed"] > n["n1"] + n["n0"],
            "target answers, truncated and unparsed chains together exceed n1 + n0",
        ),
        *((c, (rate[c] < 0) | (rate[c] > 1), "not a probability in [0, 1]") for c in RATES),
    ]
    for column, broken, message in rules:
        if broken.any():
            i = int(np.argmax(broken))
            value = {**text, **number, **rate}[column][i]
            told = message.format(**{c: number[c][i] for c in number})
            raise CountsError(f"{source}: {place(text, i)}, column {column}: {value}: {told}")


def check_groups(
    r: np.ndarray, a: np.ndarray, b: np.ndarray, text: Columns, number: Columns, rate: Columns, source: str
) -> None:
    """Rules that rows can only break together: doubled rows, missing batches, values that must agree within a group.

    Args:
      r, a, b: int64 [rows], the index of each row's record, attribute and batch.
    Raises: CountsError.
    """
    pair = r * (a.max() + 1) + a
    row_key = pair * 2 + b
    _, first, inverse = np.unique(row_key, return_index=True, return_inverse=True)
    doubled = first[inverse] != np.arange(len(r))
    if doubled.any():
        i = int(np.argmax(doubled))
        raise CountsError(
            f"{source}: {place(text, i)}, column batch: the row is there twice (first as row {_at(first, inverse, i)})"
        )
    _, first, inverse, size = np.unique(pair, return_index=True, return_inverse=True, return_counts=True)
    if (size < 2).any():
        i = int(first[np.argmax(size < 2)])
        raise CountsError(
            f"{source}: {place(text, i)}, column batch: the {BATCHES[1 - b[i]]} batch of this pair is missing"
        )
    estimated = pair[(b == 1) & (number["n0"] > 0)]
    unselected = (b == 0) & (number["n0"] == 0) & np.isin(pair, estimated)
    if unselected.any():
        i = int(np.argmax(unselected))
        raise CountsError(f"{source}: {place(text, i)}, column n0: 0: no chains in the selection batch")
    groups: list[tuple[str, np.ndarray, np.ndarray, str]] = [
        ("label", r, text["label"], "the classes of one record differ"),
        *((c, r * 2 + b, number[c], "differs over the attributes of one record and batch") for c in SHARED),
        *((c, pair, rate[c], "differs between the batches of one pair") for c in RATES),
    ]
    for column, key, values, message in groups:
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        here, there = values, values[first[inverse]]
        same = here == there
        if column in RATES:
            same |= np.isnan(here) & np.isnan(there)
        if not same.all():
            i = int(np.argmin(same))
            other = f"{there[i]} in row {_at(first, inverse, i)}"
            raise CountsError(f"{source}: {place(text, i)}, column {column}: {here[i]}, but {other}: {message}")


SHARED = ("n1", "k1", "truncated1")  # the X=1 arm belongs to the record, not to the pair


def _at(first: np.ndarray, inverse: np.ndarray, i: int) -> int:
    return int(first[inverse[i]]) + 1
