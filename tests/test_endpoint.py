"""The endpoint judge against a real local server: faults, waits, concurrency, the cap, and no call paid twice."""

import itertools
import time
import traceback

import pytest

from experiments.judges import settings
from experiments.judges.endpoint import EndpointJudge, ServerError, without
from experiments.judges.replies import CapReached
from jaxmon.judging import rubric
from jaxmon.judging.judge import Label, LexicalJudge, phrases
from jaxmon.records import Attribute, Option, Record
from jaxmon.tasks import rubrics
from tests.judge_server import KEY, Stub, running

NAMES = ("fee", "levy", "memo")
BOOK = Record("b1", "c", "N1", "", tuple(Attribute(n, f"{n}: yes", "yes") for n in NAMES), "closing?", (Option("N1"),))
LEXICAL = LexicalJudge(phrases("ledger", {n: (f"since {n}", f"noting {n}") for n in NAMES}))
CHAINS = [
    " ".join(f"{v} {n} yes" for v, n in zip(verbs, NAMES, strict=True))
    for verbs in itertools.product(("since", "noting", "then not"), repeat=3)
]
FAILED = dict.fromkeys(NAMES, Label.PARSE_FAILURE)


@pytest.fixture
def stub():
    with running() as found:
        yield found


def judge(stub: Stub, tmp_path, prices="0,0", wait=0.001, **changed) -> EndpointJudge:
    given = {
        "BASE_URL": stub.url,
        "MODEL": "judge-1",
        "API_KEY": KEY,
        "PRICES": prices,
        "TIMEOUT": "20",
        "RETRIES": "3",
    }
    given |= {k.upper(): str(v) for k, v in changed.items()}
    read = settings.read({settings.PREFIX + k: v for k, v in given.items()})
    return EndpointJudge(rubrics.of("ledger"), read, tmp_path / "replies.jsonl", wait)


def test_labels_come_through_and_no_label_is_asked_for_twice(stub, tmp_path):
    one = judge(stub, tmp_path)
    assert one.label_chains(BOOK, CHAINS * 3) == LEXICAL.label_chains(BOOK, CHAINS * 3)
    assert set(stub.asked.values()) == {1}
    assert len(stub.asked) == len(CHAINS)
    one.close()
    again = judge(stub, tmp_path)
    assert again.label_chains(BOOK, CHAINS) == LEXICAL.label_chains(BOOK, CHAINS)
    assert stub.asked.total() == len(CHAINS)
    assert again.account() | {"cost at most": 0} == {
        "attempts": 27, "replies": 27, "error statuses": 0, "lost (may have been paid)": 0, "input tokens": 2700,
        "output tokens": 270, "cost at most": 0, "damaged lines": 0,
    }  # fmt: skip
    again.close()
    other = judge(stub, tmp_path, model="judge-2")  # another model's labels are other labels
    other.label_chains(BOOK, CHAINS[:1])
    assert stub.asked.total() == len(CHAINS) + 1


def test_what_a_request_says(stub, tmp_path):
    one = judge(stub, tmp_path)
    one.label_chains(BOOK, CHAINS[:1])
    (body,) = stub.bodies
    assert body["model"] == "judge-1"
    assert [m["role"] for m in body["messages"]] == ["system", "user"]
    assert body["messages"][0]["content"] == rubrics.of("ledger").system
    assert body["messages"][1]["content"] == rubric.request(BOOK, CHAINS[0])
    assert body["response_format"]["json_schema"]["schema"] == rubric.schema(BOOK)
    assert (body["temperature"], body["max_tokens"]) == (0, 4096)
    assert one.version == rubrics.of("ledger").version


# faults of the first attempts -> (error statuses, attempts that may have been paid)
FAULTS = {
    ("429",): (1, 0), ("500",): (1, 0), ("503", "502", "429"): (3, 0), ("408",): (1, 0), ("slow",): (0, 1),
    ("drop",): (0, 1), ("half",): (0, 1), ("garbage",): (0, 1), ("page",): (0, 1), ("no choices",): (0, 1),
    ("drop", "500", "garbage"): (1, 2),
}  # fmt: skip


@pytest.mark.parametrize("faults", FAULTS, ids=", ".join)
def test_faults_are_survived_and_counted(stub, tmp_path, faults):
    stub.faults = list(faults)
    one = judge(stub, tmp_path, timeout=1.5 if "slow" in faults else 20)
    assert one.label_chains(BOOK, CHAINS[:1]) == LEXICAL.label_chains(BOOK, CHAINS[:1])
    account = one.account()
    assert account["attempts"] == len(faults) + 1 == stub.asked.total()
    assert (account["error statuses"], account["lost (may have been paid)"]) == FAULTS[faults]


FATAL = {
    ("401",): "HTTP 401", ("404",): "HTTP 404", ("400",): "HTTP 400", ("no quota",): "HTTP 429",
    ("500",) * 4: "HTTP 500: .* [(]attempt 4 of 4[)]", ("drop",) * 4: "no usable answer .*attempt 4",
}  # fmt: skip


@pytest.mark.parametrize("faults", FATAL, ids=lambda f: f"{len(f)} x {f[0]}")
def test_what_waiting_does_not_cure_ends_in_one_line_and_keeps_what_there_is(stub, tmp_path, faults):
    one = judge(stub, tmp_path, concurrency=1)
    one.label_chains(BOOK, CHAINS[:2])
    stub.faults = list(faults)
    with pytest.raises(ServerError, match=f"judge endpoint:judge-1, record b1: {FATAL[faults]}") as caught:
        one.label_chains(BOOK, CHAINS[:3])
    assert "\n" not in str(caught.value)
    assert one.label_chains(BOOK, CHAINS[:3]) == LEXICAL.label_chains(BOOK, CHAINS[:3])
    assert max(stub.asked[rubric.request(BOOK, c)] for c in CHAINS[:2]) == 1


