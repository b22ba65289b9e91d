"""The course of one record under a sampling rule, as a pure generator: it asks for chains, hears counts, and ends.

    going = course(["fee", "tip"], rule)
    step = next(going)                  # Step({"x1": range(0, 1000), "x0:fee": range(0, 200), ...}, spared=0)
    step = going.send({"x1": 512, "x0:fee": 80, ...})

A step is a barrier: the next one depends on its counts. What no count decides is asked for as early as possible: where
the rule cannot stop a record's X = 1 arm, its selection batch and the first look of the X = 0 arms are one step; the
estimation batches are one step.

Knows: a rule, arms, ids, counts. Does not know: how or where chains are drawn, files, time.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import NamedTuple

from jaxmon.arms import X1, x0
from jaxmon.rules import staged

Counts = Mapping[str, int]


class Step(NamedTuple):
    """What is asked for next.

    Attributes:
      wanted: arm -> chain ids; a range may be empty.
      spared: chains of the full 2n per arm that the last counts have ruled out.
    """

    wanted: Mapping[str, range]
    spared: int = 0


def course(attributes: Sequence[str], rule: staged.Rule, ruled_out: bool = False) -> Generator[Step, Counts, None]:
    """The steps of one record, whatever its chains turn out to be; `send` takes target answers by arm, of that step.

    All steps' chains and all that are spared sum to 2n per arm. Chains are named, so the same ids are asked for in
    whatever order the answers of other records come.

    Args:
      attributes: those under study.
      ruled_out: the record stops after its first X = 1 chains (`rule.first`), whatever they say.
    """
    n, k1, first = rule.n, 0, 0
    k0 = dict.fromkeys(map(x0, attributes), 0)
    if rule.least or ruled_out:
        first, k1 = rule.first, (yield Step({X1: range(rule.first)}))[X1]
        if ruled_out or staged.stops(k1, rule):
            yield Step({}, 2 * n * (1 + len(k0)) - first)
            return
    one, spared, drawn = {X1: range(first, n)}, 0, 0
    rest: dict[str, range] = {}
    for look, m in enumerate(rule.looks):
        hits = yield Step(one | dict.fromkeys(k0, range(drawn, m)), spared)
        k1, one = k1 + hits.get(X1, 0), {}
        k0 = {name: k + hits[name] for name, k in k0.items()}
        said = {name: staged.decide(k1, k, look, rule) for name, k in k0.items()}
        settled = [name for name, word in said.items() if word == "settle"]
        spared = list(said.values()).count("drop") * (2 * n - m) + len(settled) * (n - m)
        rest |= dict.fromkeys(settled, range(n, 2 * n))
        drawn, k0 = m, {name: k for name, k in k0.items() if said[name] == "go on"}
    rest |= dict.fromkeys(k0, range(drawn, 2 * n))
    if rule.always or rest:
        rest[X1] = range(one[X1].start if one else n, 2 * n)
    else:
        spared += n
    yield Step(rest, spared)
