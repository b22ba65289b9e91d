"""A finished run under another judge: its chains are read, labelled, counted and scored into RUN/judges/NAME.

Knows: run directories, stages. Does not know: flags, how a judge labels.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ml_collections import config_dict

from experiments import error_file, opening, rundir, study
from experiments.configs import base

FINISHED = ("config.json", "environment.json", "answers", "chains", "counts.parquet")


def relabel(root: Path, chosen: Mapping[str, Any], rates: str = "", takeover: bool = False) -> list[str]:
    """Labels and scores; returns the lines to print.

    Args:
      root: a finished run.
      chosen: the config's fields about the judge: judge, judge_model, judge_most, judge_controls.
      rates: a file of error rates to correct for (error_file.py); "" for none.
      takeover: see `locks.Lock`.

    Raises:
      ValueError: no finished run, no such judge, or error rates of another judge.
    """
    if missing := [name for name in FINISHED if not (root / name).exists()]:
        raise ValueError(f"{root} is no finished run: it lacks {', '.join(missing)}")
    with rundir.lock(root, takeover):
        stored = json.loads((root / "config.json").read_text())
        config = base.check(config_dict.ConfigDict(base.base().to_dict() | stored | chosen))
        with opening.reopened(config, root, beside=True) as found:
            error = error_file.read(Path(rates), found.judge) if rates else None
            kept = {**chosen, "name": found.judge.name, "version": found.judge.version}
            rundir.write_text(found.out / "judge.json", json.dumps(kept, indent=1) + "\n")
            study.judge(found)
            lines = study.score(found, study.count(found), error)
    return [*lines, f"report: {found.out / 'report.html'}"]
