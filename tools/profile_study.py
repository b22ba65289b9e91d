"""Where the time of a study goes: seconds of every stage of a new run, what its stages call taken off, compiling apart.

    python -m tools.profile_study --config=experiments/configs/ledger.py --workdir=runs/profiled

Judging goes on in its own thread beside sampling, so the stages' seconds can add up to more than the run's.

Knows: which functions are stages. Does not know: what they do.
"""

from __future__ import annotations

import functools
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from experiments import cli

COMPILED = "/jax/core/compile/backend_compile_duration"


class Clock:
    """Seconds per stage without those of the stages called from it, and how often each was called."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.calls: Counter[str] = Counter()
        self._inner = threading.local()

    def timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        import jax

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            outside = getattr(self._inner, "seconds", 0.0)
            self._inner.seconds, began = 0.0, time.perf_counter()
            try:
                return jax.block_until_ready(function(*args, **kwargs))
            finally:
                spent = time.perf_counter() - began
                self.seconds[stage] += spent - self._inner.seconds
                self.calls[stage] += 1
                self._inner.seconds = outside + spent

        return call


def stages() -> list[tuple[str, ModuleType, str]]:
    """What a stage is called, and the module and name by which a run reaches its function."""
    from experiments import draws, opening, store, study

    return [
        ("load the model", opening, "load"),
        ("read prompts", draws, "read"),
        ("read prompts", draws, "branch"),
        ("no-CoT answers", draws, "_answers"),
        ("draw chains, one arm at a time", draws, "sample"),
        ("draw chains, several arms at once", draws, "sample_arms"),
        ("chains as text, outcomes", draws, "_table"),
        ("write tables", draws, "save"),
        ("write tables", store, "save"),
        ("read tables back", draws, "load"),
        ("read tables back", store, "load"),
        ("judge", study, "judge_record"),
        ("count", study, "count"),
        ("scores, bootstrap, report", study, "write_scores"),
        ("list directories", draws, "missing"),
    ]


def profile(config: dict[str, Any], root: Path) -> list[str]:
    """Runs a study with its stages timed; the table as lines."""
    import jax

    from experiments import study

    clock, compiled = Clock(), [0.0]

    def listen(event: str, duration_secs: float, **_: str | int) -> None:
        compiled[0] += duration_secs * (event == COMPILED)

    jax.monitoring.register_event_duration_secs_listener(listen)
    for stage, module, name in stages():
        setattr(module, name, clock.timed(stage, getattr(module, name)))
    began = time.perf_counter()
    study.run(config, root)
    whole = time.perf_counter() - began
    rows = [
        (stage, seconds, f"{clock.calls[stage]} calls")
        for stage, seconds in sorted(clock.seconds.items(), key=lambda item: -item[1])
    ]
    rows += [("the run", whole, ""), ("of it compiling, within the stages above", compiled[0], "")]
    return [f"{stage:42} {seconds:9.2f} s {100 * seconds / whole:6.1f} %  {calls}" for stage, seconds, calls in rows]


def main(argv: list[str]) -> None:
    config, workdir = cli.run_flags(argv)
    if (workdir / "chains").exists():
        raise ValueError(f"{workdir} has chains already: a profile wants a new run")
    print(*profile(config, workdir), sep="\n")


if __name__ == "__main__":
    cli.define_run_flags()
    cli.start(main)
