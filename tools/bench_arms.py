"""What a record's arms cost beside their chains: prompts that share their beginning, no-CoT answers asked together.

The record is made up: sentences of like length, so that a removed one lies anywhere in the prompt.

Knows: draws.py. Does not know: chains.
"""

from __future__ import annotations

from typing import Any

from experiments import draws
from jaxmon.arms import arms
from jaxmon.records import Attribute, Option, Record
from jaxmon.sampling.sampler import Sampling
from models.loading import Model
from tools.bench_timing import Figure, medians

WORDS = "The {} committee met on Tuesday, heard the reports of all members and put the question off until spring."
ORDINALS = [
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
]


def arms_of_a_record(model: Model, slots: int, length: int, bucket: int, repeats: int) -> list[Figure]:
    """Seconds to read a record's prompts and to answer them without a chain, each way."""
    names = [f"the {word}" for word in ORDINALS]
    said = tuple(Attribute(n, WORDS.format(word)) for n, word in zip(names, ORDINALS, strict=True))
    codes = tuple(Option(code) for code in "ABCD")
    record = Record("made up", "A", "A", "", said, "Which committee will meet again?", codes)
    drawer = draws.Drawer(model, "bench", Sampling(), 0, slots, slots, length, bucket)
    shown = arms(record, names)

    def whole() -> list[draws.Arm]:
        return [draws.open_arm(drawer, r, name) for name, r in shown.items()]

    def shared() -> list[draws.Arm]:
        opened = draws.opener(drawer, shown)
        return [opened(name) for name in shown]

    read = whole()
    work = {
        "whole": lambda: _states(whole()),
        "shared": lambda: _states(shared()),
        "each": lambda: [draws.no_cot(drawer, [arm]) for arm in read],
        "together": lambda: draws.no_cot(drawer, read),
    }
    seconds = medians(work, repeats)
    what = f"{len(shown)} arms of {len(read[0].prompt.tokens)} tokens"
    return [
        Figure(f"prompts read whole, {what}", seconds["whole"], "s"),
        Figure("what they share with X = 1 read once", seconds["shared"], "s"),
        Figure("whole / shared", seconds["whole"] / seconds["shared"], "times"),
        Figure("no-CoT answers, one arm after the other", seconds["each"], "s"),
        Figure("all arms together", seconds["together"], "s"),
        Figure("each / together", seconds["each"] / seconds["together"], "times"),
    ]


def _states(opened: list[draws.Arm]) -> list[Any]:
    return [arm.prefix.logits for arm in opened]
