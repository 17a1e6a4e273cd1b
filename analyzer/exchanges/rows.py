"""Rows: one flat, typed record per exchange, the single table definition that every output uses.

`Row` declares the columns; code that has to list them calls `columns_of(Row)`.
"""

# Annotations are objects here, not text: evaluating the text would take 3 ms of each start.
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

from kafkascope.analyzer.bodies.contents import NEWER, contents_of, format_notes
from kafkascope.analyzer.bodies.dissection import OTHER_LAYOUT
from kafkascope.analyzer.bodies.facts import BodyFacts, collector
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
    Asked,
    Kind,
    RowColumn,
    columns_of,
)
from kafkascope.analyzer.exchanges.expected import is_expected
from kafkascope.analyzer.model import STATES, Note, State, Undecoded, ZooKeeperFacts
from kafkascope.analyzer.times import iso_ns
from kafkascope.analyzer.topics import nameless, short_id
from kafkascope.captures.model import TlsSummary
from kafkascope.dissectors.codec.source import compile_function
from kafkascope.dissectors.reference.codes import error_name
from kafkascope.dissectors.registry import APIS
from kafkascope.dissectors.values import Uuid
from kafkascope.dissectors.zookeeper.types import error_name as zookeeper_error_name

if TYPE_CHECKING:
    from kafkascope.analyzer.bodies.fetch_sessions import FetchSession
    from kafkascope.analyzer.model import Exchange
    from kafkascope.analyzer.topics import TopicNames
    from kafkascope.dissectors.layout import Layout

NO_ID: Final = -(2**40)
NO_ACKS: Final = -(2**20)
"""Stored where there is no value: correlation ids and acks may be -1."""
MOST_SHOWN: Final = 3
"""Topics, groups or partitions that `result` names before it only counts the others."""


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


