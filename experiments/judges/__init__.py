"""The judges by name: `lexical` (words), `endpoint` (a server), `model` (a checkpoint of models/)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from experiments.places import is_local
from jaxmon.judging.judge import Judge
from jaxmon.tasks import registry, rubrics

JUDGES = ("lexical", "endpoint", "model")


@contextmanager
def opened(name: str, task: registry.Task, checkpoint: str, replies: Path) -> Iterator[Judge]:
    """A judge, ready: whatever can be known to be wrong is found now, before anything is sampled or paid.

    Args:
      name: one of JUDGES.
      checkpoint: of the `model` judge.
      replies: where an `endpoint` judge keeps its replies, unless the environment names another file.

    Raises:
      ValueError: no such judge, or settings that cannot be used.
    """
    if name == "lexical":
        yield task.judge
    elif name == "endpoint":
        from experiments.judges import settings
        from experiments.judges.endpoint import EndpointJudge

        given = settings.read(os.environ)
        if not (given.replies or is_local(replies)):
            raise ValueError(f"{replies}: replies are kept on a disk; name one in {settings.PREFIX}REPLIES")
        judge = EndpointJudge(rubrics.of(task.name), given, replies)
        try:
            yield judge
        finally:
            judge.close()
    elif name == "model":
        from experiments.judges.local import LocalJudge

        yield LocalJudge(rubrics.of(task.name), checkpoint)
    else:
        raise ValueError(f"no judge {name!r} (have {', '.join(JUDGES)})")
