"""Rows: one flat, typed record per exchange, the single table definition that every output uses.

`Row` declares the columns; code that has to list them calls `columns_of(Row)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from kafkascope.analyzer.bodies.contents import NEWER, contents_of, format_notes
from kafkascope.analyzer.bodies.facts import BodyFacts, facts_in
from kafkascope.analyzer.bodies.zookeeper import zookeeper_facts
from kafkascope.analyzer.exchanges.column import (
    DURATION,
    FLAG,
    INT,
    INT32,
    INTS,
    INTS32,
    SIZE,
    TEXT,
    TEXTS,
    TIME,
    UUIDS,
    FilterField,
    Kind,
    body,
    column,
    columns_of,
    head,
)
from kafkascope.analyzer.exchanges.expected import is_expected
from kafkascope.analyzer.exchanges.stages import stages_of
from kafkascope.analyzer.model import STATES, Cause, Note, Point, State, Undecoded, ZooKeeperFacts
from kafkascope.analyzer.topics import nameless, short_id
from kafkascope.captures.model import TlsSummary
from kafkascope.dissectors.reference.codes import error_name
from kafkascope.dissectors.registry import APIS
from kafkascope.dissectors.zookeeper.types import error_name as zookeeper_error_name
from kafkascope.source import compile_function
from kafkascope.times import MS, iso_ns

if TYPE_CHECKING:
    from kafkascope.analyzer.bodies.fetch_sessions import FetchSession
    from kafkascope.analyzer.model import Exchange
    from kafkascope.analyzer.topics import TopicNames
    from kafkascope.dissectors.layout import Layout

NO_ID: Final = -(2**40)
# Stored where there is no value: correlation ids and acks may be -1.
NO_ACKS: Final = -(2**20)


class RowError(NamedTuple):
    """An error code of a response and what it refers to."""

    code: int
    name: str
    top: bool = False
    """Whether it is the error of the response itself, not of a part of it."""
    topic: str | None = None
    topic_id: bytes | None = None
    partition: int | None = None
    group: str | None = None
    message: str | None = None
    """The broker's error message, where the response has one."""


_WORD: Final = TEXT._replace(empty=None)
_WAIT: Final = DURATION._replace(empty=0)
_THROTTLE: Final = Kind("int64", "duration", empty=0)
_STATE: Final = Kind("string", "state")
_STATES: Final = ", ".join(STATES)
_ERRORS: Final = Kind(
    "errors",
    "error",
    many=True,
    json="[_error_json(each) for each in {}]",
    table="[(e.code, e.name, e.top, e.topic, e.partition, e.group, e.message) for e in {}]",
    empty=(),
)
_UNDECODED: Final = Kind(
    "undecoded", "string", many=True, json="[_undecoded_json(each) for each in {}]", empty=()
)
_NOTES: Final = Kind(
    "notes", "string", many=True, json="[_note_json(each) for each in {}]", empty=()
)
TLS_COLUMNS: Final = {
    "tls": ("name", "string", "version and suite"),
    "tls_resumed": ("resumed", "bool", "session resumed with keys of an earlier connection"),
    "tls_sni": ("server_name or None", "string", "server name that the client requested (SNI)"),
    "tls_alpn": ("protocol or None", "string", "negotiated protocol (ALPN)"),
    "tls_client": ("client or None", "string", "subject of the client's certificate"),
}
"""What JSON and tables have of the TLS around an exchange, by the name there: the attribute, its
type in tables, its meaning."""
ZOOKEEPER_COLUMNS: Final = {
    "path": ("path", "string", "znode of the request; null for Kafka"),
    "event": ("event or None", "string", "type of a ZooKeeper watch event"),
    "zk_session": ("session_id", "string", "ZooKeeper session ID"),
    "zxid": ("zxid", "int64", "ZooKeeper transaction ID (zxid) of the response"),
}
"""The same of messages of ZooKeeper."""
_TLS_JSON: Final = {name: f"{{}} and {{}}.{value}" for name, (value, _, _) in TLS_COLUMNS.items()}
_ZOOKEEPER_JSON: Final = {
    "protocol": "'kafka' if {} is None else 'zookeeper'",
    **{
        name: f"None if {{}} is None else {{}}.{value}"
        for name, (value, _, _) in ZOOKEEPER_COLUMNS.items()
    },
}
_ZOOKEEPER: Final = Kind("string", "string", table="'kafka' if {} is None else 'zookeeper'")
_VIA: Final = TEXT._replace(json="{} or None", table="{} or None")
_TLS: Final = Kind("string", "string", table="{} and {}.name")