MS: Final = 1_000_000
_WAIT: Final = DURATION._replace(empty=0)
_THROTTLE: Final = Kind("int64", "duration", empty=0)
_STATE: Final = Kind("string", "state", pack="STATE_NUMBERS[{}]")
_ERRORS: Final = Kind(
    "errors",
    "error",
    many=True,
    json="[_error_json(each) for each in {}]",
    table="[(e.code, e.name, e.top, e.topic, e.partition, e.group, e.message) for e in {}]",
    load="tuple([RowError(**each) for each in {}])",
    pack="(tuple([e.code for e in {}]) if {} else ())",
    empty=(),
)
_UNDECODED: Final = Kind(
    "undecoded",
    "string",
    many=True,
    json="[_undecoded_json(each) for each in {}]",
    load="tuple([Undecoded(**each) for each in {}])",
    empty=(),
)
_NOTES: Final = Kind(
    "notes",
    "string",
    many=True,
    json="[_note_json(each) for each in {}]",
    load="tuple([Note(**each) for each in {}])",
    empty=(),
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
_ZOOKEEPER: Final = Kind(
    "string",
    "string",
    table="'kafka' if {} is None else 'zookeeper'",
    load="_zookeeper_of_table(values)",
)
_VIA: Final = TEXT._replace(json="{} or None", table="{} or None", load="{} or ''")
_TLS: Final = Kind(
    "string",
    "string",
    table="{} and {}.name",
    load="_summary_of_table(values)",
)


@dataclass(slots=True, unsafe_hash=True)  # Not frozen, as `Exchange`, but never changed.
class Row:
    """One exchange as a row: declares the columns in the order of all outputs. Lists keep the order
    of the wire, without duplicates.

    A new column is a line here and one where its value is collected (`row_of`; values from bodies
    come from `BodyFacts`). See `column` for the meaning of the terms.
    """

    number: Annotated[
        int,
        RowColumn(
            INT,
            "from 1, in the order of first bytes",
            Asked("number", "number == 1206", doc="number of the exchange, from 1"),
            "head",
            own=True,
        ),
    ]
    id: Annotated[
        str,
        RowColumn(
            TEXT,
            "hash of the file's fingerprint and the position of the first byte",
            json={"exchange_id": "{}"},
            table="exchange_id",
            own=True,
        ),
    ]
    time_ns: Annotated[
        int,
        RowColumn(
            TIME,
            "first byte of the request (of the response where there is no request)",
            Asked("time", "time >= 12:03:00", ("frame.time",), doc="first byte of the request"),
            "head",
            json={"time": "iso_ns({})"},
            own=True,
        ),
    ]
    connection: Annotated[
        int,
        RowColumn(
            INT,
            "as Wireshark's tcp.stream",
            Asked("conn", "conn == 17", ("tcp.stream",), doc="number of the connection, from 0"),
        ),
    ]
    client_address: Annotated[str, RowColumn(TEXT, "host:port")]
    broker_address: Annotated[str, RowColumn(TEXT, "host:port")]
    client_id: Annotated[
        str | None,
        RowColumn(
            TEXT._replace(empty=None),
            "client id",
            Asked("client", "client == orders-svc", ("client_id", "client.id")),
            "head",
        ),
    ]
    software: Annotated[
        str,
        RowColumn(
            TEXT,
            "name and version of the client library, from ApiVersions",
            Asked("software", "software ~ librdkafka", ("client_software_name",), cost="s"),
            "head",
        ),
    ]
    user: Annotated[
        str,
        RowColumn(
            TEXT,
            "user that authenticated on the connection",
            Asked("user", "user == alice", cost="s"),
            "head",
        ),
    ]
    api_key: Annotated[
        int | None,
        RowColumn(
            INT32._replace(filter="api"),
            "key of the API",
            Asked(
                "api",
                "api in {Produce, Fetch}",
                ("api_key", "request_key", "response_key", "kafka"),
                doc="API of the request",
            ),
            "head",
        ),
    ]
    api: Annotated[str, RowColumn(TEXT, "Kafka's name", told_by="head")]
    api_version: Annotated[
        int | None,
        RowColumn(
            INT32,
            "version of the API",
            Asked(
                "version",
                "api == Fetch and version < 12",
                ("api_version", "request.version", "response.version"),
            ),
            "head",
        ),
    ]
    flexible: Annotated[
        bool,
        RowColumn(
            FLAG._replace(load="is_flexible(values['api_key'], values['api_version'])"),
            "the version has compact types and tags",
            Asked("flexible", "flexible", cost="i"),
            json={},
            table=None,
        ),
    ]
    correlation_id: Annotated[
        int | None,
        RowColumn(
            INT,
            "correlation id",
            Asked("correlation_id", "correlation_id == 4711"),
            "head",
            NO_ID,
            own=True,
        ),
    ]
    request_bytes: Annotated[
        int | None,
        RowColumn(
            SIZE,
            "on the wire, size field included",
            Asked("request.bytes", "request.bytes > 1MiB", doc="size of the request on the wire"),
            "head",
            own=True,
        ),
    ]
    response_bytes: Annotated[
        int | None,
        RowColumn(
            SIZE,
            "the same",
            Asked("response.bytes", "response.bytes > 1MB", doc="size of the response on the wire"),
            "head",
            own=True,
        ),
    ]
    latency_ns: Annotated[
        int | None,
        RowColumn(
            DURATION,
            "first byte of the request to last byte of the response",
            Asked("latency", "latency > 500ms"),
            "head",
            json={"latency_ms": "None if {} is None else {} / MS", "latency_ns": "{}"},
            own=True,
        ),
    ]
    server_ns: Annotated[
        int | None,
        RowColumn(DURATION, "last byte of the request to first byte of the response", own=True),
    ]
    wait_ns: Annotated[
        int,
        RowColumn(
            _WAIT,
            "part of the latency that the client requested (long poll, group forming)",
            Asked("wait", "latency > 1s and not wait", truth=True),
            "body",
            json={"wait_ms": "{} / MS if {} % MS else {} // MS"},
            own=True,
        ),
    ]
    throttle_ms: Annotated[
        int,
        RowColumn(
            _THROTTLE,
            "throttle time that the broker reports",
            Asked("throttle", "throttle > 0", ("throttle_time", "throttle_time_ms"), truth=True),
            "body",
        ),
    ]
    state: Annotated[
        State,
        RowColumn(
            _STATE,
            ", ".join(STATES),
            Asked("state", "state in {open, lost}", doc="how it ended: " + ", ".join(STATES)),
            "head",
        ),
    ]
    reason: Annotated[
        str,
        RowColumn(TEXT, "why there is no response, or what opaque bytes look like", told_by="head"),
    ]
    errors: Annotated[
        tuple[RowError, ...],
        RowColumn(
            _ERRORS,
            "errors in the response except NONE, each with its topic, partition or group",
            Asked(
                "error",
                "error in {UNKNOWN_MEMBER_ID, 27}",
                doc="errors at any level of the response; NONE if there are none",
                truth=True,
            ),
            "body",
        ),
    ]
    expected: Annotated[
        bool,
        RowColumn(
            FLAG,
            "whether all of its errors occur in healthy clusters, too (docs/filter.md)",
            Asked(
                "expected",
                "failed and not expected",
                doc="its errors are part of the protocol, and no finding cites them",
            ),
            "body",
        ),
    ]
    topics: Annotated[
        tuple[str, ...],
        RowColumn(
            TEXTS,
            "names; a topic ID without a known name as 8 characters and `?`",
            Asked(
                "topic",
                'topic contains ".dlq"',
                ("topic_name",),
                doc="topics in its messages or in its fetch session",
            ),
            "body",
        ),
    ]
    implied_topics: Annotated[
        tuple[str, ...],
        RowColumn(
            TEXTS,
            "topics of an incremental Fetch session that the request does not list, at most 2,000",
            told_by="body",
        ),
    ]
    topic_ids: Annotated[
        tuple[bytes, ...],
        RowColumn(
            UUIDS, "topic IDs in its messages", Asked("topic.id", "topic.id", ("topic_id",)), "body"
        ),
    ]
    partitions: Annotated[
        tuple[int, ...],
        RowColumn(
            INTS32,
            "partitions in its messages",
            Asked("partition", "topic == orders and partition in {0, 3..5}", ("partition_id",)),
            "body",
        ),
    ]
    groups: Annotated[
        tuple[str, ...],
        RowColumn(
            TEXTS,
            "consumer, share or streams groups",
            Asked("group", "group == orders-app", ("consumer_group", "group_id")),
            "body",
        ),
    ]
    members: Annotated[
        tuple[str, ...],
        RowColumn(
            TEXTS,
            "group member ids",
            Asked("member", "member ~ ^rdkafka", ("member_id",)),
            "body",
        ),
    ]
    generations: Annotated[
        tuple[int, ...],
        RowColumn(
            INTS32,
            "generation or member epoch",
            Asked("generation", "generation == 41", ("generation_id", "member_epoch")),
            "body",
        ),
    ]
    producer_ids: Annotated[
        tuple[int, ...],
        RowColumn(
            INTS,
            "producer ids",
            Asked("producer.id", "producer.id == 1042", ("producer_id",)),
            "body",
        ),
    ]
    producer_epochs: Annotated[
        tuple[int, ...],
        RowColumn(
            INTS32,
            "producer epochs",
            Asked("producer.epoch", "producer.epoch > 0", ("producer_epoch",)),
            "body",
        ),
    ]
    transactional_ids: Annotated[
        tuple[str, ...],
        RowColumn(
            TEXTS, "transactional ids", Asked("txn", "txn == tx-1", ("transactional_id",)), "body"
        ),
    ]
    acks: Annotated[
        int | None,
        RowColumn(
            INT32,
            "acks of a Produce request",
            Asked("acks", "acks == 0", ("required_acks",)),
            "body",
            NO_ACKS,
        ),
    ]
    codecs: Annotated[
        tuple[str, ...],
        RowColumn(
            TEXTS,
            "compression of its batches: none, gzip, snappy, lz4, zstd",
            Asked("codec", "codec == zstd", ("batch_codec", "message_codec")),
            "body",
        ),
    ]
    records: Annotated[
        int | None,
        RowColumn(
            INT,
            "records in all batches of both sides; null where the API carries none",
            Asked("records", "records > 1000", doc="number of records", truth=True),
            "body",
            own=True,
        ),
    ]
    batches: Annotated[
        int | None,
        RowColumn(
            INT,
            "number of record batches",
            Asked("batches", "batches > 10", truth=True),
            "body",
            own=True,
        ),
    ]
    offset: Annotated[
        int | None,
        RowColumn(
            INT,
            "base offset that the broker assigned in the first partition of a Produce",
            own=True,
        ),
    ]
    frames: Annotated[
        tuple[int, ...],
        RowColumn(
            INTS,
            "packets with the first byte of request and response",
            Asked(
                "frame",
                "frame == 88120",
                ("frame.number", "request_frame", "response_frame"),
                doc="packets with the first byte of request and response",
                cost="i",
            ),
            own=True,
        ),
    ]
    undecoded: Annotated[
        tuple[Undecoded, ...],
        RowColumn(
            _UNDECODED,
            "bytes that could not be decoded, and why",
            Asked(
                "undecoded",
                "undecoded == surplus",
                ("_ws.malformed",),
                doc="why bytes of it could not be decoded: surplus, malformed, header, "
                "other-layout, unknown-api, ...",
            ),
        ),
    ]
    notes: Annotated[tuple[Note, ...], RowColumn(_NOTES, "anomalies of the exchange")]
    tls: Annotated[
        TlsSummary | None,
        RowColumn(
            _TLS,
            "TLS version and cipher suite; null for plaintext",
            Asked(
                "tls",
                "tls contains AES_256",
                doc="TLS version and cipher suite, if encrypted",
            ),
            "head",
            json={name: f"{{}} and {{}}.{value}" for name, (value, _, _) in TLS_COLUMNS.items()},
        ),
    ]
    zookeeper: Annotated[
        ZooKeeperFacts | None,
        RowColumn(
            _ZOOKEEPER,
            "protocol: kafka, zookeeper",
            told_by="head",
            json={
                "protocol": "'kafka' if {} is None else 'zookeeper'",
                **{
                    name: f"None if {{}} is None else {{}}.{value}"
                    for name, (value, _, _) in ZOOKEEPER_COLUMNS.items()
                },
            },
            table="protocol",
        ),
    ]
    via: Annotated[
        str,
        RowColumn(
            _VIA,
            "host:port of the load balancer whose PROXY protocol header names the client; null "
            "without one",
        ),
    ] = ""

    @property
    def latency_beyond_wait_ns(self) -> int | None:
        """Latency without the wait."""
        return None if self.latency_ns is None else max(0, self.latency_ns - self.wait_ns)


_address = lru_cache(4096)(str)
"""Returns the text of an endpoint."""


def row_of(exchange: "Exchange", names: "TopicNames", facts: BodyFacts | None = None) -> Row:
    """Return the row of an exchange, with the topic names known so far. `facts`: in place of what
    its bodies say."""
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
    key, version = exchange.api_key, exchange.api_version
    layout = None
    if facts is None:
        facts = exchange.facts
    if facts is None:
        facts, layout = _collected(exchange)
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
        errors = tuple([_zookeeper_error(each) for each in facts.errors])
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
        _address(exchange.client),
        _address(exchange.broker),
        exchange.client_id,
        exchange.software,
        exchange.user,
        key,
        exchange.api,
        version,
        is_flexible(key, version) if layout is None else layout.body.flexible,
        exchange.correlation_id,
        None if asking is None else asking.wire_bytes,
        None if answering is None else answering.wire_bytes,
        latency,
        server,
        exchange.wait_ns,
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
    )


