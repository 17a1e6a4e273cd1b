"""The fields of the filter language, as data: name, type, cost, meaning, example, other names.

The names are also those of `--columns` and `-T fields -e`. A new field is an entry here (for a
column, in `exchanges.rows`); back ends read this table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from kafkascope.analyzer.exchanges.column import Named, columns_of
from kafkascope.analyzer.exchanges.rows import Row
from kafkascope.analyzer.filter import getters, message
from kafkascope.analyzer.filter.paths import Path
from kafkascope.analyzer.model import STATES

if TYPE_CHECKING:
    from kafkascope.analyzer.model import Exchange

Type = Literal[
    "int",
    "size",
    "duration",
    "time",
    "string",
    "bool",
    "address",
    "api",
    "error",
    "state",
    "release",
    "uuid",
    "body",
    "bytes",
    "value",
]
Cost = Literal["i", "s", "b"]


COSTS: Final[dict[Cost, str]] = {
    "i": "fast: from the headers",
    "s": "fast: from decoded columns",
    "b": "slow: decodes the message again",
}

COST_WORDS: Final[dict[Cost, str]] = {"i": "fast", "s": "fast", "b": "decodes"}
"""Cost as the filter line shows it while a filter is typed."""

TYPES: Final[dict[Type, str]] = {
    "int": "a number: 12, 0x1f",
    "size": "bytes, with or without a unit: 512, 18KB, 1MiB",
    "duration": "milliseconds, or with a unit: 250us, 500ms, 1.5s, 2m",
    "time": "a clock or a date: 12:03, 12:03:07.5, 2026-11-20T12:03:07Z",
    "string": "text",
    "bool": "true or false",
    "address": "an address or a network: 10.0.0.7, 10.0.0.0/24, ::1",
    "api": "an API by name or key: Fetch, 1",
    "error": "an error by name or code: NOT_LEADER_OR_FOLLOWER, 6",
    "state": "one of " + ", ".join(STATES),
    "release": "a dotted version: 2.3, 4.0.0",
    "uuid": "an id as Kafka prints it: 22 characters",
    "body": "a value of the field's own type",
    "bytes": "text, or bytes as 0a:ff",
    "value": "by the decoded value's own type: 12, 1.50, true, text, 2026-11-20T12:03:07Z",
}


Teller = Literal[
    "order",
    "connection",
    "tls",
    "zookeeper",
    "login",
    "head",
    "request",
    "response size",
    "response",
    "bodies",
    "records",
    "response records",
    "frames",
    "ending",
    "decoding",
    "notes",
    "findings",
    "schemas",
]
"""Source of a field: the place of the exchange among others, its connection, the TLS around that,
ZooKeeper's protocol, what its client said of itself when it connected, the head of the request, the
request with its body, that there is a response, the body of the response, either body, record
batches of either (for Produce, with the response), the bytes, how it ended, what could be decoded,
the user's notes, the
findings of `check`, what keys and values say by their schemas. An input that lacks the source
refuses the field."""


class Field(NamedTuple):
    """A field of the language."""

    name: str
    type: Type
    cost: Cost
    doc: str
    example: str
    aliases: tuple[str, ...] = ()
    """Wireshark's names among them; `kafka.` before any name is removed first."""
    truth: bool = False
    """Whether the field alone tests for more than zero, not for presence."""
    told_by: Teller = "bodies"
    get: getters.Getter | None = None
    """Its values in a row; `time.delta` needs the row before, notes and findings a `Known`."""
    read: message.Reader | None = None
    """Its values in an exchange, for fields that rows lack."""
    shown: getters.Getter | None = None
    """Values for columns, where comparisons use more."""
    hidden: bool = False
    """Whether it can only be searched, not printed: it may hold passwords."""


