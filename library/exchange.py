"""An exchange as Python programs see it: columns as attributes, bodies and records when asked."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from kafkascope.library.record import Record, records_of
from kafkascope.library.values import Attribute, duration, moment

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges import rows
    from kafkascope.analyzer.model import Cause, Note, Point, State, Undecoded
    from kafkascope.analyzer.model import Exchange as Model
    from kafkascope.library.passes import ReadingPass


class Exchange:
    """A request with its response, or with the reason why there is none. Never changes."""

    __slots__ = ("_bodies", "_model", "_origin", "_row")

    number = Attribute[int]("row", "Rank by first bytes over all connections, from 1.")
    id = Attribute[str]("row", "Hash of the file's fingerprint and the place of the first byte.")
    time_ns = Attribute[int]("row", "First byte of the request, nanoseconds since 1970 UTC.")
    connection = Attribute[int]("row", "Number of the connection, as Wireshark's tcp.stream.")
    client_address = Attribute[str]("row", "host:port.")
    broker_address = Attribute[str]("row", "host:port.")
    via = Attribute[str](
        "row",
        "host:port of the load balancer whose PROXY protocol header names the client, or empty.",
    )
    client_id = Attribute[str | None]("row", "What the client calls itself.")
    software = Attribute[str]("row", "Name and version of the client library, from ApiVersions.")
    user = Attribute[str]("row", "Who authenticated on the connection.")
    api = Attribute[str]("row", "Kafka's name of the API.")
    api_key = Attribute[int | None]("row", "Key of the API.")
    api_version = Attribute[int | None]("row", "Version of the API.")
    correlation_id = Attribute[int | None]("row", "Correlation id.")
    request_bytes = Attribute[int | None]("row", "Bytes on the wire, size field included.")
    response_bytes = Attribute[int | None]("row", "Bytes on the wire, size field included.")
    latency_ns = Attribute[int | None](
        "row", "First byte of the request to last byte of the response."
    )
    server_ns = Attribute[int | None](
        "row", "Last byte of the request to first byte of the response."
    )
    request_transfer_ns = Attribute[int | None](
        "row", "First to last byte of the request, those that were sent again included."
    )
    serving_ns = Attribute[int | None](
        "row", "`server_ns` less the round trip to the broker (docs/latency.md)."
    )
    response_transfer_ns = Attribute[int | None](
        "row", "First to last byte of the response, those that were sent again included."
    )
    rtt_ns = Attribute[int | None]("row", "Round trip from the capture point to the broker.")
    retransmissions = Attribute[int | None]("row", "Segments with bytes that were seen before.")
    zero_window_ns = Attribute[int | None](
        "row", "How long a receive window of 0 was announced meanwhile."
    )
    stalled_by: Attribute[Cause | None] = Attribute(
        "row", "Who delayed its bytes: client, broker, network."
    )
    capture_point: Attribute[Point | None] = Attribute(
        "row", "Where its packets were captured: client, broker, between."
    )
    wait_ns = Attribute[int]("row", "Part of the latency that the client requested (long poll).")
    throttle_ms = Attribute[int]("row", "Throttle time that the broker reports.")
    state: Attribute[State] = Attribute(
        "row", "answered, open, lost, no-reply, orphan, opaque or event."
    )
    reason = Attribute[str]("row", "Why there is no answer, or what opaque bytes look like.")
    errors: Attribute[tuple[rows.RowError, ...]] = Attribute(
        "row", "Errors of the response, without NONE."
    )
    expected = Attribute[bool](
        "row",
        "Whether the protocol has all of its errors in healthy clusters, too (docs/filter.md).",
    )
    topics = Attribute[tuple[str, ...]](
        "row", "Names; an id without a known name as 8 characters and ?."
    )
    implied_topics = Attribute[tuple[str, ...]](
        "row", "Topics of an incremental Fetch session that the request does not list."
    )
    partitions = Attribute[tuple[int, ...]]("row", "Partitions that it names.")
    groups = Attribute[tuple[str, ...]]("row", "Consumer, share or streams groups.")
    members = Attribute[tuple[str, ...]]("row", "Ids of group members.")
    transactional_ids = Attribute[tuple[str, ...]]("row", "Transactional ids.")
    producer_ids = Attribute[tuple[int, ...]]("row", "Producer ids.")
    acks = Attribute[int | None]("row", "Acks of a Produce request.")
    codecs = Attribute[tuple[str, ...]]("row", "Compression of its batches.")
    record_count = Attribute[int | None]("row", "Records in all batches of both sides.", "records")
    batch_count = Attribute[int | None]("row", "Record batches in it.", "batches")
    frames = Attribute[tuple[int, ...]]("row", "Packets with the first bytes of both sides.")
    undecoded: Attribute[tuple[Undecoded, ...]] = Attribute(
        "row", "What could not be decoded, and why."
    )
    notes: Attribute[tuple[Note, ...]] = Attribute("row", "What is odd about it.")
    source = Attribute[str]("row", "What it was read from: packets or request-log.")
    listener = Attribute[str]("row", "Listener of the broker, from its request log.")
    forwarded = Attribute[bool](
        "row", "Whether a TCP proxy or another broker sent the request on: counted once."
    )
    counterpart = Attribute[str]("row", "Id of the other line of a forwarded request.")
    broker_request_queue_ns = Attribute[int | None](
        "row", "Time in the broker's request queue, from its request log."
    )
    broker_local_ns = Attribute[int | None]("row", "Time in the request handler.")
    broker_remote_ns = Attribute[int | None](
        "row", "Time of waiting for followers, data, members, or the controller."
    )
    broker_response_queue_ns = Attribute[int | None](
        "row", "Time in the queue of the network thread."
    )
    broker_send_ns = Attribute[int | None]("row", "Time until the response was sent.")

    def __init__(self, row: rows.Row, model: Model, origin: ReadingPass) -> None:
        self._row = row
        self._model = model
        self._origin = origin
        self._bodies: tuple[dict[str, Any] | None, dict[str, Any] | None] | None = None

    @property
    def row(self) -> rows.Row:
        """The row of kafkascope's tables, with the names of topics that are known by now."""
        from kafkascope.analyzer.exchanges.rows import nameless_topics, renamed

        if nameless_topics(self._row):
            self._row = renamed(self._row, self._origin.names)
        return self._row

    @property
    def time(self) -> datetime:
        """First byte of the request (of the response where there is no request), UTC."""
        return moment(self._row.time_ns)

    @property
    def latency(self) -> timedelta | None:
        """First byte of the request to last byte of the response; None without one of them."""
        return duration(self._row.latency_ns)

    @property
    def wait(self) -> timedelta:
        """The part of the latency that the client asked for: long polls, joins of groups."""
        return timedelta(microseconds=self._row.wait_ns / 1000)

    @property
    def failed(self) -> bool:
        """Whether the response has an error, or no response came to a request that wants one."""
        return bool(self._row.errors) or self._row.state in ("lost", "opaque", "orphan")

    @property
    def tls(self) -> str | None:
        """Version and suite of the TLS around it; None for plaintext."""
        tls = self._row.tls
        return None if tls is None else tls.name

    @property
    def protocol(self) -> Literal["kafka", "zookeeper"]:
        """What it speaks."""
        return "kafka" if self._row.zookeeper is None else "zookeeper"

    @property
    def path(self) -> str | None:
        """The node of ZooKeeper that it is about; None for Kafka's."""
        about = self._row.zookeeper
        return None if about is None else about.path

    @property
    def event(self) -> str | None:
        """The type of a watch event of ZooKeeper; None for all else."""
        about = self._row.zookeeper
        return (about.event or None) if about is not None else None

    @property
    def request(self) -> dict[str, Any] | None:
        """The body of the request, decoded now; None where there is none, or none that could be
        decoded. Bytes are bytes, uuids 16 of them, secrets asterisks."""
        return self._both()[0]

    @property
    def response(self) -> dict[str, Any] | None:
        """The body of the response, likewise."""
        return self._both()[1]

    def _both(self) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        if self._bodies is None:
            model = self._model
            if self._origin.secrets:
                self._bodies = model.request_body, model.response_body
            else:
                from kafkascope.analyzer.exchanges.full import bodies_without_secrets

                self._bodies = bodies_without_secrets(model, self._origin.names)
        return self._bodies

    def records(self) -> Iterator[Record]:
        """Yield the records that it carries, those of a Produce and of a Fetch alike, as far as
        they can be read."""
        return records_of(self._model, self._origin)

    def frame(self, side: Literal["request", "response"]) -> bytes | None:
        """Return the bytes of a side after their size field, header included; None where they are
        missing or cut. They hold whatever was sent: only with `secrets=True`, else `UsageError`."""
        self._origin.demand_secrets("bytes of a frame")
        found = getattr(self._model, side)
        return None if found is None or found.frame.cut else bytes(found.frame.payload)

    def to_dict(self, *, full: bool = False, records_limit: int | None = None) -> dict[str, Any]:
        """Return exchange/1, see docs/json.md; `full`: with the bodies, and their records, as JSON
        has them. Secrets are masked there, always. `records_limit`: bytes of JSON for all records,
        100 MiB unless said; those beyond are left out."""
        from kafkascope.analyzer.exchanges.rows import to_json

        if not full:
            return to_json(self.row)
        from kafkascope.analyzer.exchanges.full import full_line
        from kafkascope.dissectors.codec.jsonform import loads

        names, payloads = self._origin.names, self._origin.payloads
        line = full_line(self.row, self._model, names, payloads=payloads, limit=records_limit)
        found: dict[str, Any] = loads(line)
        return found

    def __repr__(self) -> str:
        row = self._row
        if row.zookeeper is not None:
            about = f"{row.api} {self.path}" if self.path else row.api
            return f"<Exchange {row.number}: {about} of {row.client_address}>"
        return (
            f"<Exchange {row.number}: {row.api or 'opaque'} {row.api_version} of {row.client_id}>"
        )