def _collected(exchange: "Exchange") -> tuple[BodyFacts, "Layout | None"]:
    """Return what the bodies say, and the layout of the first one that is there."""
    request, response = exchange.request, exchange.response
    asked = None if request is None else request.decoded
    told = None if response is None else response.decoded
    if exchange.zookeeper is not None:
        return zookeeper_facts(asked, told), None
    one = None if asked is None else asked.layout
    other = None if told is None else told.layout
    collect = collector(one, other)
    facts = collect(None if asked is None else asked.body, None if told is None else told.body)
    return facts, one or other


def _both(told: tuple[int, ...], found: tuple[int, ...]) -> tuple[int, ...]:
    """Return the values from fields, then those from batches, without duplicates."""
    return tuple(dict.fromkeys((*told, *found))) if told else found


def _implied(
    session: "FetchSession", listed: tuple[str, ...], names: "TopicNames"
) -> tuple[str, ...]:
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


def _error(found: tuple[Any, ...], names: "TopicNames", asked: str | None) -> RowError:
    code, top, topic, topic_id, partition, group, message = found
    if not topic and topic_id is None:
        group = group or asked
    if topic_id is not None and not any(topic_id):
        topic_id = None
    if not topic and topic_id is not None:
        topic = names.get(topic_id) or short_id(topic_id)
    return RowError(code, error_name(code), top, topic, topic_id, partition, group, message)