_OTHERS: Final[tuple[Field, ...]] = (
    Field(
        "time.delta",
        "duration",
        "i",
        "time since the previous exchange",
        "time.delta > 1s",
        ("frame.time_delta", "frame.time_delta_displayed"),
        told_by="order",
    ),
    Field(
        "client.ip",
        "address",
        "i",
        "address of the client",
        "client.ip == 10.0.0.0/24",
        told_by="connection",
        get=getters.client_ip,
    ),
    Field(
        "client.port",
        "int",
        "i",
        "port of the client",
        "client.port == 51422",
        told_by="connection",
        get=getters.client_port,
    ),
    Field(
        "via",
        "string",
        "i",
        "load balancer as address:port, or only its address, by its PROXY protocol header",
        "via == 10.0.1.9",
        told_by="connection",
        get=getters.via,
    ),
    Field(
        "broker",
        "string",
        "i",
        "broker as address:port, or only its address",
        "broker == 10.0.1.2:9092",
        ("broker_address",),
        told_by="connection",
        get=getters.broker,
    ),
    Field(
        "broker.ip",
        "address",
        "i",
        "address of the broker",
        "broker.ip == 10.0.1.2",
        told_by="connection",
        get=getters.broker_ip,
    ),
    Field(
        "broker.port",
        "int",
        "i",
        "port of the broker",
        "broker.port == 9092",
        told_by="connection",
        get=getters.broker_port,
    ),
    Field(
        "ip",
        "address",
        "i",
        "address of either side",
        "ip == 10.0.0.7",
        ("ip.addr", "ipv6.addr"),
        told_by="connection",
        get=getters.ips,
    ),
    Field(
        "port",
        "int",
        "i",
        "port of either side",
        "port == 9092",
        ("tcp.port",),
        told_by="connection",
        get=getters.ports,
    ),
    Field(
        "protocol",
        "string",
        "i",
        "protocol of the exchange: kafka, zookeeper",
        "protocol == zookeeper",
        told_by="zookeeper",
        get=getters.protocol,
    ),
    Field(
        "path",
        "string",
        "s",
        "znode of the request",
        'path contains "/brokers/ids"',
        ("zookeeper.path",),
        told_by="zookeeper",
        get=getters.of_zookeeper("path"),
    ),
    Field(
        "event",
        "string",
        "s",
        "type of a ZooKeeper watch event",
        "event == NodeDeleted",
        told_by="zookeeper",
        get=getters.of_zookeeper("event"),
    ),
    Field(
        "zk.session",
        "string",
        "i",
        "ZooKeeper session ID",
        "zk.session == 0x10000576b320000",
        ("zookeeper.session",),
        told_by="zookeeper",
        get=getters.of_zookeeper("session_id"),
    ),
    Field(
        "zxid",
        "int",
        "s",
        "ZooKeeper transaction ID (zxid) of the response",
        "zxid >= 0x20",
        ("zookeeper.zxid",),
        told_by="zookeeper",
        get=getters.of_zookeeper("zxid"),
    ),
    Field(
        "tls.version",
        "string",
        "i",
        'TLS version, with or without "TLS"',
        "tls.version == 1.2",
        told_by="tls",
        get=getters.tls_version,
        shown=getters.of_tls("version"),
    ),
    Field(
        "tls.cipher",
        "string",
        "i",
        "TLS cipher suite, IANA name",
        "tls.cipher contains CBC",
        told_by="tls",
        get=getters.of_tls("suite"),
    ),
    Field(
        "tls.resumed",
        "bool",
        "i",
        "TLS session resumed with keys of an earlier connection",
        "tls.resumed",
        told_by="tls",
        get=getters.of_tls("resumed"),
    ),
    Field(
        "tls.sni",
        "string",
        "i",
        "server name that the client requested (SNI)",
        "tls.sni == broker-1.example",
        ("tls.handshake.extensions_server_name",),
        told_by="tls",
        get=getters.of_tls("server_name"),
    ),
    Field(
        "tls.alpn",
        "string",
        "i",
        "negotiated protocol (ALPN)",
        "tls.alpn == kafka",
        told_by="tls",
        get=getters.of_tls("protocol"),
    ),
    Field(
        "tls.client",
        "string",
        "i",
        "subject of the client's certificate",
        'tls.client contains "CN=billing"',
        told_by="tls",
        get=getters.of_tls("client"),
    ),
    Field(
        "removed_in",
        "release",
        "i",
        "Kafka release that removed this version of the API",
        "removed_in <= 4.0.0",
        told_by="head",
        get=getters.removed_in,
    ),
    Field(
        "deprecated",
        "bool",
        "i",
        "a Kafka release removed this version of the API",
        "deprecated",
        told_by="head",
        get=getters.deprecated,
    ),
    Field(
        "software.version",
        "release",
        "s",
        "version of the client library",
        "software.version < 2.3",
        ("client_software_version",),
        told_by="login",
        get=getters.software_version,
    ),
    Field(
        "bytes",
        "size",
        "i",
        "size of request and response together",
        "bytes > 10KB",
        ("len",),
        told_by="response size",
        get=getters.total_bytes,
    ),
    Field(
        "excess",
        "duration",
        "s",
        "latency without the wait",
        "excess > 250ms",
        told_by="response size",
        get=getters.excess,
    ),
    Field(
        "answered",
        "bool",
        "i",
        "the response was seen",
        "not answered",
        told_by="ending",
        get=getters.ended("answered"),
    ),
    Field("marked", "bool", "i", "marked by the user", "marked", told_by="notes"),
    Field("ignored", "bool", "i", "ignored by the user", "not ignored", told_by="notes"),
    Field(
        "comment",
        "string",
        "i",
        "comment of the user",
        "comment contains slow",
        told_by="notes",
    ),
    Field(
        "finding",
        "string",
        "i",
        "rules of the findings that cite it, as named by check",
        "finding == late-answer or finding contains rebalance",
        told_by="findings",
    ),
    Field(
        "finding.severity",
        "string",
        "i",
        "severities of the findings that cite it: error, warning, note, chat",
        "finding.severity in {error, warning}",
        told_by="findings",
    ),
    Field(
        "open",
        "bool",
        "i",
        "in flight at the end of the capture",
        "open",
        told_by="ending",
        get=getters.ended("open"),
    ),
    Field(
        "lost",
        "bool",
        "i",
        "the connection ended before the response",
        "lost",
        told_by="ending",
        get=getters.ended("lost"),
    ),
    Field(
        "no-reply",
        "bool",
        "i",
        "no response is expected (acks=0)",
        "no-reply",
        ("no_reply",),
        told_by="ending",
        get=getters.ended("no-reply"),
    ),
    Field(
        "orphan",
        "bool",
        "i",
        "a response whose request was not seen",
        "orphan",
        told_by="ending",
        get=getters.ended("orphan"),
    ),
    Field(
        "opaque",
        "bool",
        "i",
        "bytes without a readable Kafka header",
        "not opaque",
        told_by="ending",
        get=getters.ended("opaque"),
    ),
    Field(
        "error.top",
        "error",
        "s",
        "top-level error of the response",
        "error.top != 0",
        truth=True,
        told_by="response",
        get=getters.top_errors,
    ),
    Field(
        "failed",
        "bool",
        "s",
        "the response has an error other than NONE",
        "failed",
        told_by="response",
        get=getters.failed,
    ),
    Field(
        "retriable",
        "bool",
        "s",
        "an error that clients may retry",
        "failed and not retriable",
        told_by="response",
        get=getters.retriable,
    ),
    Field(
        "offset",
        "int",
        "b",
        "offsets in its fields: fetched, committed, assigned, listed",
        "api == Fetch and offset in {88000..88200}",
        ("fetch_offset", "committed_offset", "base_offset"),
        told_by="bodies",
        read=message.offsets,
    ),
    Field(
        "high_watermark",
        "int",
        "b",
        "high watermarks in the response",
        "high_watermark > 1000",
        told_by="response",
        read=message.high_watermarks,
    ),
    Field(
        "lag",
        "int",
        "b",
        "consumer lag of a partition: high watermark minus fetched offset",
        "lag > 1000",
        truth=True,
        told_by="response",
        read=message.lag,
    ),
    Field(
        "sequence",
        "int",
        "b",
        "first sequence numbers of its batches",
        "producer.id == 1042 and sequence == 0",
        ("batch_base_sequence",),
        told_by="records",
        read=message.sequences,
    ),
    Field(
        "record.key",
        "bytes",
        "b",
        "keys of its records",
        'record.key == "customer-4711"',
        ("message_key",),
        told_by="records",
        read=message.of_records("record.key"),
    ),
    Field(
        "record.value",
        "bytes",
        "b",
        "values of its records",
        'record.value contains "customer-4711"',
        ("message_value",),
        told_by="records",
        read=message.of_records("record.value"),
    ),
    Field(
        "record.header",
        "bytes",
        "b",
        "headers of its records, as name=value",
        'record.header contains "traceparent="',
        ("record.headers",),
        told_by="records",
        read=message.of_records("record.header"),
    ),
    Field(
        "record.header.key",
        "string",
        "b",
        "names of the headers of its records",
        "record.header.key == traceparent",
        ("header_key",),
        told_by="records",
        read=message.of_records("record.header.key"),
    ),
    Field(
        "record.header.value",
        "bytes",
        "b",
        "values of the headers of its records",
        "record.header.value contains 4bf92f",
        ("header_value",),
        told_by="records",
        read=message.of_records("record.header.value"),
    ),
    Field(
        "record.offset",
        "int",
        "b",
        "offsets of its records; for Produce as assigned by the broker",
        "record.offset == 88123",
        told_by="response records",
        read=message.of_records("record.offset"),
    ),
    Field(
        "record.time",
        "time",
        "b",
        "timestamps of its records",
        "record.time < 2026-11-20",
        ("record.timestamp", "message_timestamp"),
        told_by="records",
        read=message.of_records("record.time"),
    ),
    Field(
        "record.sequence",
        "int",
        "b",
        "sequence numbers of its records",
        "record.sequence == 17",
        told_by="records",
        read=message.of_records("record.sequence"),
    ),
    Field(
        "record.size",
        "size",
        "b",
        "size of key, value and headers of its records",
        "record.size > 100KB",
        ("record.bytes",),
        told_by="records",
        read=message.of_records("record.size"),
    ),
    Field(
        "schema.id",
        "value",
        "b",
        "schema IDs in its keys and values",
        "schema.id == 17",
        told_by="schemas",
    ),
    Field(
        "schema.subject",
        "string",
        "b",
        "subjects of its schemas",
        "schema.subject == orders-value",
        told_by="schemas",
    ),
    Field(
        "schema.type",
        "string",
        "b",
        "record names, message names or titles of its schemas",
        "schema.type == shop.Order",
        told_by="schemas",
    ),
    Field(
        "schema.error",
        "string",
        "b",
        "why keys and values could not be decoded with their schemas",
        "schema.error == unknown-schema",
        told_by="schemas",
    ),
    Field(
        "wire",
        "bytes",
        "b",
        "bytes of both messages, size fields included",
        "wire contains 0a:ff",
        told_by="frames",
        read=message.wire,
        hidden=True,
    ),
    Field(
        "raw",
        "bytes",
        "b",
        "as wire, plus the decompressed records",
        'raw contains "customer-4711"',
        told_by="frames",
        read=message.raw,
        hidden=True,
    ),
)
"""Fields that are no column of a row: parts of one, several combined, contents of messages,
notes."""


