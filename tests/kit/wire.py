"""Synthetic connections for tests: frames from the declarations, events as reassembly has them."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.conversation.conversations import Conversations
from kafkascope.analyzer.exchanges.pairs import exchange_of
from kafkascope.analyzer.model import Exchange
from kafkascope.captures import model
from kafkascope.dissectors import registry
from kafkascope.dissectors.layout import ArrayWire, StructWire, default_of
from tests.kit.batches import batch


def metadata(*nodes: tuple[int, str, int], leader: int = 1, epoch: int = 1) -> dict[str, Any]:
    """A Metadata response with these brokers, and a topic with one partition."""
    partition = {"leader_id": leader, "leader_epoch": epoch, "replica_nodes": [1, 2]}
    partition |= {"isr_nodes": [1], "offline_replicas": [2]}
    topic = {"name": "orders", "partitions": [partition], "topic_authorized_operations": 0}
    brokers = [{"node_id": n, "host": h, "port": p, "rack": "a"} for n, h, p in nodes]
    return {"brokers": brokers, "cluster_id": "c", "controller_id": 1, "topics": [topic]}


MS = 1_000_000
SECOND = 1000 * MS
START = 1_700_000_000_000_000_000
CLIENT = model.Endpoint("10.0.0.4", 51422)
BROKER = model.Endpoint("10.0.1.2", 9092)


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def message(name: str, version: int, fields: dict[str, Any]) -> bytes:
    """The bytes of a message; what is not given, at any depth, has its default."""
    return registry.encode_body(name, version, full_body(name, version, fields))


def full_body(name: str, version: int, fields: dict[str, Any]) -> dict[str, Any]:
    """A body in which all that is not given, at any depth, has its default."""
    body: dict[str, Any] = _filled(registry.layout_of(name, version).body, fields)
    return body


def _filled(wire: Any, value: Any) -> Any:
    match wire, value:
        case StructWire(), dict():
            slots = {slot.name: slot for slot in (*wire.slots, *wire.tags)}
            given = {n: _filled(slots[n].wire, v) for n, v in value.items() if n in slots}
            return {n: default_of(slot) for n, slot in slots.items()} | value | given
        case ArrayWire(), list():
            return [_filled(wire.element, each) for each in value]
    return value


def request(
    api: str, version: int, correlation_id: int, /, client_id: str | None = "app", **fields: Any
) -> bytes:
    key = registry.api_named(api).key
    kind = registry.request_header_version(key, version)
    header = {"request_api_key": key, "request_api_version": version}
    header |= {"correlation_id": correlation_id} | ({"client_id": client_id} if kind else {})
    return framed(
        message("RequestHeader", kind, header) + message(f"{api}Request", version, fields)
    )


def response(api: str, version: int, correlation_id: int, /, **fields: Any) -> bytes:
    kind = registry.response_header_version(registry.api_named(api).key, version)
    header = message("ResponseHeader", kind, {"correlation_id": correlation_id})
    return framed(header + message(f"{api}Response", version, fields))


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
        self.connection = model.Connection(number, a, b, start_ns, handshake)
        self.client_direction = 0 if client_first else 1
        self.events: list[model.StreamEvent] = [model.Opened(self.connection)]
        self.offsets = [0, 0]
        self.packet = 0
        self.time_ns = start_ns
        self.file_at = 100

    def _send(self, direction: int, data: bytes) -> Wire:
        self.packet += 1
        self.time_ns += MS
        self.connection.last_ns = self.time_ns
        piece = model.Piece(0, self.time_ns, self.packet, 0, self.file_at)
        self.events.append(
            model.Chunk(self.connection, direction, self.offsets[direction], data, [piece])
        )
        self.offsets[direction] += len(data)
        self.file_at += len(data) + 70
        return self

    def client(self, *data: bytes) -> Wire:
        return self._send(self.client_direction, b"".join(data))

    def broker(self, *data: bytes) -> Wire:
        return self._send(1 - self.client_direction, b"".join(data))

    def exchange(
        self,
        api: str,
        version: int,
        number: int,
        answer: Mapping[str, Any] | None = None,
        /,
        client: str | None = "app",
        **asked: Any,
    ) -> Wire:
        """A request with these fields, and its response."""
        self.client(request(api, version, number, client, **asked))
        return self.broker(response(api, version, number, **(answer or {})))

    def fetch(
        self,
        number: int,
        offset: int = 0,
        blob: bytes | None = None,
        *,
        topic: str = "orders",
        version: int = 11,
        client: str = "app",
        asked: dict[str, Any] | None = None,
        answer: dict[str, Any] | None = None,
        **fields: Any,
    ) -> Wire:
        """A Fetch of one partition and its response, whose partition has these fields."""
        part = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1000}
        topics = [{"topic": topic, "partitions": [part]}]
        done = {"responses": [{"topic": topic, "partitions": [partition(0, blob, **fields)]}]}
        done |= answer or {}
        more = {"client": client, "topics": topics} | (asked or {})
        return self.exchange("Fetch", version, number, done, **more)

    def write(
        self,
        number: int,
        blob: bytes | None = None,
        topic: str = "t",
        index: int = 0,
        *,
        client: str = "app",
        **fields: Any,
    ) -> Wire:
        """A Produce to one partition and its response, whose partition has these fields."""
        data = [{"name": topic, "partition_data": [{"index": index, "records": blob}]}]
        done = [{"name": topic, "partition_responses": [{"index": index} | fields]}]
        more = {"client": client, "acks": -1, "topic_data": data}
        return self.exchange("Produce", 7, number, {"responses": done}, **more)

    def gap(self, side: str, size: int | None, reason: Any = "lost") -> Wire:
        direction = self.client_direction if side == "client" else 1 - self.client_direction
        self.events.append(
            model.Gap(
                self.connection, direction, self.offsets[direction], size, self.time_ns, reason
            )
        )
        self.offsets[direction] += size or 0
        return self

    def close(self, side: str | None = None, how: Any = "fin") -> Wire:
        direction = None
        if side is not None:
            direction = self.client_direction if side == "client" else 1 - self.client_direction
        self.events.append(model.Closed(self.connection, direction, how, self.time_ns))
        return self


def told(events: Iterable[model.StreamEvent], context: Context | None = None) -> list[Exchange]:
    """All exchanges of these events, by number."""
    conversations = Conversations(context or Context())
    out: list[Exchange] = []
    for event in events:
        out += map(exchange_of, conversations.feed(event))
    # Each `Wire` counts its own packets.
    out = sorted(
        [*out, *map(exchange_of, conversations.finish())],
        key=lambda each: (each.time_ns, each.origin),
    )
    for number, exchange in enumerate(out, 1):
        exchange.number = number
    return out


def rechunked(events: Sequence[model.StreamEvent], cuts: Sequence[int]) -> list[model.StreamEvent]:
    """The same bytes and packets in other chunks: each chunk is cut after `cuts[i]` bytes (in
    turn); packets keep their numbers and times."""
    out: list[model.StreamEvent] = []
    turn = 0
    for event in events:
        if not isinstance(event, model.Chunk) or not cuts:
            out.append(event)
            continue
        at = 0
        while at < len(event.data):
            size = max(1, cuts[turn % len(cuts)])
            turn += 1
            piece = event.pieces[0]
            data = event.data[at : at + size]
            moved = piece._replace(at=piece.at + at)
            out.append(
                model.Chunk(event.connection, event.direction, event.offset + at, data, [moved])
            )
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


def records(first: int, count: int = 1) -> bytes:
    return batch([(None, b"v")] * count, base_offset=first)


def partition(number: int = 0, blob: bytes | None = None, **fields: Any) -> dict[str, Any]:
    """A partition of a Fetch response, at the end of a log of 100 records."""
    answer = {"partition_index": number, "error_code": 0, "records": blob}
    answer |= {"high_watermark": 100, "last_stable_offset": 100}
    answer |= {"log_start_offset": 0, "aborted_transactions": None}
    return answer | fields


CONVERSATION = (
    Wire()
    .client(request("ApiVersions", 3, 0, client_software_name="lib"))
    .broker(response("ApiVersions", 3, 0))
    .client(heartbeat(1), heartbeat(2), produce(3, acks=0, records=b"abc"))
    .broker(beat(1))
    .broker(beat(2, 27))
    .client(produce(4, records=bytes(300)), framed(b"?" * 20), heartbeat(5))
    .broker(response("Produce", 7, 4), beat(5), beat(99))
    .client(heartbeat(6))
    .close("broker")
    .close()
    .events
)


def produced(**partition: Any) -> bytes:
    answer = {"index": 3, "base_offset": 88123, "log_start_offset": 0} | partition
    topics = [{"name": "t", "partition_responses": [answer]}]
    return response("Produce", 7, 1, responses=topics)