RowSource: TypeAlias = Literal["packets", "request-log"]
SOURCES: Final[tuple[RowSource, ...]] = ("packets", "request-log")
_SOURCE: Final = Kind("string", "string", empty="packets")
BROKER_TIMES: Final = ("request_queue", "local", "remote", "response_queue", "send")
"""Stages of a request inside the broker, in their order."""
BROKER_COLUMNS: Final = tuple(f"broker_{name}_ns" for name in BROKER_TIMES)
_BROKER_VALUES: Final = tuple(f"row.{name}" for name in BROKER_COLUMNS)


def _stage(name: str, text: str, asked: FilterField, **more: Any) -> Any:
    """Declare a column of nanoseconds that JSON has in milliseconds, by a `name` of its own."""
    return head(DURATION, text, asked, json={name: "None if {} is None else {} / MS"}, **more)


def _broker_time(name: str, text: str) -> Any:
    """Declare a column of nanoseconds; JSON has all of them in one object, in milliseconds."""
    first = name == BROKER_TIMES[0]
    return head(
        DURATION,
        text,
        FilterField(f"broker.{name}", f"broker.{name} > 50ms"),
        json={"broker_times": f"_broker_times_json({', '.join(_BROKER_VALUES)})"} if first else {},
    )


@dataclass(slots=True, unsafe_hash=True)  # Not frozen, as `Exchange`, but never changed.
class Row:
    """One exchange as a row: declares the columns in the order of all outputs. Lists keep the order
    of the wire, without duplicates.

    A new column is a line here and one where its value is collected (`row_of`; values from bodies
    come from `BodyFacts`). See `column` for the meaning of the terms.
    """

    number: int = head(
        INT,
        "from 1, in the order of first bytes",
        FilterField("number", "number == 1206", doc="number of the exchange, from 1"),
        own=True,
    )
    id: str = column(
        TEXT,
        "hash of the file's fingerprint and the position of the first byte",
        json={"exchange_id": "{}"},
        table="exchange_id",
        own=True,
    )
    time_ns: int = head(
        TIME,
        "first byte of the request (of the response where there is no request)",
        FilterField("time", "time >= 12:03:00", ("frame.time",), doc="first byte of the request"),
        json={"time": "iso_ns({})"},
        own=True,
    )
    connection: int = column(
        INT,
        "as Wireshark's tcp.stream",
        FilterField("conn", "conn == 17", ("tcp.stream",), doc="number of the connection, from 0"),
    )
    client_address: str = column(TEXT, "host:port")
    broker_address: str = column(TEXT, "host:port")
    client_id: str | None = head(
        _WORD,
        "client id",
        FilterField("client", "client == orders-svc", ("client_id", "client.id")),
    )
    software: str = head(
        TEXT,
        "name and version of the client library, from ApiVersions",
        FilterField("software", "software ~ librdkafka", ("client_software_name",), cost="s"),
    )
    user: str = head(
        TEXT,
        "user that authenticated on the connection",
        FilterField("user", "user == alice", cost="s"),
    )
    api_key: int | None = head(
        INT32._replace(filter="api"),
        "key of the API",
        FilterField(
            "api",
            "api in {Produce, Fetch}",
            ("api_key", "request_key", "response_key", "kafka"),
            doc="API of the request",
        ),
    )
    api: str = head(TEXT, "Kafka's name")
    api_version: int | None = head(
        INT32,
        "version of the API",
        FilterField(
            "version",
            "api == Fetch and version < 12",
            ("api_version", "request.version", "response.version"),
        ),
    )
    flexible: bool = column(
        FLAG,
        "the version has compact types and tags",
        FilterField("flexible", "flexible", cost="i"),
        json={},
        table=None,
    )
    correlation_id: int | None = head(
        INT,
        "correlation id",
        FilterField("correlation_id", "correlation_id == 4711"),
        absent=NO_ID,
        own=True,
    )
    request_bytes: int | None = head(
        SIZE,
        "on the wire, size field included",
        FilterField("request.bytes", "request.bytes > 1MiB", doc="size of the request on the wire"),
        own=True,
    )
    response_bytes: int | None = head(
        SIZE,
        "on the wire, size field included",
        FilterField(
            "response.bytes", "response.bytes > 1MB", doc="size of the response on the wire"
        ),
        own=True,
    )
    latency_ns: int | None = head(
        DURATION,
        "first byte of the request to last byte of the response",
        FilterField("latency", "latency > 500ms"),
        json={"latency_ms": "None if {} is None else {} / MS", "latency_ns": "{}"},
        own=True,
    )
    server_ns: int | None = head(
        DURATION, "last byte of the request to first byte of the response", own=True
    )
    request_transfer_ns: int | None = _stage(
        "request_transfer_ms",
        "first to last byte of the request, those that were sent again included",
        FilterField("request.transfer", "request.transfer > 100ms"),
        own=True,
    )
    serving_ns: int | None = _stage(
        "server_ms",
        "last byte of the request to first byte of the response, less the round trip to the broker",
        FilterField("server", "server > 500ms"),
        own=True,
    )
    response_transfer_ns: int | None = _stage(
        "response_transfer_ms",
        "first to last byte of the response, those that were sent again included",
        FilterField("response.transfer", "response.transfer > 100ms"),
        own=True,
    )
    wait_ns: int = body(
        _WAIT,
        "part of the latency that the client requested (long poll, group forming)",
        FilterField("wait", "latency > 1s and not wait", truth=True),
        json={"wait_ms": "{} / MS if {} % MS else {} // MS"},
        own=True,
    )
    rtt_ns: int | None = _stage(
        "rtt_ms",
        "round trip from the capture point to the broker",
        FilterField("rtt", "rtt > 50ms"),
    )
    retransmissions: int | None = head(
        INT,
        "segments of the exchange with bytes that were seen before",
        FilterField("retransmissions", "retransmissions", truth=True),
    )
    zero_window_ns: int | None = _stage(
        "zero_window_ms",
        "how long a receive window of 0 was announced meanwhile",
        FilterField("zero_window", "zero_window > 200ms", truth=True),
    )
    stalled_by: Cause | None = head(
        _WORD,
        "who delayed its bytes: client, broker, network",
        FilterField("stalled_by", "stalled_by == network"),
    )
    capture_point: Point | None = head(
        _WORD,
        "where its packets were captured, by the handshake: client, broker, between",
        FilterField("capture_point", "capture_point == client"),
    )
    throttle_ms: int = body(
        _THROTTLE,
        "throttle time that the broker reports",
        FilterField("throttle", "throttle > 0", ("throttle_time", "throttle_time_ms"), truth=True),
    )
    state: State = head(
        _STATE,
        _STATES,
        FilterField("state", "state in {open, lost}", doc=f"how it ended: {_STATES}"),
    )
    reason: str = head(TEXT, "why there is no response, or what opaque bytes look like")
    errors: tuple[RowError, ...] = body(
        _ERRORS,
        "errors in the response except NONE, each with its topic, partition or group",
        FilterField(
            "error",
            "error in {UNKNOWN_MEMBER_ID, 27}",
            doc="errors at any level of the response; NONE if there are none",
            truth=True,
        ),
    )
    expected: bool = body(
        FLAG,
        "whether all of its errors occur in healthy clusters, too (docs/filter.md)",
        FilterField(
            "expected",
            "failed and not expected",
            doc="its errors are part of the protocol, and no finding cites them",
        ),
    )
    topics: tuple[str, ...] = body(
        TEXTS,
        "names; a topic ID without a known name as 8 characters and `?`",
        FilterField(
            "topic",
            'topic contains ".dlq"',
            ("topic_name",),
            doc="topics in its messages or in its fetch session",
        ),
    )
    implied_topics: tuple[str, ...] = body(
        TEXTS,
        "topics of an incremental Fetch session that the request does not list, at most 2,000",
    )
    topic_ids: tuple[bytes, ...] = body(
        UUIDS, "topic IDs in its messages", FilterField("topic.id", "topic.id", ("topic_id",))
    )
    partitions: tuple[int, ...] = body(
        INTS32,
        "partitions in its messages",
        FilterField("partition", "topic == orders and partition in {0, 3..5}", ("partition_id",)),
    )
    groups: tuple[str, ...] = body(
        TEXTS,
        "consumer, share or streams groups",
        FilterField("group", "group == orders-app", ("consumer_group", "group_id")),
    )
    members: tuple[str, ...] = body(
        TEXTS, "group member ids", FilterField("member", "member ~ ^rdkafka", ("member_id",))
    )
    generations: tuple[int, ...] = body(
        INTS32,
        "generation or member epoch",
        FilterField("generation", "generation == 41", ("generation_id", "member_epoch")),
    )
    producer_ids: tuple[int, ...] = body(
        INTS, "producer ids", FilterField("producer.id", "producer.id == 1042", ("producer_id",))
    )
    producer_epochs: tuple[int, ...] = body(
        INTS32,
        "producer epochs",
        FilterField("producer.epoch", "producer.epoch > 0", ("producer_epoch",)),
    )
    transactional_ids: tuple[str, ...] = body(
        TEXTS, "transactional ids", FilterField("txn", "txn == tx-1", ("transactional_id",))
    )
    acks: int | None = body(
        INT32,
        "acks of a Produce request",
        FilterField("acks", "acks == 0", ("required_acks",)),
        absent=NO_ACKS,
    )
    codecs: tuple[str, ...] = body(
        TEXTS,
        "compression of its batches: none, gzip, snappy, lz4, zstd",
        FilterField("codec", "codec == zstd", ("batch_codec", "message_codec")),
    )
    records: int | None = body(
        INT,
        "records in all batches of both sides; null where the API carries none",
        FilterField("records", "records > 1000", doc="number of records", truth=True),
        own=True,
    )
    batches: int | None = body(
        INT,
        "number of record batches",
        FilterField("batches", "batches > 10", truth=True),
        own=True,
    )
    offset: int | None = body(
        INT, "base offset that the broker assigned in the first partition of a Produce", own=True
    )
    frames: tuple[int, ...] = column(
        INTS,
        "packets with the first byte of request and response",
        FilterField(
            "frame",
            "frame == 88120",
            ("frame.number", "request_frame", "response_frame"),
            doc="packets with the first byte of request and response",
            cost="i",
        ),
        own=True,
    )
    undecoded: tuple[Undecoded, ...] = column(
        _UNDECODED,
        "bytes that could not be decoded, and why",
        FilterField(
            "undecoded",
            "undecoded == surplus",
            ("_ws.malformed",),
            doc="why bytes of it could not be decoded: surplus, malformed, header, other-layout, "
            "unknown-api, ...",
        ),
    )
    notes: tuple[Note, ...] = column(_NOTES, "anomalies of the exchange")
    tls: TlsSummary | None = head(
        _TLS,
        "TLS version and cipher suite; null for plaintext",
        FilterField(
            "tls", "tls contains AES_256", doc="TLS version and cipher suite, if encrypted"
        ),
        json=_TLS_JSON,
    )
    zookeeper: ZooKeeperFacts | None = head(
        _ZOOKEEPER, "protocol: kafka, zookeeper", json=_ZOOKEEPER_JSON, table="protocol"
    )
    via: str = column(
        _VIA,
        "host:port of the load balancer whose PROXY protocol header names the client; null "
        "without one",
    )

    source: RowSource = head(
        _SOURCE,
        f"what it was read from: {', '.join(SOURCES)}",
        FilterField("source", "source == request-log"),
    )
    listener: str = head(
        _VIA,
        "listener of the broker, from its request log; null for packets",
        FilterField("listener", "listener == INTERNAL"),
    )
    forwarded: bool = head(
        FLAG,
        "sent on by another broker to the controller, or by a TCP proxy: counted once",
        FilterField("forwarded", "not forwarded"),
    )
    counterpart: str = head(
        _VIA, "exchange ID of the other line of a forwarded request; null without one"
    )
    broker_request_queue_ns: int | None = _broker_time(
        "request_queue", "time in the broker's request queue, from its request log"
    )
    broker_local_ns: int | None = _broker_time(
        "local", "time in the request handler: the log is read or written"
    )
    broker_remote_ns: int | None = _broker_time(
        "remote", "time of waiting for followers, data, members, or the controller"
    )
    broker_response_queue_ns: int | None = _broker_time(
        "response_queue", "time in the queue of the network thread"
    )
    broker_send_ns: int | None = _broker_time("send", "time until the response was sent")

    @property
    def latency_beyond_wait_ns(self) -> int | None:
        return None if self.latency_ns is None else max(0, self.latency_ns - self.wait_ns)

    @property
    def serving_beyond_wait_ns(self) -> int | None:
        return None if self.serving_ns is None else max(0, self.serving_ns - self.wait_ns)


