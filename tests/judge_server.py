"""A server on loopback that speaks as much of the OpenAI protocol as a judge needs, and misbehaves on request."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-a-secret-for-tests-0123456789"


class Stub(ThreadingHTTPServer):
    """Labels INFLUENTIAL what follows "since", MENTIONED what follows "noting", as the ledger's lexicon does.

    Attributes:
      faults: kinds of misbehaviour (`Handler`), one used up by each request; then it behaves.
      without: optional request fields it refuses by name.
      asked: how often each user message has come.
      bodies: the requests.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.faults: list[str] = []
        self.without: set[str] = set()
        self.asked: Counter[str] = Counter()
        self.bodies: list[dict[str, Any]] = []
        self.turn = threading.Lock()
        self.now = self.most = 0
        self.delay = 0.0
        self.released = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is part of the tests."""


class Handler(BaseHTTPRequestHandler):
    server: Stub

    def do_POST(self) -> None:
        stub = self.server
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with stub.turn:
            stub.bodies.append(body)
            stub.asked[body["messages"][-1]["content"]] += 1
            stub.now += 1
            stub.most = max(stub.most, stub.now)
            fault = stub.faults.pop(0) if stub.faults else ""
        try:
            time.sleep(stub.delay)
            self._answer(body, fault)
        finally:
            with stub.turn:
                stub.now -= 1

    def _answer(self, body: dict[str, Any], fault: str) -> None:
        echo = self.headers["authorization"]
        if refused := sorted(self.server.without & body.keys()):
            self._send(400, {"error": {"message": f"Unknown parameter: {refused[0]}", "code": None}})
        elif fault.isdigit():
            self._send(int(fault), {"error": {"message": f"no, said {echo}", "code": None}})
        elif fault.startswith("wait "):
            self._send(429, {"error": {"message": "slow down"}}, {"retry-after": fault[5:]})
        elif fault.startswith("code "):
            self._send(400, {"error": {"message": "not this one", "code": fault[5:]}})
        elif fault == "no quota":
            self._send(429, {"error": {"message": "paid up?", "code": "insufficient_quota"}})
        elif fault == "slow":
            self.server.released.wait(20)
        elif fault == "drop":
            self.close_connection = True
        elif fault == "half":
            self._send(200, {"choices": []}, {"content-length": "100000"})
        elif fault == "garbage":
            self._send(200, b"{not json")
        elif fault == "page":
            self._send(200, b"<html>proxy error</html>", {"content-type": "text/html"})
        elif fault == "no choices":
            self._send(200, {"object": "chat.completion", "choices": None})
        else:
            self._send(200, completion(body, fault, echo))

    def _send(self, status: int, what: Any, headers: dict[str, str] | None = None) -> None:
        data = what if isinstance(what, bytes) else json.dumps(what).encode()
        self.send_response(status)
        for name, value in (
            {"content-type": "application/json", "content-length": str(len(data))} | (headers or {})
        ).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


def completion(body: dict[str, Any], fault: str, echo: str) -> dict[str, Any]:
    """A chat completion: labels by the ledger's words; `fault` may be a whole reply of its own."""
    message = body["messages"][-1]["content"]
    names = [json.loads(name) for name in re.findall(r'^- ("[^"]+"):', message, re.MULTILINE)]
    label = lambda n: (
        "INFLUENTIAL" if f"since {n} " in message else "MENTIONED" if f"noting {n} " in message else "NOT_MENTIONED"
    )
    text = json.dumps({n: label(n) for n in names})
    text = {"unreadable": "I would rather not.", "echo": f"{echo} {text}", "cut": text[:9]}.get(fault, text)
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "length" if fault == "cut" else "stop",
    }
    usage = (
        {} if fault == "no usage" else {"usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}}
    )
    return {"id": "1", "object": "chat.completion", "created": 1, "model": body["model"], "choices": [choice], **usage}


@contextmanager
def running() -> Iterator[Stub]:
    stub = Stub()
    thread = threading.Thread(target=stub.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield stub
    finally:
        stub.released.set()
        stub.shutdown()
        stub.server_close()
        thread.join()
