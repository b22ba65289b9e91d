"""Flags and config files that cannot be used: one line that says which, exit code 1, before anything is made."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

GOOD = "from experiments.configs.base import base\n\n\ndef get_config():\n    c = base()\n    return c\n"


@pytest.mark.parametrize(
    ("text", "flags", "words"),
    [
        (GOOD, ["--config.temprature=1"], "unknown field 'temprature' Did you mean"),
        (GOOD, ["--config.zz=1"], "unknown field 'zz'\n"),
        (GOOD, ["--config.n=abc"], "flag --config.n=abc: invalid literal for int()"),
        (GOOD, ["--workdri=x"], "Unknown command line flag 'workdri'"),
        (GOOD.replace("c = base()", "c = base("), [], "was never closed (config.py, line 5)"),
        (GOOD.replace("c = base()", "c = bass()"), [], "config.py:5: NameError: name 'bass' is not defined"),
        (GOOD.replace("c = base()", "c = base()\n    c.n = 'four'"), [], "Could not override field 'n'"),
        (GOOD.replace("get_config", "config"), [], "has no attribute 'get_config'"),
        (GOOD.replace("return c", "return {}"), [], "get_config() returned dict"),
        (None, [], "No such file or directory"),
    ],
)
def test_one_line(text: str | None, flags: list[str], words: str, tmp_path: Path):
    file = tmp_path / "config.py"
    if text is not None:
        file.write_text(text)
    command = [sys.executable, "-m", "experiments.monitorability", f"--config={file}", f"--workdir={tmp_path / 'run'}"]
    done = subprocess.run([*command, *flags], cwd=ROOT, capture_output=True, text=True, env=os.environ)
    assert done.returncode == 1
    assert words in done.stderr
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()
