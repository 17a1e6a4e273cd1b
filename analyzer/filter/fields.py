"""The fields of the filter language, as data: name, type, cost, meaning, example, other names.

The names are also those of `--columns` and `-T fields -e`. A new field is an entry here (for a
column, in `exchanges.rows`); back ends read this table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from kafkascope.analyzer.exchanges.column import Named, columns_of
from kafkascope.analyzer.exchanges.rows import BROKER_TIMES, Row, is_flexible
from kafkascope.analyzer.filter import getters, message
from kafkascope.analyzer.filter.getters import Getter, Values, address, hosts, inside, plain, ports
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
    "request log",
]
"""Source of a field: the place of the exchange among others, its connection, the TLS around that,
ZooKeeper's protocol, what its client said of itself when it connected, the head of the request,
that there is a response, the body of the response, either body, record batches of either (for
Produce, with the response), the bytes, how it ended, what could be decoded, the user's notes, the
findings of `check`, what keys and values say by their schemas, a request log. An input that lacks
the source refuses the field."""


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
    reads: tuple[str, ...] = ()
    """The attributes of a row that its values are made of; none where `read` gives them,
    `time.delta` needs the row before, notes and findings a `Known`."""
    of: Getter = plain
    """Its values, by those of the attributes."""
    read: message.Reader | None = None
    """Its values in an exchange, for fields that rows lack."""
    shown: Getter | None = None
    """Values for columns, where comparisons use more."""
    hidden: bool = False
    """Whether it can only be searched, not printed: it may hold passwords."""

    @property
    def get(self) -> Callable[[Row], Values] | None:
        """Getter of its values in a row; None if it reads no row."""
        return getters.of_row(self.reads, self.of) if self.reads else None


def _field(
    name: str,
    kind: Type,
    cost: Cost,
    told_by: Teller,
    of: Getter = plain,
    *reads: str,
    **more: Any,
) -> Callable[..., Field]:
    """Declare a field, and which attributes of a row its values are made `of`. Its words follow:
    meaning, example, other names."""
    if name in message.OF_RECORD:
        more["read"] = message.of_records(name)
    if name in STATES and not reads:
        of, reads = getters.ended(name), ("state",)
    return lambda doc, example, *aliases: Field(
        name, kind, cost, doc, example, aliases, told_by=told_by, of=of, reads=reads, **more
    )


_OTHERS: Final[tuple[Field, ...]] = (
    _field("time.delta", "duration", "i", "order")(
        "time since the previous exchange",
        "time.delta > 1s",
        "frame.time_delta",
        "frame.time_delta_displayed",
    ),
    _field("client.ip", "address", "i", "connection", hosts, "client_address")(
        "address of the client", "client.ip == 10.0.0.0/24"
    ),
    _field("client.port", "int", "i", "connection", ports, "client_address")(
        "port of the client", "client.port == 51422"
    ),
    _field("via", "string", "i", "connection", address, "via")(
        "load balancer as address:port, or only its address, by its PROXY protocol header",
        "via == 10.0.1.9",
    ),
    _field("broker", "string", "i", "connection", address, "broker_address")(
        "broker as address:port, or only its address", "broker == 10.0.1.2:9092", "broker_address"
    ),
    _field("broker.ip", "address", "i", "connection", hosts, "broker_address")(
        "address of the broker", "broker.ip == 10.0.1.2"
    ),
    _field("broker.port", "int", "i", "connection", ports, "broker_address")(
        "port of the broker", "broker.port == 9092"
    ),
    _field("ip", "address", "i", "connection", hosts, "client_address", "broker_address")(
        "address of either side", "ip == 10.0.0.7", "ip.addr", "ipv6.addr"
    ),
    _field("port", "int", "i", "connection", ports, "client_address", "broker_address")(
        "port of either side", "port == 9092", "tcp.port"
    ),
    _field("protocol", "string", "i", "zookeeper", getters.protocol, "zookeeper")(
        "protocol of the exchange: kafka, zookeeper", "protocol == zookeeper"
    ),
    _field("path", "string", "s", "zookeeper", inside("path"), "zookeeper")(
        "znode of the request", 'path contains "/brokers/ids"', "zookeeper.path"
    ),
    _field("event", "string", "s", "zookeeper", inside("event"), "zookeeper")(
        "type of a ZooKeeper watch event", "event == NodeDeleted"
    ),
    _field("zk.session", "string", "i", "zookeeper", inside("session_id"), "zookeeper")(
        "ZooKeeper session ID", "zk.session == 0x10000576b320000", "zookeeper.session"
    ),
    _field("zxid", "int", "s", "zookeeper", inside("zxid"), "zookeeper")(
        "ZooKeeper transaction ID (zxid) of the response", "zxid >= 0x20", "zookeeper.zxid"
    ),
    _field(
        "tls.version",
        "string",
        "i",
        "tls",
        getters.tls_version,
        "tls",
        shown=inside("version"),
    )('TLS version, with or without "TLS"', "tls.version == 1.2"),
    _field("tls.cipher", "string", "i", "tls", inside("suite"), "tls")(
        "TLS cipher suite, IANA name", "tls.cipher contains CBC"
    ),
    _field("tls.resumed", "bool", "i", "tls", inside("resumed"), "tls")(
        "TLS session resumed with keys of an earlier connection", "tls.resumed"
    ),
    _field("tls.sni", "string", "i", "tls", inside("server_name"), "tls")(
        "server name that the client requested (SNI)",
        "tls.sni == broker-1.example",
        "tls.handshake.extensions_server_name",
    ),
    _field("tls.alpn", "string", "i", "tls", inside("protocol"), "tls")(
        "negotiated protocol (ALPN)", "tls.alpn == kafka"
    ),
    _field("tls.client", "string", "i", "tls", inside("client"), "tls")(
        "subject of the client's certificate", 'tls.client contains "CN=billing"'
    ),
    _field("removed_in", "release", "i", "head", getters.removals, "api_key", "api_version")(
        "Kafka release that removed this version of the API", "removed_in <= 4.0.0"
    ),
    _field("deprecated", "bool", "i", "head", getters.is_deprecated, "api_key", "api_version")(
        "a Kafka release removed this version of the API", "deprecated"
    ),
    _field("software.version", "release", "s", "login", getters.software_version, "software")(
        "version of the client library", "software.version < 2.3", "client_software_version"
    ),
    _field("bytes", "size", "i", "response size", getters.total, "request_bytes", "response_bytes")(
        "size of request and response together", "bytes > 10KB", "len"
    ),
    _field("excess", "duration", "s", "response size", plain, "latency_beyond_wait_ns")(
        "latency without the wait", "excess > 250ms"
    ),
    _field("answered", "bool", "i", "ending")("the response was seen", "not answered"),
    _field("marked", "bool", "i", "notes")("marked by the user", "marked"),
    _field("ignored", "bool", "i", "notes")("ignored by the user", "not ignored"),
    _field("comment", "string", "i", "notes")("comment of the user", "comment contains slow"),
    _field("finding", "string", "i", "findings")(
        "rules of the findings that cite it, as named by check",
        "finding == late-answer or finding contains rebalance",
    ),
    _field("finding.severity", "string", "i", "findings")(
        "severities of the findings that cite it: error, warning, note, chat",
        "finding.severity in {error, warning}",
    ),
    _field("open", "bool", "i", "ending")("in flight at the end of the capture", "open"),
    _field("lost", "bool", "i", "ending")("the connection ended before the response", "lost"),
    _field("no-reply", "bool", "i", "ending")(
        "no response is expected (acks=0)", "no-reply", "no_reply"
    ),
    _field("orphan", "bool", "i", "ending")("a response whose request was not seen", "orphan"),
    _field("opaque", "bool", "i", "ending")("bytes without a readable Kafka header", "not opaque"),
    _field(
        "error.top", "error", "s", "response", getters.top_errors, "errors", "state", truth=True
    )("top-level error of the response", "error.top != 0"),
    _field("failed", "bool", "s", "response", lambda errors: (bool(errors),), "errors")(
        "the response has an error other than NONE", "failed"
    ),
    _field("retriable", "bool", "s", "response", getters.retriable, "errors")(
        "an error that clients may retry", "failed and not retriable"
    ),
    _field("offset", "int", "b", "bodies", read=message.offsets)(
        "offsets in its fields: fetched, committed, assigned, listed",
        "api == Fetch and offset in {88000..88200}",
        "fetch_offset",
        "committed_offset",
        "base_offset",
    ),
    _field("high_watermark", "int", "b", "response", read=message.high_watermarks)(
        "high watermarks in the response", "high_watermark > 1000"
    ),
    _field("lag", "int", "b", "response", truth=True, read=message.lag)(
        "consumer lag of a partition: high watermark minus fetched offset", "lag > 1000"
    ),
    _field("sequence", "int", "b", "records", read=message.sequences)(
        "first sequence numbers of its batches",
        "producer.id == 1042 and sequence == 0",
        "batch_base_sequence",
    ),
    _field("record.key", "bytes", "b", "records")(
        "keys of its records", 'record.key == "customer-4711"', "message_key"
    ),
    _field("record.value", "bytes", "b", "records")(
        "values of its records", 'record.value contains "customer-4711"', "message_value"
    ),
    _field("record.header", "bytes", "b", "records")(
        "headers of its records, as name=value",
        'record.header contains "traceparent="',
        "record.headers",
    ),
    _field("record.header.key", "string", "b", "records")(
        "names of the headers of its records", "record.header.key == traceparent", "header_key"
    ),
    _field("record.header.value", "bytes", "b", "records")(
        "values of the headers of its records",
        "record.header.value contains 4bf92f",
        "header_value",
    ),
    _field("record.offset", "int", "b", "response records")(
        "offsets of its records; for Produce as assigned by the broker", "record.offset == 88123"
    ),
    _field("record.time", "time", "b", "records")(
        "timestamps of its records",
        "record.time < 2026-11-20",
        "record.timestamp",
        "message_timestamp",
    ),
    _field("record.sequence", "int", "b", "records")(
        "sequence numbers of its records", "record.sequence == 17"
    ),
    _field("record.size", "size", "b", "records")(
        "size of key, value and headers of its records", "record.size > 100KB", "record.bytes"
    ),
    _field("schema.id", "value", "b", "schemas")(
        "schema IDs in its keys and values", "schema.id == 17"
    ),
    _field("schema.subject", "string", "b", "schemas")(
        "subjects of its schemas", "schema.subject == orders-value"
    ),
    _field("schema.type", "string", "b", "schemas")(
        "record names, message names or titles of its schemas", "schema.type == shop.Order"
    ),
    _field("schema.error", "string", "b", "schemas")(
        "why keys and values could not be decoded with their schemas",
        "schema.error == unknown-schema",
    ),
    _field("wire", "bytes", "b", "frames", read=message.wire, hidden=True)(
        "bytes of both messages, size fields included", "wire contains 0a:ff"
    ),
    _field("raw", "bytes", "b", "frames", read=message.raw, hidden=True)(
        "as wire, plus the decompressed records", 'raw contains "customer-4711"'
    ),
)
"""Fields that are no column of a row: parts of one, several combined, contents of messages,
notes."""


_SOURCES: Final[dict[str, Teller]] = {
    **dict.fromkeys(("number", "frame", "request.transfer", "response.transfer"), "order"),
    **dict.fromkeys(("server", "rtt", "retransmissions", "zero_window"), "order"),
    **dict.fromkeys(("stalled_by", "capture_point"), "order"),
    **dict.fromkeys(("source", "listener", "forwarded"), "request log"),
    **dict.fromkeys((f"broker.{name}" for name in BROKER_TIMES), "request log"),
    **dict.fromkeys(("response.bytes", "latency", "wait"), "response size"),
    **dict.fromkeys(("codec", "records", "batches"), "records"),
    **dict.fromkeys(("throttle", "error"), "response"),
    **dict.fromkeys(("software", "user"), "login"),
    "conn": "connection",
    "tls": "tls",
    "flexible": "head",
    "state": "ending",
    "undecoded": "decoding",
}
"""Columns whose source is neither the head nor the bodies alone."""

_MADE: Final[dict[str, tuple[Any, ...]]] = {
    "tls": (inside("name"), "tls"),
    "flexible": (lambda key, version: (is_flexible(key, version),), "api_key", "api_version"),
    "wait": (lambda wait, latency: () if latency is None else (wait,), "wait_ns", "latency_ns"),
    "throttle": (getters.throttle, "throttle_ms", "state"),
    "undecoded": (lambda parts: tuple(dict.fromkeys(part.reason for part in parts)), "undecoded"),
    "error": (getters.errors, "errors", "state"),
    "topic": (getters.joined, "topics", "implied_topics"),
    "topic.id": (lambda ids: tuple(map(str, ids)), "topic_ids"),
}
"""Columns whose values for filters differ from the stored ones, and what they are made of."""


def _of(named: Named) -> Field:
    column = named.column
    declared = column.asked
    assert declared is not None
    kind: Type = column.kind.filter  # type: ignore[assignment]
    cost: Cost = declared.cost or ("i" if column.told_by == "head" else "s")
    text = declared.doc or column.text
    own = getters.joined if column.kind.many else plain
    of, *reads = _MADE.get(declared.name, (own, named.name))
    return Field(
        *(declared.name, kind, cost, text, declared.example, declared.aliases, declared.truth),
        told_by=_SOURCES.get(declared.name, "head" if column.told_by == "head" else "bodies"),
        reads=tuple(reads),
        of=of,
        shown=(lambda topics, _: topics) if declared.name == "topic" else None,
    )


COLUMNS: Final[dict[str, Named]] = {
    each.column.asked.name: each for each in columns_of(Row) if each.column.asked is not None
}


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
    _field("request.<path>", "body", "b", "bodies")(
        "any field of the request's body, in arrays any element", "request.max_wait_ms >= 500"
    ),
    _field("response.<path>", "body", "b", "bodies")(
        "any field of the response's body, in arrays any element",
        "response.topics.partitions.leader_id == 2",
    ),
    _field("body.<name>", "body", "b", "bodies")(
        "fields of that name at any level of either body; Wireshark's names work, too",
        "body.session_timeout_ms < 10000",
    ),
    _field("record.value.<path>", "value", "b", "schemas")(
        "any field of values decoded with a schema, in arrays any element",
        'record.value.amount > 100 or record.value."user-id" == 5',
    ),
    _field("record.key.<path>", "value", "b", "schemas")(
        "any field of keys decoded with a schema, in arrays any element", 'record.key.id == "x"'
    ),
)

_SAME: Final = (
    *("broker_epoch", "cluster_id", "controller_epoch", "error_message", "group_state", "host"),
    *("is_internal", "isolation_level", "last_stable_offset", "leader_epoch", "leader_id"),
    *("log_dir", "log_start_offset", "max_bytes", "min_bytes", "node_id", "num_partitions"),
    *("offset_lag", "protocol_name", "protocol_type", "rack", "replica_id"),
    *("replication_factor", "session_lifetime_ms", "token_id", "validate_only"),
)
WIRESHARK: Final[dict[str, str]] = dict(
    sorted(
        {
            **{name: name for name in _SAME},
            "config_key": "name",
            "config_value": "value",
            "consumer_group_instance": "group_instance_id",
            "coordinator_key": "key",
            "coordinator_type": "key_type",
            "fetch_session_epoch": "session_epoch",
            "fetch_session_id": "session_id",
            "group_leader_id": "leader",
            "isr_id": "isr_nodes",
            "max_wait_time": "max_wait_ms",
            "metadata": "committed_metadata",
            "offline_id": "offline_replicas",
            "rebalance_timeout": "rebalance_timeout_ms",
            "sasl_mechanism": "mechanism",
            "session_timeout": "session_timeout_ms",
            "timeout": "timeout_ms",
            "transaction_timeout": "transaction_timeout_ms",
        }.items()
    )
)
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


def fields_from(*tellers: Teller) -> frozenset[str]:
    """Return the names of the fields that have one of these sources."""
    return frozenset(field.name for field in FIELDS if field.told_by in tellers)


MARKS: Final = fields_from("notes")
"""Fields of the notes that the terminal UI keeps beside a capture."""
FOUND: Final = fields_from("findings")
"""Fields that are known only at the end of a capture."""
DECODED: Final = fields_from("schemas") | {"record.key.", "record.value."}
"""Fields that only schemas tell; the last two stand for any path."""
EXPECTED: Final = "expected"
"""A column that findings correct, where they are known."""
NOTED: Final = MARKS | FOUND
"""Fields that only a `Known` has values for; without one, nothing is marked."""


def printed(field: Field, path: Path) -> Callable[[Row, Exchange | None], Values] | None:
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
    if not field.reads:
        return None
    get = getters.of_row(field.reads, field.shown or field.of)
    return lambda row, _: get(row)
