"""The file of paid replies under kills and damage, and the settings that come from the environment."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from experiments.judges import settings
from experiments.judges.replies import Replies, Reply
from tests.conftest import ROOT
from tests.judge_server import KEY, running


def fill(path: Path, count: int) -> list[Reply]:
    """`count` settled replies; keys k0, k1, ..."""
    kept, made = Replies(path), []
    for i in range(count):
        made.append(Reply(f"reply {i} — ü\n{{}}", "stop", 10 + i, i, 0.5))
        kept.settle(kept.send(2.0, 1e9), f"k{i}", made[-1])
    kept.close()
    return made


def test_h52_a_kill_at_every_byte_of_the_last_event_loses_that_event_alone(tmp_path):
    made = fill(tmp_path / "whole", 3)
    data = (tmp_path / "whole").read_bytes()
    last = data.rstrip(b"\n").rfind(b"\n") + 1
    for end in range(last, len(data) + 1):
        path = tmp_path / "torn"
        path.write_bytes(data[:end])
        for again in range(2):  # the second opening reads what the first has written behind the torn line
            kept = Replies(path)
            whole = end >= len(data) - 1  # without its line break the last line is whole too
            assert [kept.get(f"k{i}") for i in range(2)] == made[:2]
            assert kept.get("k2") == (made[2] if whole else None)
            assert kept.damaged == (not whole and end > last)
            assert kept.spent == 1.0 + (0.5 if whole else 2.0) + 0.5 * again
            if not again:
                kept.settle(kept.send(2.0, 1e9), "new", made[0])
            assert kept.get("new") == made[0]
            kept.close()


def test_h52_a_damaged_middle_costs_its_line_alone(tmp_path):
    path = tmp_path / "replies"
    made = fill(path, 4)
    lines = path.read_bytes().split(b"\n")
    lines[3] = lines[3].replace(b"reply 1", b"reply 9")
    path.write_bytes(b"\n".join(lines))
    kept = Replies(path)
    assert [kept.get(f"k{i}") for i in range(4)] == [made[0], None, made[2], made[3]]
    assert (kept.damaged, kept.account()["damaged lines"]) == (1, 1)
    assert kept.spent == 3 * 0.5 + 2.0  # what became of the attempt is not known: it may have been paid


def test_one_process_at_a_time(tmp_path):
    kept = Replies(tmp_path / "replies")
    with pytest.raises(ValueError, match="replies is in use by another process"):
        Replies(tmp_path / "replies")
    kept.close()
    Replies(tmp_path / "replies").close()


def test_a_full_disk_names_the_file_and_tears_one_line_at_most(tmp_path, monkeypatch):
    kept = Replies(tmp_path / "replies")
    kept.settle(kept.send(1.0, 9), "a", Reply("one", "stop"))
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:20]))
    with pytest.raises(OSError, match="No space left") as caught:
        kept.send(1.0, 9)
    assert caught.value.filename == str(tmp_path / "replies")
    monkeypatch.undo()
    kept.settle(kept.send(1.0, 9), "b", Reply("two", "stop"))
    kept.close()
    again = Replies(tmp_path / "replies")
    assert (again.get("a"), again.get("b"), again.damaged) == (Reply("one", "stop"), Reply("two", "stop"), 1)


PROGRAM = """
import os, sys
from pathlib import Path
from experiments.judges import settings
from experiments.judges.endpoint import EndpointJudge
from jaxmon.tasks import rubrics
from tests.test_endpoint import BOOK, CHAINS
judge = EndpointJudge(rubrics.of("ledger"), settings.read(os.environ), Path(sys.argv[1]))
judge.label_chains(BOOK, CHAINS)
"""


def test_a_killed_job_goes_on_and_pays_for_no_label_twice(tmp_path):
    """SIGKILL in mid-flight: what had come back is not asked for again; what was in flight is counted as maybe paid."""
    path = tmp_path / "replies"
    with running() as stub:
        stub.delay = 0.05
        given = {"BASE_URL": stub.url, "MODEL": "m", "API_KEY": KEY, "PRICES": "1,2", "CONCURRENCY": "4"}
        environment = os.environ | {settings.PREFIX + k: v for k, v in given.items()}
        start = lambda: subprocess.Popen([sys.executable, "-c", PROGRAM, str(path)], cwd=ROOT, env=environment)
        process = start()
        while not path.exists() or path.read_bytes().count(b'"reply"') < 9:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        kept = Replies(path)
        before = kept.account()
        kept.close()
        first = stub.asked.copy()
        assert 9 <= before["replies"] < 27
        assert start().wait() == 0
        kept = Replies(path)
        after = kept.account()
    assert after["replies"] == 27
    assert after["lost (may have been paid)"] == before["lost (may have been paid)"] <= 4
    twice = sum(n - 1 for n in stub.asked.values())
    assert twice <= before["lost (may have been paid)"]  # only calls whose reply had not come back
    assert after["attempts"] - after["lost (may have been paid)"] == 27
    assert first.total() >= before["replies"]
    assert KEY.encode() not in path.read_bytes()


GOOD = {"BASE_URL": "https://judge.example/v1", "MODEL": "m", "API_KEY": KEY, "PRICES": "0.3,1.1"}


def test_settings_read():
    found = settings.read({settings.PREFIX + k: v for k, v in GOOD.items()} | {"OPENAI_API_KEY": "not this one"})
    assert found == settings.Settings("https://judge.example/v1", "m", KEY, 0.3e-6, 1.1e-6)
    assert KEY not in repr(found)
    local = settings.read(
        {settings.PREFIX + k: v for k, v in (("BASE_URL", "http://localhost:8000/v1"), ("MODEL", "m"))}
    )
    assert (local.api_key, local.input_price) == ("", 0)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"BASE_URL": ""}, "needs JAXMON_JUDGE_BASE_URL"),
        ({"BASE_URL": "", "MODEL": ""}, "needs JAXMON_JUDGE_BASE_URL and JAXMON_JUDGE_MODEL"),
        ({"BASE_URL": "ftp://x/v1"}, "http or https"),
        ({"BASE_URL": "https://x/v1?key=" + KEY}, "without a query"),
        ({"BASE_URL": f"https://me:{KEY}@x/v1"}, "holds a password"),
        ({"BASE_URL": "http://[::1/v1"}, "http or https"),
        ({"API_KEY": ""}, "needs JAXMON_JUDGE_API_KEY and JAXMON_JUDGE_PRICES"),
        ({"API_KEY": "short"}, "at least 8"),
        ({"API_KEY": KEY + "\n" + KEY}, "one printable ASCII word"),
        ({"API_KEY": KEY + "ü"}, "one printable ASCII word"),
        ({"PRICES": ""}, "needs JAXMON_JUDGE_API_KEY and JAXMON_JUDGE_PRICES"),
        ({"PRICES": "1"}, "two prices per million tokens"),
        ({"PRICES": "1,2,3"}, "two prices per million tokens"),
        ({"PRICES": "1,nan"}, "two prices per million tokens"),
        ({"PRICES": "-1,2"}, "two prices per million tokens"),
        ({"CAP": "0"}, "JAXMON_JUDGE_CAP must be > 0, got '0'"),
        ({"CAP": "all"}, "JAXMON_JUDGE_CAP must be > 0"),
        ({"CONCURRENCY": "0"}, "from 1 to 256"),
        ({"CONCURRENCY": "1.5"}, "from 1 to 256"),
        ({"TIMEOUT": "-1"}, "seconds > 0"),
        ({"RETRIES": "-1"}, "from 0 to 100"),
        ({"MAX_TOKENS": "0"}, ">= 1"),
    ],
)
def test_bad_settings_are_one_line_without_the_key(changed, words):
    with pytest.raises(ValueError, match="JAXMON_JUDGE_") as caught:
        settings.read({settings.PREFIX + k: v for k, v in (GOOD | changed).items()})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert KEY not in str(caught.value)
