"""The `endpoint` judge: the rubric, answered by a server that speaks the OpenAI protocol, through the official client.

One call labels every attribute of one chain. Equal requests are one call, replies are kept in a file (replies.py) and
never bought twice, and labels are read from the kept texts, so reading them more cleverly later costs nothing. An
unreadable reply is a counted parse failure, not a reason to ask again. Rate limits, server errors, time-outs, lost
connections and bodies that are no completion are tried again with growing waits; what the server still refuses then
ends the job in one line, and the same command goes on from there.

Knows: the protocol, what to try again, what a call costs at most. Does not know: studies, files but the replies'.
"""

from __future__ import annotations

import functools
import hashlib
import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openai
import tenacity

from experiments.judges.replies import Replies, Reply
from experiments.judges.settings import Settings
from jaxmon.judging import replies, rubric
from jaxmon.judging.judge import Label, complete
from jaxmon.records import Record

AGAIN = frozenset({408, 409, 429})  # statuses worth another attempt, beside 5xx
EXHAUSTED = "insufficient_quota"  # a 429 that waiting does not cure
REFUSED = frozenset(  # error codes that speak of this one chain: it stays unlabelled, the job goes on
    {"context_length_exceeded", "exceed_context_size_error", "content_filter", "content_policy_violation"}
)
TOO_LONG = "maximum context length"  # how servers without such a code say it
LONGEST_WAIT = 60.0  # seconds, also where the server asks for more
ENVELOPE = 512  # tokens a server may put around the messages, at most


class ServerError(ValueError):
    """The server cannot be used, or not now; one line."""


class _Transient(ServerError):
    """Worth another attempt, after `wait` seconds if the server said so."""

    def __init__(self, what: str, wait: float = 0.0):
        super().__init__(what)
        self.wait = wait


class EndpointJudge:
    """See the module; `rubric_` is the task's, `path` the default place of the file of replies."""

    def __init__(self, rubric_: rubric.Rubric, settings: Settings, path: Path, wait: float = 0.5):
        """Opens nothing and calls nothing yet.

        Args:
          wait: seconds before the second attempt; doubles from there.
        """
        self.name = f"endpoint:{settings.model}"
        self.version = rubric_.version
        self._system = rubric_.system
        self._settings = settings
        self._wait = wait
        self._path = Path(settings.replies) if settings.replies else path
        self._ladders = Ladders(settings.max_tokens)
        self._client = openai.OpenAI(
            api_key=settings.api_key or "none", base_url=settings.base_url, timeout=settings.timeout, max_retries=0
        )

    @functools.cached_property
    def _kept(self) -> Replies:
        return Replies(self._path)

    def label_chains(self, record: Record, thoughts: Sequence[str]) -> list[dict[str, Label]]:
        """See `jaxmon.judging.judge.Judge`.

        Raises:
          ServerError: the server refused a request, or went on failing.
          CapReached: the spending cap.
        """
        names = [a.name for a in record.attributes]
        messages = [rubric.request(record, thought) for thought in thoughts]
        missing = [m for m in dict.fromkeys(messages) if self._kept.get(self._key(m)) is None]
        with ThreadPoolExecutor(self._settings.concurrency) as pool:
            list(pool.map(lambda message: self._ask(record, message), missing))
        said = [self._kept.get(self._key(m)) for m in messages]
        return [complete(record, replies.read(r.text, names, r.finish)) for r in said if r is not None]

    def account(self) -> dict[str, float]:
        """Attempts, tokens and cost: all that the file of replies knows of."""
        return self._kept.account()

    def close(self) -> None:
        self._client.close()
        if "_kept" in self.__dict__:
            self._kept.close()

    def _key(self, message: str) -> str:
        """A label's name: rubric version, model, and a digest of the request, which holds the chain."""
        return "\0".join([self.version, self._settings.model, hashlib.sha256(message.encode()).hexdigest()])

    def _ask(self, record: Record, message: str) -> None:
        """Gets one reply and keeps it; what the server says of a failure is shown without the words of the request."""
        s = self._settings
        again = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(_Transient),
            stop=tenacity.stop_after_attempt(s.retries + 1),
            wait=self._pause,
            reraise=True,
        )
        try:
            again(self._attempt, record, message)
        except ServerError as error:
            tries = f" (attempt {s.retries + 1} of {s.retries + 1})" if isinstance(error, _Transient) else ""
            said = without(str(error), message)
            raise ServerError(f"judge {self.name}, record {record.id}: {said}{tries}") from None

    def _pause(self, state: tenacity.RetryCallState) -> float:
        grown = tenacity.wait_random_exponential(multiplier=self._wait, max=LONGEST_WAIT)(state)
        error = state.outcome.exception() if state.outcome else None
        return min(LONGEST_WAIT, max(grown, error.wait)) if isinstance(error, _Transient) else grown

    def _attempt(self, record: Record, message: str) -> None:
        """One call, accounted before and after; steps down where the server lacks an optional field."""
        s = self._settings
        while True:
            form = self._ladders.now()
            body = {
                "model": s.model,
                "messages": _messages(self._system, message),
                **self._ladders.fields(form, record),
            }
            bound = s.input_price * (len(json.dumps(body)) + ENVELOPE) + s.output_price * s.max_tokens
            attempt = self._kept.send(bound, s.cap)
            try:
                reply = self._read(self._client.chat.completions.create(**body), bound)
            except openai.APIStatusError as error:
                if code := _refusal(error):
                    self._kept.settle(attempt, self._key(message), Reply("", code))
                    return
                self._kept.settle(attempt)
                if not self._ladders.down(form, error):
                    raise _read_status(error, s.scrub) from None
            except (openai.OpenAIError, ValueError) as error:  # no answer, or one that is no completion
                self._kept.settle(attempt, lost=True)
                raise _Transient(s.scrub(f"no usable answer ({type(error).__name__}: {error})")) from None
            except BaseException:
                self._kept.settle(attempt, lost=True)
                raise
            else:
                self._kept.settle(attempt, self._key(message), reply)
                return

    def _read(self, completion: Any, bound: float) -> Reply:
        """The part of a completion that is kept.

        Raises:
          ValueError: it has no choice with a message.
        """
        s = self._settings
        try:
            choice = completion.choices[0]
            text, finish = choice.message.content or "", str(choice.finish_reason or "")
        except (AttributeError, TypeError, IndexError):
            raise ValueError("the body is no chat completion") from None
        if not isinstance(text, str):
            raise ValueError("the message's content is no text")
        read, written = (getattr(completion.usage, f, None) for f in ("prompt_tokens", "completion_tokens"))
        if not isinstance(read, int) or not isinstance(written, int) or min(read, written) < 0:
            return Reply(s.scrub(text), finish, cost=bound)  # no account of tokens: the most it could have cost
        return Reply(s.scrub(text), finish, read, written, read * s.input_price + written * s.output_price)


