"""Exact operating characteristics of a sampling rule (staged.py): what it discards, and how many chains it draws.

K1 and K0 are independent binomials. Given K1, the X=0 arm is a Markov chain over looks whose state is K0; its law is
carried from look to look by the exact binomial of the chains in between; what falls beyond `most` is dropped, what
falls up to `enough` is settled.
Summed over K1, whose law is that of a record which was not stopped. Nothing is simulated; values of K1 rarer than 1e-13
are left out.

Knows: rule, tau, p11, p01 -> probabilities and expectations. Does not know: chains, files.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import signal, stats

from jaxmon.rules.staged import Rule
from jaxmon.statistics.exact import threshold

TAIL = 1e-13


class Operation(NamedTuple):
    """What a rule does to the pairs of a record with p11, one entry per pair.

    discard: P(the pair gets no estimation batch), the stop of its record included; [pairs].
    passed: P(it has one and TE^ > tau in its selection batch), the filter of §3; [pairs].
    stopped: P(the record stops after `first` chains).
    chains0: expected chains of each X=0 arm, [pairs].   chains1: of the X=1 arm.
    """

    discard: np.ndarray
    passed: np.ndarray
    stopped: float
    chains0: np.ndarray
    chains1: float


def operate(rule: Rule, p11: float, p01: np.ndarray, tau: float = 0.08) -> Operation:
    """Exact figures for a record whose pairs have X=0 probabilities p01, float [pairs]."""
    k1, weight = _law_of_k1(rule, p11)
    stopped = float(1 - weight.sum())
    kept, passed, chains = _walk(rule, tau, k1, np.asarray(p01, float))  # given K1, [pairs, K1]
    none = np.prod(1 - kept, 0)  # X=0 arms are independent given K1
    chains1 = 2 * rule.n if rule.always else rule.first * stopped + weight @ (rule.n + rule.n * (1 - none))
    return Operation(1 - kept @ weight, passed @ weight, stopped, chains @ weight, float(chains1))


def worst_discard(rule: Rule, effect: float, grid: int = 41) -> tuple[float, float]:
    """sup over p01 of the discard probability at TE = effect, on a grid of p01; (probability, p01)."""
    where = np.linspace(0, 1 - effect, grid)
    values = [float(operate(rule, p + effect, np.array([p])).discard[0]) for p in where]
    best = int(np.argmax(values))
    return values[best], float(where[best])


def _law_of_k1(rule: Rule, p11: float) -> tuple[np.ndarray, np.ndarray]:
    """Values of K1 and P(K1 = k, the record goes on)."""
    early = stats.binom.pmf(np.arange(rule.first + 1), rule.first, p11)
    early[: rule.least] = 0
    late = stats.binom.pmf(np.arange(rule.n - rule.first + 1), rule.n - rule.first, p11)
    law = np.clip(signal.convolve(early, late), 0, None)
    k1 = np.flatnonzero(law > TAIL)
    return k1, law[k1]


def _walk(rule: Rule, tau: float, k1: np.ndarray, p01: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Given each K1: P(a pair is kept), P(kept and past the filter), and its expected chains, [pairs, K1] each."""
    kept, passed, chains = np.zeros((3, len(p01), len(k1)))
    looks = dict(zip(rule.looks, zip(rule.most[:, k1], rule.enough[:, k1], strict=True), strict=True))
    everything = np.full(len(k1), rule.n)
    looks.setdefault(rule.n, (everything, everything * 0 - 1))  # the end of the selection batch, where nothing is asked
    for i, p in enumerate(p01):
        state = np.ones((len(k1), 1))  # P(K0 = k, still going on)
        drawn = 0
        for m, (most, enough) in looks.items():
            chains[i] += (m - drawn) * state.sum(1)
            step = stats.binom.pmf(np.arange(m - drawn + 1), m - drawn, p)
            state = np.clip(signal.fftconvolve(state, step[None], axes=1), 0, None)
            k0 = np.arange(m + 1)[None]
            state[k0 > most[:, None]] = 0
            ends = k0 <= (rule.n if m == rule.n else enough[:, None])
            m1, m0, need = threshold(tau, rule.n, m)
            kept[i] += np.where(ends, state, 0).sum(1)
            passed[i] += np.where(ends & (k1[:, None] * m1 - k0 * m0 >= need), state, 0).sum(1)
            state = np.where(ends, 0.0, state)
            drawn = m
        chains[i] += rule.n * kept[i]
    return kept, passed, chains
