"""A record's prompts share what they have in common, its no-CoT answers are asked together: nothing else changes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments import draws, opening
from experiments.configs import base
from jaxmon.arms import X1, arms
from jaxmon.sampling import decode
from tests.conftest import ROOT


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory):
    made = base.base()
    made.update({"model": str(ROOT / "models/organisms/ledger"), "per_label": 1, "slots": 8, "bucket": 8})
    with opening.reopened(base.check(made), Path(tmp_path_factory.mktemp("run"))) as found:
        yield found, opening.drawer(found)


def test_arms_opened_beside_x1_are_those_opened_alone(opened, monkeypatch: pytest.MonkeyPatch):
    """Prompts read after what they share with X = 1: same layout, same answers, same chains, fewer tokens read."""
    found, drawer = opened
    record = found.task.records[0]
    shown = arms(record, found.studied[record.id])
    alone = {name: draws.open_arm(drawer, r, name) for name, r in shown.items()}
    read: list[int] = []
    branch = decode.branch
    monkeypatch.setattr(draws, "branch", lambda *a: read.append(a[4].shape[1]) or branch(*a))
    opener = draws.opener(drawer, shown)
    beside = {name: opener(name) for name in reversed(shown)}
    assert len(read) > 1
    assert max(read) < alone[X1].prefix.context[0].slots
    for name, arm in alone.items():
        assert opener(name) is beside[name]
        np.testing.assert_allclose(beside[name].prefix.logits, arm.prefix.logits, atol=2e-4, rtol=0)
        assert beside[name].prefix.context[0].slots == arm.prefix.context[0].slots
    for one, other in ((draws.Shard(a, 0, 24), draws.Shard(beside[n], 0, 24)) for n, a in alone.items()):
        assert draws.draw(drawer, [one])[0].equals(draws.draw(drawer, [other])[0])


def test_no_cot_answers_asked_together_are_those_asked_one_by_one(opened):
    found, drawer = opened
    record = found.task.records[0]
    each = [draws.open_arm(drawer, r, name) for name, r in arms(record, found.studied[record.id]).items()]
    alone = [draws.no_cot(drawer, [arm])[0] for arm in each]
    for many in (each, (each * 2)[:11]):  # of one batch, and of two
        for one, other in zip(alone * 2, draws.no_cot(drawer, many), strict=False):
            assert (one["record"], one["arm"]) == (other["record"], other["arm"])
            np.testing.assert_allclose(other["probabilities"], one["probabilities"], atol=1e-5, rtol=0)
            assert other["target"] == pytest.approx(one["target"], abs=1e-5)
            assert other["mass"] == pytest.approx(one["mass"], abs=1e-5)
