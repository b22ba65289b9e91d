"""What the endpoint judge needs to know of its server, from the environment: none of it is part of a run's identity.

    JAXMON_JUDGE_BASE_URL      where the server is, e.g. https://host/v1 (required)
    JAXMON_JUDGE_MODEL         the model's name there (required; stored with every label)
    JAXMON_JUDGE_API_KEY       the key; may be absent for a server on this machine
    JAXMON_JUDGE_PRICES        INPUT,OUTPUT per million tokens, e.g. 0.27,1.10; may be absent on this machine only
    JAXMON_JUDGE_CAP           most that may be spent, in the unit of the prices                      5
    JAXMON_JUDGE_CONCURRENCY   calls in flight                                                        8
    JAXMON_JUDGE_TIMEOUT       seconds to wait for a reply                                            120
    JAXMON_JUDGE_RETRIES       further attempts after a rate limit, a server error, a lost reply      6
    JAXMON_JUDGE_MAX_TOKENS    longest reply, reasoning included                                      4096
    JAXMON_JUDGE_REPLIES       the file of paid replies; by default replies.jsonl beside the labels

Knows: names, defaults, ranges. Does not know: the protocol. No message or repr shows the key.
"""

from __future__ import annotations

import dataclasses
import math
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

PREFIX = "JAXMON_JUDGE_"
SHORTEST_KEY = 8  # shorter texts occur in replies by chance and could not be blotted out

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Settings:
    """See the table above; prices are per token."""

    base_url: str
    model: str
    api_key: str = dataclasses.field(default="", repr=False)
    input_price: float = 0.0
    output_price: float = 0.0
    cap: float = 5.0
    concurrency: int = 8
    timeout: float = 120.0
    retries: int = 6
    max_tokens: int = 4096
    replies: str = ""

    def scrub(self, text: str) -> str:
        """The text without the key, for everything that comes from the server and may be shown or kept."""
        return text.replace(self.api_key, "[key]") if self.api_key else text


def read(environment: Mapping[str, str]) -> Settings:
    """Settings from environment variables.

    Raises:
      ValueError: one line that names the variable and what it should be; never its value where that is secret.
    """
    get = lambda name: environment.get(PREFIX + name, "").strip()
    if missing := [PREFIX + name for name in ("BASE_URL", "MODEL") if not get(name)]:
        raise ValueError(f"the endpoint judge needs {' and '.join(missing)} in the environment")
    local = _local(get("BASE_URL"))
    key = get("API_KEY")
    if key and (len(key) < SHORTEST_KEY or not key.isascii() or any(c.isspace() or not c.isprintable() for c in key)):
        raise ValueError(f"{PREFIX}API_KEY is no key: one printable ASCII word of at least {SHORTEST_KEY} characters")
    if not local and not (key and get("PRICES")):
        raise ValueError(f"a server on another machine needs {PREFIX}API_KEY and {PREFIX}PRICES")
    number = lambda name, kind, good, want: _number(name, get(name), kind, good, want)
    want = "two prices per million tokens, INPUT,OUTPUT"
    parts = (get("PRICES") or "0,0").split(",")
    prices = [_number("PRICES", part, float, lambda v: 0 <= v < math.inf, want) for part in parts]
    per_token = [p / 1e6 for p in prices if p is not None]
    if len(parts) != 2 or len(per_token) != 2:
        raise ValueError(f"{PREFIX}PRICES must be {want}, got {get('PRICES')!r}")
    chosen: dict[str, Any] = {
        "cap": number("CAP", float, lambda v: 0 < v < math.inf, "> 0"),
        "concurrency": number("CONCURRENCY", int, lambda v: 1 <= v <= 256, "from 1 to 256"),
        "timeout": number("TIMEOUT", float, lambda v: 0 < v < math.inf, "seconds > 0"),
        "retries": number("RETRIES", int, lambda v: 0 <= v <= 100, "from 0 to 100"),
        "max_tokens": number("MAX_TOKENS", int, lambda v: v >= 1, ">= 1"),
    }
    given = {name: value for name, value in chosen.items() if value is not None}
    input_price, output_price = per_token
    return Settings(get("BASE_URL"), get("MODEL"), key, input_price, output_price, replies=get("REPLIES"), **given)


def _local(url: str) -> bool:
    """Whether the server is on this machine.

    Raises:
      ValueError: not an http(s) address, or one that holds a name and password.
    """
    try:
        parts = urllib.parse.urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.query and not parts.fragment
    except ValueError:
        good = False
    if not good:
        raise ValueError(f"{PREFIX}BASE_URL must be an http or https address without a query")
    if "@" in parts.netloc:
        raise ValueError(f"{PREFIX}BASE_URL holds a password; the key belongs into {PREFIX}API_KEY")
    return parts.hostname == "localhost" or str(parts.hostname).startswith("127.") or parts.hostname == "::1"


def _number(name: str, text: str, kind: Callable[[str], T], good: Callable[[T], bool], want: str) -> T | None:
    if not text:
        return None
    try:
        value = kind(text)
        if good(value):
            return value
    except ValueError:
        pass
    raise ValueError(f"{PREFIX}{name} must be {want}, got {text!r}")