address = lru_cache(4096)(str)
"""Returns the text of an endpoint."""


def row_of(exchange: Exchange, names: TopicNames) -> Row:
    """Return the row of an exchange, with the topic names known so far."""
    request, response = exchange.request, exchange.response
    asking = answering = latency = server = None
    frames: tuple[int, ...] = ()
    if request is not None:
        asking = request.spot
        frames = (asking.packet,)
    if response is not None:
        answering = response.spot
        frames = (*frames, answering.packet)
        if asking is not None:
            latency = answering.last_ns - asking.first_ns
            server = answering.first_ns - asking.last_ns
    if latency is None and exchange.sizeless:
        latency = exchange.latency_ns
    stages = stages_of(exchange)
    key, version = exchange.api_key, exchange.api_version
    layout = None
    facts = exchange.facts
    if facts is None:
        facts, layout = collected(exchange)
    contents = contents_of(facts.blobs)
    notes = contents.notes
    if contents.batches and (contents.magics or (version or 0) < NEWER):
        notes += format_notes(key, version, contents.magics)
    ids = facts.topic_ids
    topics = facts.topics
    if ids:
        topics = tuple(dict.fromkeys((*topics, *(names.get(i) or short_id(i) for i in ids))))
    errors: tuple[RowError, ...] = ()
    about = exchange.zookeeper
    if facts.errors and about is not None:
        errors = tuple(
            [
                RowError(code, zookeeper_error_name(code), top, message=message)
                for code, top, *_, message in facts.errors
            ]
        )
    elif facts.errors:
        # A response need not repeat the group of its request.
        group = facts.groups[0] if len(facts.groups) == 1 else None
        errors = tuple([_error(each, names, group) for each in facts.errors])
    first = asking or answering
    session = exchange.fetch_session
    # By position, in the order of the fields: this runs for every exchange.
    return Row(
        exchange.number,
        exchange.id,
        exchange.time_ns if first is None else first.first_ns,
        exchange.connection.number,
        address(exchange.client),
        address(exchange.broker),
        exchange.client_id,
        exchange.software,
        exchange.user,
        key,
        exchange.api,
        version,
        is_flexible(key, version) if layout is None else layout.body.flexible,
        exchange.correlation_id,
        exchange.request_bytes,
        exchange.response_bytes,
        latency,
        server,
        stages.request_ns,
        stages.server_ns,
        stages.response_ns,
        exchange.wait_ns,
        *stages[3:],
        facts.throttle_ms,
        exchange.state,
        exchange.reason,
        errors,
        bool(errors) and is_expected(key, [error.code for error in errors]),
        topics,
        () if session is None else _implied(session, topics, names),
        ids,
        facts.partitions,
        facts.groups,
        facts.members,
        facts.generations,
        _both(facts.producer_ids, contents.producer_ids),
        _both(facts.producer_epochs, contents.producer_epochs),
        facts.transactional_ids,
        facts.acks,
        contents.codecs,
        contents.records,
        contents.batches,
        facts.offset if facts.offset is None or facts.offset >= 0 else None,
        frames,
        exchange.undecoded,
        exchange.notes + notes if notes else exchange.notes,
        exchange.tls,
        about,
        exchange.connection.via,
        *_logged(exchange),
    )


