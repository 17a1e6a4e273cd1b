"""Makes `captures/samples/request-log.zst` of the demo capture: `python -m
tests.interop.demo.request_log`.

The exchanges are printed as a broker of 3.9 would have logged them, all brokers in one file. What a
capture does not tell is made up: the broker's own time is split between its queues and the handler.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from zstandard import ZstdCompressor

from kafkascope.analyzer.bodies.waits import WAITING
from kafkascope.analyzer.conversation.phases import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE
from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.model import Exchange, Request, Response
from tests.analyzer.requestlog.kafka_json import printed

SAMPLES: Final = Path(__file__).parents[3] / "captures" / "samples"
SOURCE: Final = SAMPLES / "demo.pcap.zst"
TARGET: Final = SAMPLES / "request-log.zst"
MS: Final = 1_000_000
SHARES: Final = {"requestQueueTimeMs": 0.05, "responseQueueTimeMs": 0.04, "sendTimeMs": 0.06}
"""Of the time that was not asked for."""


def line_of(exchange: Exchange) -> tuple[int, str]:
    """Return the time of a line in ns, and the line."""
    took_ns = exchange.latency_ns or 100_000
    wait_ns = min(exchange.wait_ns, took_ns)
    if exchange.api_key not in WAITING:
        # Behind a long poll: the broker read it when that was answered.
        took_ns, wait_ns = took_ns - wait_ns, 0
    end_ns = exchange.time_ns + (exchange.latency_ns or took_ns)
    own = (took_ns - wait_ns) / MS
    stages = {name: round(own * share, 3) for name, share in SHARES.items()}
    stages["remoteTimeMs"] = round(wait_ns / MS, 3)
    stages["localTimeMs"] = round(took_ns / MS - sum(stages.values()), 3)
    name, _, version = exchange.software.partition(" ")
    header: dict[str, Any] = {
        "requestApiKey": exchange.api_key,
        "requestApiVersion": exchange.api_version,
        "correlationId": exchange.correlation_id,
        "clientId": exchange.client_id,
        "requestApiKeyName": exchange.api.upper(),
    }
    user = exchange.user
    document = {
        "isForwarded": False,
        "requestHeader": header,
        "request": _body(exchange.request),
        "response": _body(exchange.response),
        "connection": f"{exchange.broker}-{exchange.client}-{exchange.connection.number}",
        "totalTimeMs": round(took_ns / MS, 3),
        **stages,
        "throttleTimeMs": (exchange.response_body or {}).get("throttle_time_ms", 0),
        "securityProtocol": "SASL_PLAINTEXT" if user else "PLAINTEXT",
        "principal": f"User:{user or 'ANONYMOUS'}",
        "listener": "SASL" if user else "PLAINTEXT",
        "clientInformation": {
            "softwareName": name or "unknown",
            "softwareVersion": version or "unknown",
        },
    }
    stamp = datetime.fromtimestamp(end_ns // MS / 1000, UTC)
    text = f"{stamp:%Y-%m-%d %H:%M:%S},{end_ns // MS % 1000:03}"
    message = json.dumps(document, separators=(",", ":"))
    return end_ns, f"[{text}] DEBUG Completed request:{message} (kafka.request.logger)"


def _body(side: Request | Response | None) -> Any:
    decoded = None if side is None else side.decoded
    return "" if decoded is None else printed(decoded.layout.body, decoded.body)


def lines() -> Iterator[str]:
    with open_capture([SOURCE]) as capture:
        exchanges = list(capture.exchanges())
        # What comes before and with a login has no line.
        logins = {each.connection.number for each in exchanges if each.api_key == SASL_HANDSHAKE}
        found = [
            line_of(each)
            for each in exchanges
            if not (each.api_key == API_VERSIONS and each.connection.number in logins)
            and each.state in ("answered", "no-reply")
            and each.api_key not in (None, SASL_HANDSHAKE, SASL_AUTHENTICATE)
            and each.request is not None
            and each.request.decoded is not None
        ]
    return (line for _, line in sorted(found))


def main() -> None:
    text = "".join(f"{line}\n" for line in lines())
    TARGET.write_bytes(ZstdCompressor(level=19).compress(text.encode()))


if __name__ == "__main__":
    main()