def codes_of(row: Row) -> frozenset[int]:
    """Return the error codes of a response."""
    return frozenset([error.code for error in row.errors])


def _zookeeper_error(found: tuple[Any, ...]) -> RowError:
    code, top, *_, message = found
    return RowError(code, zookeeper_error_name(code), top, message=message)


def renamed(row: Row, names: "TopicNames") -> Row:
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


def row_of_table(values: dict[str, Any]) -> Row:
    """Return the row for the values of the table of exchanges, by column name; tables that were
    written before a column was declared lack it."""
    return _table_reader()(values)


@cache
def _table_reader() -> Callable[[dict[str, Any]], Row]:
    """Return `row_of_table` as straight-line code."""
    pairs, empty = [], {}
    for name, column in columns_of(Row):
        empty[name] = column.kind.empty
        if column.table is None:
            pairs.append(f"{column.kind.load},")
            continue
        get, load = f"values.get({column.table or name!r})", column.kind.load.format("value")
        pairs.append(f"empty[{name!r}] if (value := {get}) is None else {load},")
    body = "\n        ".join(pairs)
    source = f"def row_of_table(values):\n    return Row(\n        {body}\n    )\n"
    names = (
        *(Row, RowError, Undecoded, Note, Uuid),
        *(is_flexible, _summary_of_table, _zookeeper_of_table),
    )
    known = {each.__name__: each for each in names}
    made: Callable[[dict[str, Any]], Row] = compile_function(
        "row_of_table", source, {**known, "empty": empty}, "rows of tables"
    )
    return made