PACKETS: Final = ("packets", "", False, "", None, None, None, None, None)
"""Values of the last columns where there is no line of a request log."""
FORWARDED: Final = (*PACKETS[:2], True, *PACKETS[3:])
"""The same on the leg of a TCP proxy."""


def _logged(exchange: Exchange) -> tuple[Any, ...]:
    """Return the values of the last columns, from what a request log says."""
    logged = exchange.logged
    if logged is None:
        return FORWARDED if exchange.connection.forwarded else PACKETS
    return (
        SOURCES[0 if logged.packets else 1],
        logged.listener,
        logged.forwarded,
        logged.counterpart,
        *logged.times[: len(BROKER_TIMES)],
    )


def collected(exchange: Exchange) -> tuple[BodyFacts, Layout | None]:
    """Return what the bodies say, and the layout of the first one that is there."""
    request, response = exchange.request, exchange.response
    sent = None if request is None else request.decoded
    received = None if response is None else response.decoded
    if exchange.zookeeper is not None:
        return zookeeper_facts(sent, received), None
    first = sent or received
    payloads = (
        b"" if request is None else request.frame.payload,
        b"" if response is None else response.frame.payload,
    )
    return facts_in(sent, received, payloads), None if first is None else first.layout


def _both(own: tuple[int, ...], found: tuple[int, ...]) -> tuple[int, ...]:
    """Return the values from fields, then those from batches, without duplicates."""
    return tuple(dict.fromkeys((*own, *found))) if own else found


