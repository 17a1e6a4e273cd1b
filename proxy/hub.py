"""Shared by all connections of a proxy: counters, notices, and the interfaces to recording, rules
and memory, which the server fills in. No I/O here.
"""

from __future__ import annotations

import itertools
import logging
import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from kafkascope.analyzer.text import safe, spelled
from kafkascope.analyzer.topics import TopicNames
from kafkascope.dissectors.registry import APIS
from kafkascope.proxy.limits import LIMITS, Limits, remember

if TYPE_CHECKING:
    from kafkascope.captures.model import Endpoint
    from kafkascope.schemas.decoding import Payloads

BUCKETS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_BUCKETS_NS: Final = tuple(int(bound * 1e9) for bound in BUCKETS_S)

OTHERS: Final = "others"
# Stands for the key of every API that is none of Kafka's: a client may send any.
UNKNOWN: Final = -1

# Counters (..._total) and gauges -> the name of the label, what is counted.
HELP: Final[dict[str, tuple[str, str]]] = {
    "connections_total": ("", "Client connections accepted."),
    "connections_closed_total": ("cause", "Connections that ended, by cause."),
    "connections_refused_total": (
        "",
        "Client connections refused because of the connection limit.",
    ),
    "connections": ("", "Client connections open now."),
    "bytes_total": ("side", "Bytes received, by the side they came from."),
    "requests_total": ("api", "Requests, by API."),
    "responses_total": ("api", "Responses, by API."),
    "rewrites_total": ("api", "Responses whose broker addresses were replaced, by API."),
    "undecoded_total": ("api", "Frames that could not be decoded, by API."),
    "opaque_total": ("", "Connections forwarded without decoding."),
    "unmatched_total": ("", "Responses without a known request."),
    "upstream_failures_total": ("upstream", "Connection attempts that failed, by upstream."),
    "upstreams_refused_total": (
        "",
        "Connections refused because of the advertised address of a broker.",
    ),
    "faults_total": ("rule", "Times a rule fired, by rule."),
    "held": ("", "Frames that are held now."),
    "recorder_bytes_total": ("", "Bytes written to the recording."),
    "recorder_dropped_total": ("sink", "Packets missing from the recording, by sink."),
    "errors_total": ("", "Internal errors, which close a connection, and failed rules."),
}


