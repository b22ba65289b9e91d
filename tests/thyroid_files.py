"""The files of the thyroid tests: a small invented one, and the real one where it is there."""

from pathlib import Path

import pytest

from jaxmon.tasks.thyroid import raw

SMALL = Path(__file__).parent / "data" / "thyroid_small.data"


def real_file(data_root: Path) -> Path:
    path = data_root / "thyroid" / raw.FILE
    if not path.is_file():
        pytest.skip(f"{raw.FILE} is absent from the data folder")
    return path