def _implied(session: FetchSession, listed: tuple[str, ...], names: TopicNames) -> tuple[str, ...]:
    """Return the topics of a fetch session that the request itself does not list."""
    if not session.incremental or session.implied is None:
        return ()
    found = dict.fromkeys(
        each if isinstance(each, str) else names.get(each) or short_id(each)
        for each in session.implied.topics
    )
    known = frozenset(listed)
    return tuple([topic for topic in found if topic not in known])


@lru_cache(4096)
def is_flexible(key: int | None, version: int | None) -> bool:
    """Return whether the version of an API has compact types and tags."""
    return key in APIS and version is not None and version in APIS[key].flexible


def _error(found: tuple[Any, ...], names: TopicNames, group_requested: str | None) -> RowError:
    code, top, topic, topic_id, partition, group, message = found
    if not topic and topic_id is None:
        group = group or group_requested
    if topic_id is not None and not any(topic_id):
        topic_id = None
    if not topic and topic_id is not None:
        topic = names.get(topic_id) or short_id(topic_id)
    return RowError(code, error_name(code), top, topic, topic_id, partition, group, message)


def codes_of(row: Row) -> frozenset[int]:
    return frozenset([error.code for error in row.errors])


def renamed(row: Row, names: TopicNames) -> Row:
    """Return the row with topic names that were learned after it was made; the same row when there
    are none."""
    named, implied = names.late_all(row.topics), names.late_all(row.implied_topics)
    if named is row.topics and implied is row.implied_topics:
        return row
    errors = tuple(
        e if e.topic is None else e._replace(topic=names.late(e.topic)) for e in row.errors
    )
    return replace(row, topics=named, implied_topics=implied, errors=errors)


