"""A judge's error rates as a small JSON file: written by experiments.judge_agreement, read where scores are corrected.

    {"judge": NAME, "rubric": VERSION, "reference": TEXT,
     "sensitivity": {"k": K, "n": N, "labels": L}, "false_positive": {"k": K, "n": N, "labels": L}}

k of n labels after the design effect (`jaxmon.estimation.judge_error`), `labels` before it.
"""

from __future__ import annotations

import json
from pathlib import Path

from experiments import rundir
from jaxmon.estimation.judge_error import JudgeError, Rate
from jaxmon.judging.judge import Judge

RATES = ("sensitivity", "false_positive")


def write(path: Path, error: JudgeError, labels: tuple[int, int], reference: str) -> None:
    """Writes the file, whole or not at all; `labels`: numbers before the design effect, in the order of RATES."""
    rates = {
        name: {"k": rate.k, "n": rate.n, "labels": count}
        for name, rate, count in zip(RATES, (error.sensitivity, error.false_positive), labels, strict=True)
    }
    whole = {"judge": error.judge, "rubric": error.rubric, "reference": reference, **rates}
    rundir.write_text(path, json.dumps(whole, indent=1) + "\n")


def read(path: Path, judge: Judge | None = None) -> JudgeError:
    """Reads the rates back.

    Args:
      judge: whose labels they are for; None does not ask.
    Raises:
      ValueError: no such file of rates, impossible rates, or another judge's.
    """
    try:
        found = json.loads(path.read_text())
        rates = [Rate(float(found[name]["k"]), float(found[name]["n"])) for name in RATES]
        error = JudgeError(str(found["judge"]), str(found["rubric"]), *rates)
    except (KeyError, TypeError, ValueError) as fault:
        raise ValueError(f"{path}: no error rates of a judge ({type(fault).__name__}: {fault})") from None
    if judge is not None and (error.judge, error.rubric) != (judge.name, judge.version):
        raise ValueError(
            f"{path} holds the error rates of {error.judge} ({error.rubric}), the labels are of {judge.name} "
            f"({judge.version})"
        )
    return error
