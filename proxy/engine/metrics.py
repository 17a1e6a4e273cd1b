"""Counters of a running proxy, and their text for Prometheus (exposition format 0.0.4)."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import Any, Final

from kafkascope.analyzer.text import spelled
from kafkascope.dissectors.registry import APIS

BUCKETS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_BUCKETS_NS: Final = tuple(int(bound * 1e9) for bound in BUCKETS_S)

MOST_LABELS: Final = 1_000
"""Of a counter: upstreams and rules may be any number in time. Those of all others count as one."""
OTHERS: Final = "others"
UNKNOWN: Final = -1
"""Stands for the key of every API that is none of Kafka's: a client may send any."""

HELP: Final[dict[str, tuple[str, str]]] = {
    "connections_total": ("counter", "Client connections accepted."),
    "connections_closed_total": ("counter", "Connections that ended, by cause."),
    "connections_refused_total": (
        "counter",
        "Client connections refused because of the connection limit.",
    ),
    "connections": ("gauge", "Client connections open now."),
    "bytes_total": ("counter", "Bytes received, by the side they came from."),
    "requests_total": ("counter", "Requests, by API."),
    "responses_total": ("counter", "Responses, by API."),
    "rewrites_total": ("counter", "Responses whose broker addresses were replaced, by API."),
    "undecoded_total": ("counter", "Frames that could not be decoded, by API."),
    "opaque_total": ("counter", "Connections forwarded without decoding."),
    "unmatched_total": ("counter", "Responses without a known request."),
    "upstream_failures_total": ("counter", "Connection attempts that failed, by upstream."),
    "upstreams_refused_total": (
        "counter",
        "Connections refused because of the advertised address of a broker.",
    ),
    "faults_total": ("counter", "Times a rule fired, by rule."),
    "held": ("gauge", "Frames that are held now."),
    "recorder_bytes_total": ("counter", "Bytes written to the recording."),
    "recorder_dropped_total": ("counter", "Packets missing from the recording, by sink."),
    "errors_total": ("counter", "Internal errors, which close a connection, and failed rules."),
}


class Metrics:
    """Counters, cheap where frames pass and formatted on demand."""

    many = 256
    """Responses that are noted before they are counted."""

    def __init__(self) -> None:
        self.counters: dict[str, Counter[str]] = {name: Counter() for name in HELP}
        self.requests: Counter[int] = Counter()
        self.responses: Counter[int] = Counter()
        self.bytes = [0, 0]
        self.answers: list[tuple[int, int]] = []
        """API keys of responses, and how long they took in ns: what `count` has not counted yet."""
        self._latency: dict[int, list[int]] = {}
        self._latency_ns: Counter[int] = Counter()

    def add(self, name: str, label: str = "", count: int = 1) -> None:
        """Count something."""
        counter = self.counters[name]
        if label not in counter and len(counter) >= MOST_LABELS:
            label = OTHERS
        counter[label] += count

    def requested(self, key: int) -> None:
        """Count a request."""
        self.requests[key if key in APIS else UNKNOWN] += 1

    def get(self, name: str, label: str = "") -> int:
        """A counter's value."""
        return self.counters[name][label]

    def answered(self, key: int, latency_ns: int) -> None:
        """Note a response and how long it took."""
        self.answers.append((key, latency_ns))
        if len(self.answers) >= self.many:
            self.count()

    def count(self) -> None:
        """Count the responses that were noted."""
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
        """All counters by name and label."""
        self.count()
        counters = {name: dict(values) for name, values in self.counters.items() if values}
        counters["bytes_total"] = {"client": self.bytes[0], "broker": self.bytes[1]}
        counters["requests_total"] = {_api(key): n for key, n in self.requests.items()}
        counters["responses_total"] = {_api(key): n for key, n in self.responses.items()}
        return counters

    def latencies(self) -> dict[str, dict[str, Any]]:
        """Count, sum and buckets (not summed up) of the latencies, by API."""
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
        """All counters in Prometheus' text format."""
        lines = []
        snapshot = self.snapshot()
        for name, (kind, help_) in HELP.items():
            values = snapshot.get(name) or ({} if name.endswith("_total") else {"": 0})
            lines += [f"# HELP kafkascope_{name} {help_}", f"# TYPE kafkascope_{name} {kind}"]
            label = LABELS.get(name)
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


LABELS: Final = {
    "connections_closed_total": "cause",
    "bytes_total": "side",
    "requests_total": "api",
    "responses_total": "api",
    "rewrites_total": "api",
    "undecoded_total": "api",
    "upstream_failures_total": "upstream",
    "faults_total": "rule",
    "recorder_dropped_total": "sink",
}


def _api(key: int) -> str:
    return "unknown" if key == UNKNOWN else APIS[key].name


def _escaped(text: str) -> str:
    # Brokers choose host names: bytes that are no UTF-8, what a terminal obeys.
    return spelled(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