def nameless_topics(row: Row) -> list[str]:
    """Return the placeholders of topics, listed or implied, whose names are not known yet."""
    topics = (*row.topics, *row.implied_topics) if row.implied_topics else row.topics
    return [topic for topic in topics if nameless(topic)]


def blank(**known: Any) -> Row:
    """Return a row with the given values and empty ones elsewhere."""
    empty = {each.name: each.column.kind.empty for each in columns_of(Row)}
    return Row(**empty | known)


def to_json(row: Row) -> dict[str, Any]:
    """Return the exchange/1 object of a row; orjson or `dissectors.jsonform.dumps` can write it."""
    return _json_writer()(row)


@cache
def _json_writer() -> Callable[[Row], dict[str, Any]]:
    """Return `to_json` as straight-line code: it runs for every exchange."""
    pairs = [f"{name!r}: {text}," for each in columns_of(Row) for name, text in each.json.items()]
    body = "\n        ".join(('"schema": "exchange/1",', *pairs))
    source = f"def to_json(row):\n    return {{\n        {body}\n    }}\n"
    made: Callable[[Row], dict[str, Any]] = compile_function(
        "to_json", source, JSON_NAMES, "exchange/1"
    )
    return made


def _broker_times_json(*times: int | None) -> dict[str, float | None] | None:
    """Return the broker's times in milliseconds; None where there is none."""
    if all(each is None for each in times):
        return None
    return {
        f"{name}_ms": None if each is None else each / MS
        for name, each in zip(BROKER_TIMES, times, strict=True)
    }


def _error_json(error: RowError) -> dict[str, Any]:
    out: dict[str, Any] = {"code": error.code, "name": error.name}
    for name in ("topic", "partition", "group", "message"):
        value = getattr(error, name)
        if value is not None:
            out[name] = value
    return out


def _undecoded_json(u: Undecoded) -> dict[str, Any]:
    out = {"side": u.side, "reason": u.reason, "offset": u.offset, "bytes": u.bytes}
    return out | ({"text": u.text} if u.text else {}) | ({"path": u.path} if u.path else {})


def _note_json(note: Note) -> dict[str, Any]:
    out = {"severity": note.severity, "text": note.text}
    return out | ({"side": note.side} if note.side else {})


JSON_NAMES: Final = {
    "MS": MS,
    "iso_ns": iso_ns,
    **{
        each.__name__: each
        for each in (_error_json, _undecoded_json, _note_json, _broker_times_json)
    },
}
"""Names that the expressions of columns use."""