_COLUMNS: Final[dict[str, tuple[Teller | None, getters.Getter | None]]] = {
    "number": ("order", None),
    "frame": ("order", None),
    "conn": ("connection", None),
    "tls": ("tls", getters.of_tls("name")),
    "software": ("login", None),
    "user": ("login", None),
    "flexible": ("head", None),
    "request.bytes": ("head", None),
    "response.bytes": ("response size", None),
    "latency": ("response size", None),
    "wait": ("response size", getters.wait),
    "throttle": ("response", getters.throttle),
    "state": ("ending", None),
    "undecoded": ("decoding", getters.undecoded),
    "error": ("response", getters.errors),
    "topic": (None, getters.topics),
    "topic.id": (None, getters.topic_ids),
    "codec": ("records", None),
    "records": ("records", None),
    "batches": ("records", None),
}
"""Columns whose source is neither the head nor the bodies alone, and columns whose values for
filters differ from the stored ones."""


def _of(named: Named) -> Field:
    """Return the field of a column."""
    column = named.column
    asked = column.asked
    assert asked is not None
    kind: Type = column.kind.filter  # type: ignore[assignment]
    cost: Cost = asked.cost or ("i" if column.told_by == "head" else "s")
    text = asked.doc or column.text
    told_by, get = _COLUMNS.get(asked.name, (None, None))
    if told_by is None:
        told_by = "head" if column.told_by == "head" else "bodies"
    plain = getters.column(named)
    return Field(
        *(asked.name, kind, cost, text, asked.example, asked.aliases, asked.truth),
        told_by=told_by,
        get=get or plain,
        shown=plain if asked.name == "topic" else None,
    )


