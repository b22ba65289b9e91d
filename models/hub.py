"""Checkpoints by their name on the Hugging Face hub, where there is a network.

Knows: which names mean the hub, and which files of a repository are read (never code, never pickled weights). Does not
know: formats, families.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from huggingface_hub import snapshot_download

from models.checkpoint import CheckpointError

_NAME = re.compile(r"(?P<repository>\w[\w.-]*/\w[\w.-]*?)(?:@(?P<revision>[\w./-]+))?")
FILES = ("*.json", "*.jinja", "*.safetensors")


def is_name(path: str) -> bool:
    """Whether a path that is not there reads as OWNER/NAME or OWNER/NAME@REVISION, and not as a place on this disk."""
    return bool(_NAME.fullmatch(path)) and not path.endswith(".gguf") and not Path(path).parent.exists()


def fetch(name: str, download: Callable[..., str] = snapshot_download) -> tuple[Path, str]:
    """The folder with a repository's files, downloaded once and then taken from the hub's cache; and its plain name.

    Raises:
      CheckpointError: it cannot be had, in one line with what to do instead.
    """
    found = _NAME.fullmatch(name)
    assert found is not None
    try:
        folder = Path(download(found["repository"], revision=found["revision"], allow_patterns=list(FILES)))
    except Exception as error:  # the hub's client raises errors of several libraries, by what has failed
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise CheckpointError(
            f"{name}: no such folder here, and the Hugging Face hub did not give it "
            f"({type(error).__name__}: {reason}); "
            f"where there is a network, `hf download {found['repository']} --local-dir DIR` gets it: then give DIR"
        ) from None
    return folder, found["repository"].split("/")[1]