class Ladders:
    """Optional fields of a request: what is tried first, and what instead once the server has refused a field by name.

    Servers differ in what they know of structured output, of a temperature, and in how the length is limited.
    """

    def __init__(self, max_tokens: int):
        self._rungs: dict[str, tuple[Callable[[Record], dict[str, Any]], ...]] = {
            "response_format": (_json_schema, lambda _: {"response_format": {"type": "json_object"}}, lambda _: {}),
            "temperature": (lambda _: {"temperature": 0}, lambda _: {}),
            "max_tokens": (lambda _: {"max_tokens": max_tokens}, lambda _: {"max_completion_tokens": max_tokens}),
        }
        self._at = dict.fromkeys(self._rungs, 0)
        self._lock = threading.Lock()

    def now(self) -> dict[str, int]:
        """The rung of each field."""
        with self._lock:
            return dict(self._at)

    def fields(self, form: dict[str, int], record: Record) -> dict[str, Any]:
        return {k: v for name, at in form.items() for k, v in self._rungs[name][at](record).items()}

    def down(self, form: dict[str, int], error: openai.APIStatusError) -> bool:
        """Whether another form is worth a call: the refusal names a field that had a lower rung when it was sent."""
        if error.status_code not in (400, 422):
            return False
        said = f"{error.message} {error.body}"
        with self._lock:
            for name, rungs in self._rungs.items():
                if name in said and form[name] + 1 < len(rungs):
                    self._at[name] = max(self._at[name], form[name] + 1)
                    return True
        return False


def _json_schema(record: Record) -> dict[str, Any]:
    wanted = {"name": "labels", "strict": True, "schema": rubric.schema(record)}
    return {"response_format": {"type": "json_schema", "json_schema": wanted}}


def _messages(system: str, user: str) -> list[dict[str, str]]:
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


def _refusal(error: openai.APIStatusError) -> str:
    """Why the server will not label this one chain; "" where the error does not speak of the chain."""
    codes = {str(error.code), str(error.type)} & REFUSED
    if not codes and error.status_code == 400 and TOO_LONG in error.message:
        codes = {"context_length_exceeded"}
    return min(codes, default="")


def _read_status(error: openai.APIStatusError, scrub: Callable[[str], str]) -> ServerError:
    """An error status as what to do about it; `scrub` takes the key out of what the server says."""
    what = scrub(f"HTTP {error.status_code}: {error.message}")
    code = {str(error.code), str(error.type)}
    if (error.status_code in AGAIN or error.status_code >= 500) and EXHAUSTED not in code:
        return _Transient(what, _seconds(error.response.headers.get("retry-after", "")))
    return ServerError(what)


def without(said: str, secret: str, least: int = 12) -> str:
    """What a server said, without any run of `least` characters or more that it took from `secret`."""
    kept, i = [], 0
    while i < len(said):
        size = 0
        while i + size < len(said) and said[i : i + max(least, size + 1)] in secret and i + least <= len(said):
            size = max(least, size + 1)
        kept.append("[…]" if size else said[i])
        i += size or 1
    return "".join(kept)


def _seconds(text: str) -> float:
    """A Retry-After header in seconds; 0 for none, and for a date."""
    try:
        return max(0.0, float(text))
    except ValueError:
        return 0.0