COLUMNS: Final[dict[str, Named]] = {
    each.column.asked.name: each for each in columns_of(Row) if each.column.asked is not None
}
"""Columns by the name of their field."""


def _all() -> Iterator[Field]:
    """Yield columns in their order, each followed by the other fields that begin with its name;
    then the remaining fields."""
    left = {field.name: field for field in _OTHERS}
    for name, named in COLUMNS.items():
        yield _of(named)
        for other in [other for other in left if other.startswith(f"{name}.")]:
            yield left.pop(other)
    yield from left.values()


FIELDS: Final[tuple[Field, ...]] = tuple(_all())
"""All fields, in the order in which `kafkascope fields` lists them."""

PATHS: Final = (
    Field(
        "request.<path>",
        "body",
        "b",
        "any field of the request's body, in arrays any element",
        "request.max_wait_ms >= 500",
    ),
    Field(
        "response.<path>",
        "body",
        "b",
        "any field of the response's body, in arrays any element",
        "response.topics.partitions.leader_id == 2",
    ),
    Field(
        "body.<name>",
        "body",
        "b",
        "fields of that name at any level of either body; Wireshark's names work, too",
        "body.session_timeout_ms < 10000",
    ),
    Field(
        "record.value.<path>",
        "value",
        "b",
        "any field of values decoded with a schema, in arrays any element",
        'record.value.amount > 100 or record.value."user-id" == 5',
        told_by="schemas",
    ),
    Field(
        "record.key.<path>",
        "value",
        "b",
        "any field of keys decoded with a schema, in arrays any element",
        'record.key.id == "x"',
        told_by="schemas",
    ),
)

