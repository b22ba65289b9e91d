"""A run that has been opened: its records, its judge, the places of its files, and the model that it asks.

Knows: how a config becomes records, a judge, a model with its settings. Does not know: a study's stages (study.py), who
draws chains (runners/).
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax

from experiments import draws, hosts, judges, rundir, store
from jaxmon import arms
from jaxmon.judging.judge import Judge
from jaxmon.records import Record
from jaxmon.rules import adaptive, staged
from jaxmon.rules.tasks import Cuts
from jaxmon.sampling.sampler import Sampling
from jaxmon.tasks import registry, sources
from models import mesh
from models.loading import load


@dataclasses.dataclass(frozen=True)
class Study:
    """A run that has been opened.

    Attributes:
      root: the run directory; chains and answers are below it.
      out: where labels, counts, scores and report are; `root` but for labels of another judge.
      judge: ready to label.
      studied: record id -> attributes.
    """

    config: Mapping[str, Any]
    root: Path
    out: Path
    task: registry.Task
    studied: Mapping[str, list[str]]
    judge: Judge

    @property
    def plan(self) -> adaptive.Plan:
        c = self.config
        return adaptive.Plan(c["n"], c["tau"], c["stage1"], c["drop_below"])

    @functools.cached_property
    def rule(self) -> staged.Rule:
        return staged.make(self.config["rule"], self.plan)

    @functools.cached_property
    def makers(self) -> store.Makers:
        """What may have made the run's tables; known once the environment is logged."""
        return rundir.makers(self.root)

    @functools.cached_property
    def cuts(self) -> Cuts:
        c = self.config
        return Cuts(self.rule, unit_size(c), c["slots"], c["p10_max"] if c["m1_only"] else None)

    def answers(self, record: Record) -> Path:
        return self.root / "answers" / f"{rundir.name(record.id)}.parquet"

    def labels(self, record: Record) -> Path:
        return self.out / "labels" / f"{rundir.name(record.id)}.parquet"

    def controls(self, record: Record) -> Path:
        return self.out / "controls" / f"{rundir.name(record.id)}.parquet"


def unit_size(config: Mapping[str, Any]) -> int:
    """Most chains of a file (arms.unit_size)."""
    c = config
    return arms.unit_size(c["shard"], c["slots"], c["unit_seconds"], c["chains_per_second"])


@contextmanager
def reopened(config: Mapping[str, Any], root: Path, beside: bool = False) -> Iterator[Study]:
    """A study without its model: its records, and its judge, ready.

    Args:
      beside: labels and what follows from them go below judges/NAME, not into the run itself.

    Raises:
      ValueError: one line on what is wrong with records or judge.
    """
    c = config
    ask = registry.Request(c["source"], c["per_label"], c["data_seed"], tuple(c["menu"]), c["schema"])
    task = registry.load(c["task"], c["labels"], ask)
    studied = registry.studied(task, c["attributes"])
    task = dataclasses.replace(task, records=tuple(r for r in task.records if studied[r.id]))  # no attribute, no arms
    with judges.opened(c["judge"], task, c["judge_model"], root / "replies.jsonl") as judge:
        out = root / "judges" / rundir.name(judge.name) if beside else root
        yield Study(config, root, out, task, studied, judge)


def prepare(study: Study, terms: rundir.Terms = rundir.CAREFUL) -> draws.Drawer:
    """Loads the model under study and logs the environment; raises what `drawer` raises, or RunError."""
    made = drawer_of_every_host(study)
    start = entry(study, made)
    hosts.lead(lambda: log(study, start, terms))
    return made


def log(study: Study, start: Mapping[str, Any], terms: rundir.Terms) -> None:
    """Keeps what a start depends on, and where the data come from, beside the run; raises RunError."""
    rundir.log_environment(study.root, start, terms)
    note = json.dumps(sources.note(study.config["task"]), indent=1)
    rundir.write_text(study.root / "data.json", note + "\n")


def entry(study: Study, made: draws.Drawer) -> dict[str, Any]:
    """This start, for environment.json."""
    found = rundir.environment(made.model.fingerprint, study.config["precision"])
    return found | {"model": made.model.name, "sampling": dataclasses.asdict(made.sampling)}


def drawer_of_every_host(study: Study) -> draws.Drawer:
    """`drawer` on all processes of this worker; raises HostError where they have different files."""
    made: list[draws.Drawer] = []

    def load_here() -> str:
        made.append(drawer(study))
        return made[0].model.fingerprint

    if len(set(hosts.every(load_here))) > 1:
        raise hosts.HostError(f"{study.config['model']}: the hosts have different files under this name")
    return made[0]


def drawer(study: Study) -> draws.Drawer:
    """Loads the model under study; writes nothing.

    Raises:
      ValueError: one line on what is wrong with config or model.
    """
    c = study.config
    jax.config.update("jax_default_matmul_precision", None if c["precision"] == "default" else c["precision"])
    model = load(c["model"], c["dtype"], mesh.make(c["mesh"]), c["int8"])
    chosen = {k: model.sampling[k] if c[k] is None else c[k] for k in ("temperature", "top_k", "top_p", "min_p")}
    sampling = Sampling(
        float(chosen["temperature"]), int(chosen["top_k"]), float(chosen["top_p"]), float(chosen["min_p"])
    )
    made = draws.Drawer(model, c["task"], sampling, c["seed"], c["slots"], unit_size(c), c["length"], c["bucket"])
    fits, said = made.fits()
    if not fits:
        raise ValueError(f"config: {said}")
    return made