class Metrics:
    """Counters, cheap where frames pass and formatted on demand."""

    many = 256
    """Responses that are noted before they are counted."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self._limits = limits
        self.counters: dict[str, Counter[str]] = {name: Counter() for name in HELP}
        self.requests: Counter[int] = Counter()
        self.responses: Counter[int] = Counter()
        self.bytes = [0, 0]
        self.answers: list[tuple[int, int]] = []
        """API keys of responses, and how long they took in ns: what `count` has not counted yet."""
        self._latency: dict[int, list[int]] = {}
        self._latency_ns: Counter[int] = Counter()

    def add(self, name: str, label: str = "", count: int = 1) -> None:
        counter = self.counters[name]
        if label not in counter and len(counter) >= self._limits.metric_labels:
            label = OTHERS
        counter[label] += count

    def requested(self, key: int) -> None:
        self.requests[key if key in APIS else UNKNOWN] += 1

    def get(self, name: str, label: str = "") -> int:
        return self.counters[name][label]

    def answered(self, key: int, latency_ns: int) -> None:
        self.answers.append((key, latency_ns))
        if len(self.answers) >= self.many:
            self.count()

    def count(self) -> None:
        # Many at once: in cold caches one takes a third of what its response does.
        answers, self.answers = self.answers, []
        for key, latency_ns in answers:
            key = key if key in APIS else UNKNOWN
            self.responses[key] += 1
            buckets = self._latency.get(key)
            if buckets is None:
                buckets = self._latency[key] = [0] * (len(BUCKETS_S) + 1)
            buckets[bisect_left(_BUCKETS_NS, latency_ns)] += 1
            self._latency_ns[key] += latency_ns

    def snapshot(self) -> dict[str, dict[str, int]]:
        self.count()
        counters = {name: dict(values) for name, values in self.counters.items() if values}
        counters["bytes_total"] = {"client": self.bytes[0], "broker": self.bytes[1]}
        counters["requests_total"] = {_api(key): n for key, n in self.requests.items()}
        counters["responses_total"] = {_api(key): n for key, n in self.responses.items()}
        return counters

    def latencies(self) -> dict[str, dict[str, Any]]:
        self.count()
        return {
            _api(key): {
                "count": sum(buckets),
                "sum_ns": self._latency_ns[key],
                "buckets": list(buckets),
            }
            for key, buckets in self._latency.items()
        }

    def text(self) -> str:
        lines = []
        snapshot = self.snapshot()
        for name, (label, help_) in HELP.items():
            kind, none = ("counter", {}) if name.endswith("_total") else ("gauge", {"": 0})
            values = snapshot.get(name) or none
            lines += [f"# HELP kafkascope_{name} {help_}", f"# TYPE kafkascope_{name} {kind}"]
            for value, count in sorted(values.items()):
                where = f'{{{label}="{_escaped(value)}"}}' if label else ""
                lines.append(f"kafkascope_{name}{where} {count}")
        name = "kafkascope_latency_seconds"
        lines += [
            f"# HELP {name} From the request's head to its response's.",
            f"# TYPE {name} histogram",
        ]
        for key, buckets in sorted(self._latency.items()):
            total = 0
            for bound, count in zip((*map(str, BUCKETS_S), "+Inf"), buckets, strict=True):
                total += count
                lines.append(f'{name}_bucket{{api="{_api(key)}",le="{bound}"}} {total}')
            lines.append(f'{name}_sum{{api="{_api(key)}"}} {self._latency_ns[key] / 1e9:.6f}')
            lines.append(f'{name}_count{{api="{_api(key)}"}} {total}')
        return "\n".join(lines) + "\n"


def _api(key: int) -> str:
    return "unknown" if key == UNKNOWN else APIS[key].name


def _escaped(text: str) -> str:
    # Brokers choose host names: bytes that are no UTF-8, what a terminal obeys.
    return spelled(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


_log = logging.getLogger("kafkascope.proxy")


# Frames, contexts and rules know the hub. Their types would close a circle of imports: Any.
class Rules(Protocol):
    """`rules.rules.Chain`."""

    edition: int

    def look(self, frame: Any) -> tuple[list[Any], bool]: ...
    def responses(self, frame: Any, recorded: bool = False) -> bool: ...
    def quiet(self, frame: Any) -> bool: ...


class Addresses(Protocol):
    """`relay.endpoints.Endpoints`."""

    directory: Any

    def response(self, context: Any, request: Any, frame: bytes) -> tuple[bytes, str]: ...
    def tail(self, context: Any, request: Any, tail: bytes) -> tuple[bytes, str]: ...


class VersionCap(Protocol):
    """`relay.endpoints.VersionLimiter`."""

    def newer(self, version: int) -> bool: ...
    def refusal(self, version: int, correlation_id: int) -> bytes | None: ...
    def response(self, context: Any, version: int, frame: bytes) -> tuple[bytes, str]: ...


class Held(Protocol):
    """`engine.held.HeldFrames`."""

    def add(self, stop: Any, frame: Any) -> int: ...
    def forget(self, number: int) -> None: ...


class Tap(Protocol):
    """`recording.recorder.ConnectionTap`."""

    def client(self, side: int, data: Any, now_ns: int, comment: str = "") -> None: ...
    def broker(self, side: int, data: bytes, now_ns: int, comment: str = "") -> None: ...
    def end(self, side: int | None, how: str, now_ns: int) -> None: ...


class Recording(Protocol):
    """`recording.recorder.Recorder`."""

    def tap(self, number: int, client: Endpoint, broker: Endpoint, now_ns: int) -> Tap | None: ...


class Hub:
    """Shared by all connections."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.limits = limits
        self.metrics = Metrics(limits)
        self.names = TopicNames()
        self.chain: Rules | None = None
        self.endpoints: Addresses | None = None
        """None where clients come to us whatever address they know (transparent, SOCKS)."""
        self.versions: VersionCap | None = None
        """None where versions pass as brokers offer them."""
        self.recording: Recording | None = None
        self.lease: Callable[[memoryview], Any] = lambda data: None
        """Returns a lease on the memory that was just read; None: it has to be copied."""
        self.grew: Callable[[int], None] = lambda size: None
        """Counts bytes that are buffered somewhere."""
        self.held: Held | None = None
        self.matches: Callable[[Any, Any, Any], Awaitable[bool]] | None = None
        """Evaluates a filter on a row and exchange with keys and values decoded by schema."""
        self.payloads: Callable[[], Payloads | None] = lambda: None
        """Returns what decodes and encodes keys and values in the event loop; None while no schema
        is known."""
        self.with_secrets = False
        """Recordings keep secrets."""
        self.numbers = itertools.count(1)
        self.notices: deque[tuple[int, str]] = deque(maxlen=limits.notices)
        """What was said last, with times."""
        self.notice_count = 0
        """How many notices there were."""
        self.watchers: set[Callable[[], None]] = set()
        """Called when rules, held frames or notices change."""
        self._notified: dict[str, None] = {}

    def changed(self) -> None:
        for watcher in self.watchers:
            watcher()

    def once(self, key: str, sentence: str) -> None:
        """Log a sentence the first time that it is true."""
        key = key[: self.limits.notice_chars]
        if key not in self._notified:
            remember(self._notified, key, None, self.limits.notices_once)
            self.say(sentence)

    def say(self, sentence: str) -> None:
        if len(sentence) > self.limits.notice_chars:
            sentence = f"{sentence[: self.limits.notice_chars]}..."
        sentence = safe(sentence)  # names that brokers and clients say
        self.notices.append((time.time_ns(), sentence))
        self.notice_count += 1
        _log.warning("%s", sentence)
        self.changed()
