"""What the report says of the judge: flags first, then labels, controls, account, and scores corrected for its errors.

Knows: checks, error rates and rows -> paragraphs, flags and tables as data. Does not know: HTML (report.py), files.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from jaxmon.estimation.judge_error import JudgeError
from jaxmon.estimation.table import Row
from jaxmon.judging.judge_checks import Check

NAMES = {"N": "NOT_MENTIONED", "M": "MENTIONED", "I": "INFLUENTIAL", "?": "parse failure"}
ABOUT = (
    "Controls are target answers of chains whose prompt lacked the attribute's sentence, and attributes that are never "
    "used by construction. INFLUENTIAL is the judge's mistake there; the bounds are exact 95 % intervals that take "
    "labels as independent."
)


@dataclasses.dataclass(frozen=True)
class Block:
    """A paragraph (`flag`: a warning) or, where there is a header, a table whose first `texts` columns are words."""

    text: str = ""
    flag: bool = False
    header: tuple[str, ...] = ()
    lines: tuple[tuple[object, ...], ...] = ()
    texts: int = 1


def blocks(check: Check) -> list[Block]:
    """What the labels themselves say."""
    found = [Block(f"{check.judge}, rubric or lexicon {check.rubric}.")]
    found += [Block(flag, flag=True) for flag in check.flags]
    lines = tuple((NAMES[letter], count) for letter, count in check.labels.items())
    found.append(Block(header=("label", "labels of X=1"), lines=lines))
    if check.controls:
        rows = tuple((c.kind, c.attribute, c.labelled, c.influential, c.low, c.high) for c in check.controls)
        header = ("control", "attribute", "labelled", "INFLUENTIAL", "share at least", "share at most")
        found += [Block(ABOUT), Block(header=header, lines=rows, texts=2)]
    if check.account:
        found.append(Block(header=("calls and cost", "total"), lines=tuple(check.account.items())))
    return found


def corrected(error: JudgeError, raw: Sequence[Row], fixed: Sequence[Row]) -> list[Block]:
    """Raw scores and those corrected for judge error, side by side.

    Args:
      raw, fixed: score rows without and with the correction; rows undefined in both are left out.
    """
    said = lambda rate: f"{rate.value:.3f} ({rate.n:.0f} labels after their design effect)"
    before = {(r.attribute, r.label, r.score): r for r in raw}
    lines: list[tuple[object, ...]] = []
    for new in fixed:
        old = before[new.attribute, new.label, new.score]
        if old.value is not None or new.value is not None:
            numbers = (x for r in (old, new) for x in (r.value, r.low, r.high))
            lines.append((new.attribute, new.label, new.score, *numbers))
    header = ("attribute", "class", "score", "raw", "low", "high", "corrected", "low", "high")
    text = (
        f"Corrected for the errors of {error.judge} (Rogan–Gladen): sensitivity {said(error.sensitivity)}, "
        f"false-positive rate {said(error.false_positive)}, taken to be the same for every attribute and record. Their "
        "uncertainty is part of the corrected intervals. All other scores of this page are raw."
    )
    return [Block(text), Block(header=header, lines=tuple(lines), texts=3)]
