"""Run as a process of its own with eight fake devices: the same small study on meshes of 1, 2, 4 and 8 of them.

python -m tests.on_devices FOLDER: a run directory per mesh below FOLDER; the last line is what a replay by id gave,
and whether parameters survive conversion from one mesh to another.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import jax
import numpy as np
from jax.sharding import PartitionSpec as P

from experiments import draws, opening, rundir, study
from experiments.configs import base
from jaxmon.arms import X1
from jaxmon.sampling.decode import sample
from jaxmon.sampling.keys import arm_key
from models import mesh
from models.loading import load
from models.mesh import fetch
from tools.convert import convert

MESHES = ("1x1", "1x2", "4x1", "2x4")
CHAIN = 6
SMALL = {"n": 4, "stage1": 4, "per_label": 1, "labels": ("retail",), "attributes": ("fee",), "slots": 8, "shard": 4}


def config(text: str) -> dict:
    made = base.base()
    made.update(SMALL | {"model": "models/organisms/ledger", "mesh": text, "drop_below": -1.0})
    return base.check(made)


def main(folder: Path) -> None:
    for text in MESHES:
        made, root = config(text), folder / text
        with rundir.open_run(root, made), opening.reopened(made, root) as opened:
            drawer = opening.prepare(opened)
            study.sample(opened, drawer)
            study.judge(opened)
            study.count(opened)
    record = opened.task.records[0]  # on the last mesh, one chain again and alone, by its name
    arm = draws.open_arm(drawer, record, X1)
    key = arm_key(drawer.seed, record.id, X1)
    names = (key, np.array([CHAIN, 0], np.int32), np.int32(1), drawer.stop)
    settings = {"sampling": drawer.sampling, "slots": 2, "length": drawer.length}
    chains = sample(
        drawer.extend, drawer.model.params, arm.prefix, *names, vocabulary=drawer.model.vocabulary, **settings
    )
    chains = fetch(chains)
    placed = drawer.model.params["layers"][0]["mlp"]["up_proj"]["kernel"][...].sharding.spec
    tokens = chains.tokens[0, : chains.lengths[0]].tolist()
    said = {"record": record.id, "tokens": tokens, "spec": list(placed)}
    print(json.dumps({"replay": said, "round trip": round_trip(folder / "converted")}))


def round_trip(folder: Path) -> dict[str, bool]:
    """Per dtype: is every parameter the same bits after one device -> eight -> one, through folders?"""
    same = {}
    for dtype in ("float32", "bfloat16"):
        one, eight = folder / f"{dtype}-one", folder / f"{dtype}-eight"
        convert(Path("models/organisms/ledger"), one, dtype, "1x1")
        convert(one, eight, dtype, "2x4")
        before, after = load("models/organisms/ledger", dtype), load(eight, dtype)
        cut = load(one, dtype, mesh.make("2x4")).params
        alike = lambda a, b: a.dtype == b.dtype and np.asarray(a).tobytes() == np.asarray(b).tobytes()
        same[dtype] = all(
            (
                *jax.tree.leaves(jax.tree.map(alike, before.params, after.params)),
                *jax.tree.leaves(jax.tree.map(alike, before.params, cut)),
                before.stop_ids == after.stop_ids,
                before.sampling == after.sampling,
                before.chat == after.chat,
                before.tokenizer.to_str() == after.tokenizer.to_str(),
                cut["layers"][0]["mlp"]["down_proj"]["kernel"][...].sharding.spec == P("model", None),
            )
        )
    return same


if __name__ == "__main__":
    main(Path(sys.argv[1]))