WIRESHARK: Final[dict[str, str]] = {
    "broker_epoch": "broker_epoch",
    "cluster_id": "cluster_id",
    "config_key": "name",
    "config_value": "value",
    "consumer_group_instance": "group_instance_id",
    "controller_epoch": "controller_epoch",
    "coordinator_key": "key",
    "coordinator_type": "key_type",
    "error_message": "error_message",
    "fetch_session_epoch": "session_epoch",
    "fetch_session_id": "session_id",
    "group_leader_id": "leader",
    "group_state": "group_state",
    "host": "host",
    "is_internal": "is_internal",
    "isolation_level": "isolation_level",
    "isr_id": "isr_nodes",
    "last_stable_offset": "last_stable_offset",
    "leader_epoch": "leader_epoch",
    "leader_id": "leader_id",
    "log_dir": "log_dir",
    "log_start_offset": "log_start_offset",
    "max_bytes": "max_bytes",
    "max_wait_time": "max_wait_ms",
    "metadata": "committed_metadata",
    "min_bytes": "min_bytes",
    "node_id": "node_id",
    "num_partitions": "num_partitions",
    "offline_id": "offline_replicas",
    "offset_lag": "offset_lag",
    "protocol_name": "protocol_name",
    "protocol_type": "protocol_type",
    "rack": "rack",
    "rebalance_timeout": "rebalance_timeout_ms",
    "replica_id": "replica_id",
    "replication_factor": "replication_factor",
    "sasl_mechanism": "mechanism",
    "session_lifetime_ms": "session_lifetime_ms",
    "session_timeout": "session_timeout_ms",
    "timeout": "timeout_ms",
    "token_id": "token_id",
    "transaction_timeout": "transaction_timeout_ms",
    "validate_only": "validate_only",
}
"""Wireshark's names of fields of bodies, without `kafka.`, and the names after `body.`."""

_BY_NAME: Final[dict[str, Field]] = {
    name: field for field in FIELDS for name in (field.name, *field.aliases)
}
_SYNONYMS: Final[dict[str, Field]] = {
    **{
        name: _BY_NAME[asked]
        for asked, named in COLUMNS.items()
        for name in named.json
        if not name.endswith("_ns")
    },
    **{field.name.replace(".", "_"): field for field in FIELDS if "." in field.name},
}
"""Names that exchange/1 has for fields: with units and plurals, and with `_` in place of a dot. Not
those in nanoseconds: a plain number of a duration is milliseconds in a filter."""


def names() -> list[str]:
    """Return all names, without Wireshark's."""
    return [field.name for field in FIELDS]


def all_names() -> list[str]:
    """Return all names and aliases."""
    return list(_BY_NAME)


def field_named(name: str) -> Field | None:
    """Return the field of a name, alias or name of exchange/1, with or without the prefix `kafka.`;
    None when there is none."""
    name = name.lower()
    plain = name.removeprefix("kafka.")
    return _BY_NAME.get(name) or _BY_NAME.get(plain) or _SYNONYMS.get(plain)


def field_of(name: str) -> Field:
    """Return the field of a name; `KeyError` when there is none."""
    return _BY_NAME[name]


def told_by(*tellers: Teller) -> frozenset[str]:
    """Return the names of the fields that have one of these sources."""
    return frozenset(field.name for field in FIELDS if field.told_by in tellers)


MARKS: Final = told_by("notes")
"""Fields of the notes that the terminal UI keeps beside a capture."""
FOUND: Final = told_by("findings")
"""Fields that are known only at the end of a capture."""
DECODED: Final = told_by("schemas") | {"record.key.", "record.value."}
"""Fields that only schemas tell; the last two stand for any path."""
EXPECTED: Final = "expected"
"""A column that findings correct, where they are known."""
NOTED: Final = MARKS | FOUND
"""Fields that only a `Known` has values for; without one, nothing is marked."""


def printed(field: Field, path: Path) -> Callable[[Row, Exchange | None], getters.Values] | None:
    """Return the function that gives a field's values for columns; None for fields that cannot be
    shown."""
    if field.told_by == "schemas":
        return None
    if path:
        return lambda _, exchange: getters.body_values(exchange, path)
    if field.hidden:
        return None
    if field.read is not None:
        read = field.read
        return lambda _, exchange: () if exchange is None else tuple(read(exchange))
    get = field.shown or field.get
    return None if get is None else lambda row, _: get(row)