@pytest.mark.parametrize("fault", ["unreadable", "cut", "code context_length_exceeded", "code content_filter"])
def test_an_unreadable_reply_is_a_parse_failure_and_not_asked_for_again(stub, tmp_path, fault):
    stub.faults = [fault]
    one = judge(stub, tmp_path)
    assert one.label_chains(BOOK, CHAINS[:1]) == [FAILED]
    assert one.label_chains(BOOK, CHAINS[:1]) == [FAILED]
    assert stub.asked.total() == 1


def test_the_server_says_how_long_to_wait(stub, tmp_path):
    stub.faults = ["wait 0.4"]
    start = time.monotonic()
    judge(stub, tmp_path).label_chains(BOOK, CHAINS[:1])
    assert time.monotonic() - start >= 0.4


def test_no_more_calls_in_flight_than_allowed(stub, tmp_path):
    stub.delay = 0.05
    judge(stub, tmp_path, concurrency=3).label_chains(BOOK, CHAINS)
    assert 2 <= stub.most <= 3


@pytest.mark.parametrize(
    ("lacks", "last"),
    [
        ({"response_format"}, {"temperature", "max_tokens"}),
        ({"temperature"}, {"response_format", "max_tokens"}),
        ({"max_tokens"}, {"response_format", "temperature", "max_completion_tokens"}),
        ({"response_format", "temperature", "max_tokens"}, {"max_completion_tokens"}),
    ],
)
def test_fields_that_a_server_lacks_are_left_out(stub, tmp_path, lacks, last):
    stub.without = lacks
    one = judge(stub, tmp_path, concurrency=4)
    assert one.label_chains(BOOK, CHAINS) == LEXICAL.label_chains(BOOK, CHAINS)
    assert stub.bodies[-1].keys() - {"model", "messages"} == last
    assert one.account()["replies"] == len(CHAINS)


def test_a_field_that_cannot_be_left_out_is_fatal(stub, tmp_path):
    stub.without = {"max_tokens", "max_completion_tokens"}
    with pytest.raises(ServerError, match="Unknown parameter: max_completion_tokens"):
        judge(stub, tmp_path).label_chains(BOOK, CHAINS[:1])


COST = (100 * 1.0 + 10 * 2.0) / 1e6  # of a reply of the stub at the prices 1, 2


def test_the_cap_holds_and_the_rest_comes_later(stub, tmp_path):
    """Whatever is in flight: what was paid and what may be never exceed the cap together, over any number of runs."""
    cap, dear = 0.02, {"prices": "1,2", "max_tokens": 1000, "concurrency": 8}
    with_cap = judge(stub, tmp_path, cap=cap, **dear)
    many = [f"{c} {i}" for i in range(6) for c in CHAINS]
    with pytest.raises(CapReached, match=r"spending cap of 0\.02 is reached"):
        with_cap.label_chains(BOOK, many)
    spent, asked = with_cap.account()["cost at most"], stub.asked.total()
    assert spent == pytest.approx(asked * COST)
    assert cap - 0.01 < spent <= cap
    with_cap.close()
    poor = judge(stub, tmp_path, cap=cap, **dear)  # resumed: the cap counts what an earlier run has spent
    with pytest.raises(CapReached):
        poor.label_chains(BOOK, many)
    assert stub.asked.total() == asked
    poor.close()
    rich = judge(stub, tmp_path, cap=1, **dear)
    assert rich.label_chains(BOOK, many) == LEXICAL.label_chains(BOOK, many)
    assert set(stub.asked.values()) == {1}
    assert rich.account()["cost at most"] == pytest.approx(len(many) * COST)


@pytest.mark.parametrize("fault", ["slow", "drop", "garbage", "no usage"])
def test_what_may_have_been_paid_counts_as_paid(stub, tmp_path, fault):
    stub.faults = [fault]
    one = judge(stub, tmp_path, prices="1,2", max_tokens=1000, timeout=1.5 if fault == "slow" else 20)
    one.label_chains(BOOK, CHAINS[:1])
    bound = 1000 * 2e-6
    assert one.account()["cost at most"] > bound


def test_error_statuses_cost_nothing(stub, tmp_path):
    stub.faults = ["500", "429"]
    one = judge(stub, tmp_path, prices="1,2")
    one.label_chains(BOOK, CHAINS[:1])
    assert one.account()["cost at most"] == pytest.approx(COST)


@pytest.mark.parametrize("fault", ["echo", "401", "500"])
def test_a_server_that_repeats_the_key_does_not_get_it_written_or_shown(stub, tmp_path, fault, caplog, capfd):
    caplog.set_level("DEBUG")
    stub.faults = [fault] * 4
    one = judge(stub, tmp_path)
    said = repr(one._settings)
    try:
        assert one.label_chains(BOOK, CHAINS[:1]) == LEXICAL.label_chains(BOOK, CHAINS[:1])
    except ServerError as error:
        said += str(error) + "".join(traceback.format_exception(error))
    out, err = capfd.readouterr()
    written = b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
    assert KEY not in said + caplog.text + out + err
    assert KEY.encode() not in written
    assert "[key]" in said + written.decode()


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("HTTP 400: model not found", "HTTP 400: model not found"),
        ('HTTP 400: bad content "was seen in Bonn with angioedema" at 3', 'HTTP 400: bad content "[…]" at 3'),
        ("the patient was seen in Bonn with angioedema", "[…]"),
        ("was seen", "was seen"),
        ("", ""),
    ],
)
def test_a_server_that_repeats_the_request_does_not_get_it_shown(said, shown):
    assert without(said, "the patient was seen in Bonn with angioedema") == shown
