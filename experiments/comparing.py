"""The work of experiments.judge_agreement: labels of several raters side by side, and what is said of them.

Knows: gold files, folders of labels, judges. Does not know: flags, coefficients (`jaxmon.judging.agreement`).
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments import error_file, gold_file, judges, labelling, rundir, store
from jaxmon.estimation.judge_error import JudgeError, clustered
from jaxmon.judging.agreement import COEFFICIENTS, LABELS, Agreement, agreement, confusion
from jaxmon.tasks import registry

Item = tuple[str, str]  # chain, attribute
Ratings = Mapping[Item, str]  # a letter N M I ?
REFERENCE = "reference"


def compare_gold(path: Path, names: Sequence[str], checkpoint: str, limit: int, out: Path) -> list[str]:
    """Judges against reference labels and each other; writes agreement.json and an error file per judge.

    Raises:
      ValueError: no such judge or task, a file that cannot be used.
    """
    chains = gold_file.read(path)
    chains = chains[: limit or len(chains)]
    raters: dict[str, Ratings] = {
        REFERENCE: {(g.id, name): label.value for g in chains for name, label in g.labels.items()}
    }
    versions: dict[str, str] = {}
    for name in names:
        said: dict[Item, str] = {}
        for task in dict.fromkeys(g.task for g in chains):
            with judges.opened(name, registry.without_records(task), checkpoint, out / "replies.jsonl") as judge:
                for g in (g for g in chains if g.task == task):
                    (labels,) = judge.label_chains(g.record, [g.thought])
                    said |= {(g.id, attribute): label.value for attribute, label in labels.items()}
            raters[judge.name], versions[judge.name] = said, judge.version
    lines = _compare(raters, out)
    for name, version in versions.items():
        lines += _errors(name, version, raters, path.name, out)
    return lines


def compare_runs(folders: Sequence[Path], out: Path) -> list[str]:
    """Folders of labels of the same chains, compared with each other; writes agreement.json.

    Raises:
      ValueError: fewer than two folders, or no chain in common.
    """
    if len(folders) < 2:
        raise ValueError("--runs needs two folders of labels or more")
    raters: dict[str, Ratings] = {}
    for folder in folders:
        files = store.listing(folder).values()
        if not files:
            raise ValueError(f"{folder}: no files of labels")
        said: dict[Item, str] = {}
        for file in files:
            for row in store.load(file, labelling.LABELS).to_pylist():
                chain = f"{row['record']} {row['chain']}"
                said |= {(chain, str(i)): letter for i, letter in enumerate(row["pattern"])}
                name = row["judge"]
        if name in raters:
            raise ValueError(f"{folder}: a second folder of labels of {name}")
        raters[name] = said
    return _compare(raters, out)


def _compare(raters: Mapping[str, Ratings], out: Path) -> list[str]:
    """The table of every pair of raters and of all together, in both views of a label."""
    common = sorted(set.intersection(*(set(r) for r in raters.values())))
    if not common:
        raise ValueError("the raters have no label in common")
    views = {"N M I": LABELS, "I or not": ""}
    groups = list(itertools.combinations(raters, 2)) + ([tuple(raters)] if len(raters) > 2 else [])
    rows: list[dict[str, Any]] = []
    wide = max(44, *(len(" / ".join(group)) for group in groups))
    lines = [f"{'raters':{wide}} {'labels':9} {'n':>5} {'?':>4} " + " ".join(f"{c:^20}" for c in COEFFICIENTS)]
    notes: list[str] = []
    for group, (view, letters) in itertools.product(groups, views.items()):
        readable = [item for item in common if all(raters[r][item] != "?" for r in group)]
        if not readable:
            raise ValueError(f"{' and '.join(group)}: no label that all of them could read")
        table = np.array([[_number(raters[r][item], letters) for r in group] for item in readable])
        found = agreement(table, [chain for chain, _ in readable], len(letters) or 2)
        lost = len(common) - len(readable)
        rows.append({"raters": group, "view": view, "unreadable": lost, **dataclasses.asdict(found)})
        lines.append(f"{' / '.join(group):{wide}} {view:9} {found.items:5} {lost:4} " + _shown(found))
        notes += [f"{' / '.join(group)}, {view}: {flag}" for flag in found.flags]
    first, *others = raters
    for other in others:
        down, across = (np.array([LABELS.find(raters[r][item]) for item in common]) for r in (first, other))
        if down.min() >= 0:
            lines += ["", *_confusion(first, other, confusion(down, across))]
    rundir.write_text(out / "agreement.json", json.dumps(rows, indent=1) + "\n")
    return [*lines, *notes]


def _number(letter: str, letters: str) -> int:
    return letters.index(letter) if letters else int(letter == "I")


def _shown(found: Agreement) -> str:
    cells = []
    for name in COEFFICIENTS:
        e = found.coefficients[name]
        interval = "" if e.low is None else f" [{e.low:.2f}, {e.high:.2f}]"
        cells.append(f"{'–' if e.value is None else f'{e.value:.3f}{interval}':^20}")
    return " ".join(cells)


def _confusion(first: str, other: str, table: np.ndarray) -> list[str]:
    head = f"{first} in rows, {other} in columns:"
    return [head, "      " + "".join(f"{c:>6}" for c in LABELS + "?")] + [
        f"{letter:>6}" + "".join(f"{n:6}" for n in row) for letter, row in zip(LABELS, table, strict=True)
    ]


def _errors(name: str, version: str, raters: Mapping[str, Ratings], reference: str, out: Path) -> list[str]:
    """Sensitivity and false-positive rate of one judge, printed and written; unreadable labels are left out."""
    read = [item for item, letter in raters[name].items() if letter != "?"]
    chains = sorted({chain for chain, _ in read})
    counts = np.zeros((2, 2, len(chains)), np.int64)  # truly I or not, said I or not, chain
    for item in read:
        truly, said = raters[REFERENCE][item] == "I", raters[name][item] == "I"
        counts[int(truly), int(said), chains.index(item[0])] += 1
    try:
        rates = [clustered(c[1], c.sum(0)) for c in (counts[1], counts[0])]
        error = JudgeError(name, version, *rates)
    except ValueError as fault:
        return [f"{name}: no error rates ({fault})"]
    sizes = (int(counts[1].sum()), int(counts[0].sum()))
    path = out / f"error-{rundir.name(name)}.json"
    error_file.write(path, error, sizes, reference)
    return [
        f"{name}: sensitivity {rates[0].value:.3f} of {sizes[0]}, false-positive rate {rates[1].value:.3f} of "
        f"{sizes[1]} (design effects {sizes[0] / rates[0].n:.2f}, {sizes[1] / rates[1].n:.2f}); {path}"
    ]