def _summary_of_table(values: dict[str, Any]) -> TlsSummary:
    """Return what the columns of a table's row say of TLS."""
    name, resumed, *texts = map(values.get, TLS_COLUMNS)
    server_name, protocol, client = (text or "" for text in texts)
    return TlsSummary.named(name or "", bool(resumed), server_name, protocol, client)


def _zookeeper_of_table(values: dict[str, Any]) -> ZooKeeperFacts | None:
    """Return what the columns of a table's row say of ZooKeeper."""
    if values.get("protocol") != "zookeeper":
        return None
    path, event, session, zxid = map(values.get, ZOOKEEPER_COLUMNS)
    number = None if session is None else int(session, 16)
    if number is not None and number >> 63:
        number -= 1 << 64
    return ZooKeeperFacts(number, path, event or "", zxid)


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
    **{each.__name__: each for each in (_error_json, _undecoded_json, _note_json)},
}
"""Names that the expressions of columns use."""


def result(row: Row) -> str:
    """Return the outcome of the exchange in words: the last column of `ls`."""
    if row.state == "opaque":
        return f"~ {row.reason}"
    if row.state in ("orphan", "refused", "unreachable"):
        return f"? {row.reason}"
    if row.state == "event" and row.zookeeper is not None:
        return f"~ {row.zookeeper.event} {row.zookeeper.path}"
    if not row.undecoded:
        return _outcome(row)
    left = [
        f"({each.side}: {each.text if each.reason == OTHER_LAYOUT else each.reason}"
        f"{f', {each.bytes} bytes' if each.bytes else ''})"
        for each in row.undecoded
    ]
    return " ".join((_outcome(row), *left))


def is_unread(row: Row) -> bool:
    """Return whether there is a response that could not be decoded."""
    return any(each.side == "response" and each.reason != "surplus" for each in row.undecoded)


def _outcome(row: Row) -> str:
    if row.state in ("open", "lost"):
        return f"? no answer, {row.reason}"
    if row.state == "no-reply":
        return " ".join(("acks=0", *_subject(row), *_amount(row)))
    if row.errors:
        return "! " + _errors(row)
    if is_unread(row):
        return "? not decoded"
    if row.zookeeper is not None and row.notes and row.notes[0].side == "response":
        return f"! {row.notes[0].text}"
    words = ["ok", *_subject(row)]
    if row.api == "Produce" and row.offset is not None and len(row.partitions) == 1:
        words.append(f"offset {row.offset}")
    else:
        words += _amount(row)
    waited = round(row.wait_ns / 1_000_000)
    if waited:
        words.append(f"(waited {waited} ms)")
    if row.throttle_ms:
        words.append(f"(throttled {row.throttle_ms} ms)")
    return " ".join(words)


def _subject(row: Row) -> list[str]:
    """Return what it refers to: one partition, some topics, a group, or a node of ZooKeeper."""
    if row.zookeeper is not None:
        about = row.zookeeper
        said = about.path or (about.session_id if row.api == "zk.connect" else None)
        return [said] if said else []
    if row.topics:
        if len(row.topics) == 1 and len(row.partitions) == 1:
            return [f"{row.topics[0]}-{row.partitions[0]}"]
        return [_some(row.topics)]
    return [_some(row.groups)] if row.groups else []


def _amount(row: Row) -> list[str]:
    if row.records is None:
        return []
    return ["1 record" if row.records == 1 else f"{row.records or 'no'} records"]


def _errors(row: Row) -> str:
    """Return each error once, with what it refers to."""
    about: dict[str, list[str]] = {}
    for error in row.errors:
        places = about.setdefault(error.name, [])
        if error.topic:
            partition = "" if error.partition is None else f"-{error.partition}"
            places.append(f"{error.topic}{partition}")
        elif error.group:
            places.append(error.group)
        elif row.zookeeper is not None and (path := error.message or row.zookeeper.path):
            places.append(path)
    texts = [
        " ".join((name, *([_some(places)] if places else ()))) for name, places in about.items()
    ]
    return "; ".join(texts)


def _some(values: Sequence[str]) -> str:
    rest = len(values) - MOST_SHOWN
    return ", ".join(values[:MOST_SHOWN]) + (f" (+{rest})" if rest > 0 else "")
