"""The cost table: exact where it can be, and after a run equal to what lies in the run directory."""

import jax
import numpy as np
import pyarrow.parquet as pq
import pytest

from experiments import opening, planning, study
from experiments.configs import base
from jaxmon.statistics import exact
from tests.conftest import ROOT
from tests.test_monitorability import SMALL


def config(**changes):
    made = base.base()
    made.update(SMALL | {"model": str(ROOT / "models/organisms/ledger")} | changes)
    return base.check(made)


def test_before_and_after(tmp_path):
    made = config(replicates=2, n=6, stage1=3, per_label=1)
    study.run(made, tmp_path)
    with opening.reopened(made, tmp_path) as opened:
        drawer = opening.drawer(opened)
    pairs = sum(map(len, opened.studied.values()))
    records = len(opened.task.records)
    lines, calls = planning.expected(opened, drawer, planning.Population(p11=0.5, effect=0.25, effects=0), 20.0)
    keep = exact.pass_probability(0.5, 0.5, 6, 3, 0.0, strict=False)
    assert lines["X=1 select"].chains == lines["X=1 estimate"].chains == pytest.approx(6 * records)
    assert lines["X=0 select"].chains == pytest.approx(pairs * (3 + 3 * keep))
    assert lines["X=0 estimate"].chains == pytest.approx(pairs * 6 * keep)
    assert lines["X=0 estimate"].tokens == pytest.approx(20 * lines["X=0 estimate"].chains)
    assert calls == pytest.approx(3 * records)
    # a decoder's forward pass costs about two FLOPs per weight and token
    weights = sum(x.size for x in jax.tree.leaves(drawer.model.params))
    assert planning.flops(drawer.model, 10, 0) == 20 * weights
    assert planning.flops(drawer.model, 10, 7) == 20 * weights + 10 * 4 * 2 * 4 * 16 * 7

    spent, labels = planning.spent(opened, drawer)
    shards = [pq.read_table(p, partitioning=None) for p in tmp_path.glob("chains/*/*.parquet")]
    assert sum(line.chains for line in spent.values()) == sum(t.num_rows for t in shards)
    tokens = sum(spent[s].tokens for s in planning.STAGES[2:])
    assert tokens == sum(len(x) for t in shards for x in t.column("tokens"))
    table = pq.read_table(tmp_path / "counts.parquet").to_pylist()
    assert spent["X=0 estimate"].chains == sum(r["n0"] for r in table if r["batch"] == "estimate")
    assert labels == sum({r["record"]: r["k1"] for r in table if r["batch"] == "estimate"}.values())
    held = planning.memory(opened, drawer, 40)
    assert held["weights"] == 4 * weights
    assert held["chains in flight"] == SMALL["slots"] * made["length"] * 2 * 2 * 2 * 16 * 4
    assert np.isfinite(planning.wall_hours(tmp_path))
    assert len(planning.text(spent, labels, 1000.0, 0.01, "spent")) == 10


def test_units():
    made = config(n=1000, stage1=200, shard=500, slots=200)
    wish = "--config.unit_seconds=60 --config.chains_per_second=5"
    assert planning.units(made, 5.0) == f"units: 500 chains, 100 s of one worker; with {wish}: 300 chains"
