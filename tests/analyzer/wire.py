"""Synthetic connections for tests: frames from the declarations, events as reassembly has them."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.conversation.conversations import Conversations
from kafkascope.analyzer.model import Exchange
from kafkascope.captures.model import (
    Chunk,
    Closed,
    Connection,
    Endpoint,
    Gap,
    Opened,
    Piece,
    StreamEvent,
)
from kafkascope.dissectors.registry import (
    API_VERSIONS,
    api_named,
    encode_body,
    example,
    request_header_version,
    response_header_version,
)

MS = 1_000_000
START = 1_700_000_000_000_000_000
CLIENT = Endpoint("10.0.0.4", 51422)
BROKER = Endpoint("10.0.1.2", 9092)


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def request(
    api: str, version: int, correlation_id: int, client_id: str | None = "app", **fields: Any
) -> bytes:
    key = api_named(api).key
    kind = request_header_version(key, version)
    header = example("RequestHeader", kind) | {
        "request_api_key": key,
        "request_api_version": version,
        "correlation_id": correlation_id,
    }
    if kind:
        header["client_id"] = client_id
    body = example(f"{api}Request", version) | fields
    return framed(
        encode_body("RequestHeader", kind, header) + encode_body(f"{api}Request", version, body)
    )


def response(api: str, version: int, correlation_id: int, **fields: Any) -> bytes:
    key = api_named(api).key
    kind = response_header_version(key, version)
    header = example("ResponseHeader", kind) | {"correlation_id": correlation_id}
    body = example(f"{api}Response", version) | fields
    return framed(
        encode_body("ResponseHeader", kind, header) + encode_body(f"{api}Response", version, body)
    )


def heartbeat(correlation_id: int, client_id: str | None = "app") -> bytes:
    return request("Heartbeat", 3, correlation_id, client_id, group_id="g", member_id="m")


def beat(correlation_id: int, error_code: int = 0) -> bytes:
    return response("Heartbeat", 3, correlation_id, error_code=error_code)


def produce(correlation_id: int, acks: int = -1, records: bytes = b"", version: int = 7) -> bytes:
    topics = [{"name": "t", "partition_data": [{"index": 3, "records": records or None}]}]
    return request("Produce", version, correlation_id, acks=acks, topic_data=topics)


class Wire:
    """Events of one connection; every one is a packet a millisecond after the one before."""

    def __init__(
        self,
        *,
        handshake: bool = True,
        port: int = 9092,
        number: int = 0,
        client_first: bool = True,
        start_ns: int = START,
    ) -> None:
        client, broker = CLIENT, BROKER._replace(port=port)
        a, b = (client, broker) if client_first else (broker, client)
        self.connection = Connection(number, a, b, start_ns, handshake)
        self.client_direction = 0 if client_first else 1
        self.events: list[StreamEvent] = [Opened(self.connection)]
        self.offsets = [0, 0]
        self.packet = 0
        self.time_ns = start_ns
        self.file_at = 100

    def _send(self, direction: int, data: bytes) -> Wire:
        self.packet += 1
        self.time_ns += MS
        self.connection.last_ns = self.time_ns
        piece = Piece(0, self.time_ns, self.packet, 0, self.file_at)
        self.events.append(
            Chunk(self.connection, direction, self.offsets[direction], data, [piece])
        )
        self.offsets[direction] += len(data)
        self.file_at += len(data) + 70
        return self

    def client(self, *data: bytes) -> Wire:
        return self._send(self.client_direction, b"".join(data))

    def broker(self, *data: bytes) -> Wire:
        return self._send(1 - self.client_direction, b"".join(data))

    def gap(self, side: str, size: int | None, reason: Any = "lost") -> Wire:
        direction = self.client_direction if side == "client" else 1 - self.client_direction
        self.events.append(
            Gap(self.connection, direction, self.offsets[direction], size, self.time_ns, reason)
        )
        self.offsets[direction] += size or 0
        return self

    def close(self, side: str | None = None, how: Any = "fin") -> Wire:
        direction = None
        if side is not None:
            direction = self.client_direction if side == "client" else 1 - self.client_direction
        self.events.append(Closed(self.connection, direction, how, self.time_ns))
        return self


def told(events: Iterable[StreamEvent], context: Context | None = None) -> list[Exchange]:
    """All exchanges of these events, by number."""
    conversations = Conversations(context or Context())
    out: list[Exchange] = []
    for event in events:
        out += conversations.feed(event)
    # Each `Wire` counts its own packets.
    out = sorted(out + conversations.finish(), key=lambda each: (each.time_ns, each.origin))
    for number, exchange in enumerate(out, 1):
        exchange.number = number
    return out


def rechunked(events: Sequence[StreamEvent], cuts: Sequence[int]) -> list[StreamEvent]:
    """The same bytes and packets in other chunks: each chunk is cut after `cuts[i]` bytes (in
    turn); packets keep their numbers and times."""
    out: list[StreamEvent] = []
    turn = 0
    for event in events:
        if not isinstance(event, Chunk) or not cuts:
            out.append(event)
            continue
        at = 0
        while at < len(event.data):
            size = max(1, cuts[turn % len(cuts)])
            turn += 1
            piece = event.pieces[0]
            data = event.data[at : at + size]
            moved = piece._replace(at=piece.at + at)
            out.append(Chunk(event.connection, event.direction, event.offset + at, data, [moved]))
            at += size
    return out


def shape(exchanges: Iterable[Exchange]) -> list[tuple[Any, ...]]:
    """What of an exchange has to be equal however its bytes were cut."""
    return [
        (
            e.number,
            e.id,
            e.state,
            e.api,
            e.api_version,
            e.correlation_id,
            e.client_id,
            e.request_bytes,
            e.response_bytes,
            e.latency_ns,
            e.reason,
            e.undecoded,
            None if e.request is None else e.request.body,
            None if e.response is None else e.response.body,
        )
        for e in exchanges
    ]


__all__ = [
    "API_VERSIONS",
    "BROKER",
    "CLIENT",
    "MS",
    "START",
    "Wire",
    "beat",
    "framed",
    "heartbeat",
    "produce",
    "rechunked",
    "request",
    "response",
    "shape",
    "told",
]
