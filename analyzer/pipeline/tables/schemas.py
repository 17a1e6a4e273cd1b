"""The tables: names, types and meanings of their columns. The single definition for both engines,
for `export` to Parquet, and for docs/spark.md, which prints it.

Times are UTC nanoseconds since 1970 (`*_ns`); `ts` is the same time in microseconds, for people.
Columns are only ever added, and are nullable; a name never changes its meaning.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import pyarrow as pa

from kafkascope.analyzer.exchanges.column import columns_of
from kafkascope.analyzer.exchanges.rows import TLS_COLUMNS, ZOOKEEPER_COLUMNS, Row

# Version of all schemas together, in the manifest and in each Parquet file.
VERSION: Final = 2
VERSION_KEY: Final = b"kafkascope.schema"


class Col(NamedTuple):
    """A column."""

    name: str
    type: pa.DataType
    text: str
    """Its meaning, for docs/spark.md."""


class Table(NamedTuple):
    """A table: a folder of Parquet files."""

    name: str
    text: str
    columns: tuple[Col, ...]

    @property
    def schema(self) -> pa.Schema:
        """The schema of its files."""
        return pa.schema([(each.name, each.type) for each in self.columns])


TEXTS: Final = frozenset({"request_json", "response_json", "key", "value", "headers"})
"""Columns of JSON; each value may be as large as the message."""


def measured(schema: pa.Schema) -> list[str]:
    """Return the columns for which files hold the minimum and maximum. Writing them for a large
    text takes five times its memory, and no query skips rows by them."""
    return [
        each.name for each in schema if each.name not in TEXTS and not pa.types.is_nested(each.type)
    ]


_S, _B = pa.string(), pa.bool_()
_I16, _I32, _I64 = pa.int16(), pa.int32(), pa.int64()
_TS = pa.timestamp("us", "UTC")
_STRINGS, _I32S, _I64S = pa.list_(_S), pa.list_(_I32), pa.list_(_I64)

ERROR: Final = pa.struct(
    [
        ("code", _I32),
        ("name", _S),
        ("top", _B),
        ("topic", _S),
        ("partition", _I32),
        ("group", _S),
        ("message", _S),
    ]
)
UNDECODED: Final = pa.struct(
    [("side", _S), ("reason", _S), ("offset", _I64), ("bytes", _I64), ("text", _S), ("path", _S)]
)
NOTE: Final = pa.struct([("severity", _S), ("text", _S), ("side", _S)])
INTERFACE: Final = pa.struct(
    [
        ("id", _I32),
        ("linktype", _I32),
        ("name", _S),
        ("comment", _S),
        ("snaplen", _I64),
        ("multiplier", _S),
        ("divisor", _S),
        ("offset_s", _I64),
    ]
)

_TYPES: Final = {
    "int64": _I64,
    "int32": _I32,
    "string": _S,
    "bool": _B,
    "strings": _STRINGS,
    "int64s": _I64S,
    "int32s": _I32S,
    "errors": pa.list_(ERROR),
    "undecoded": pa.list_(UNDECODED),
    "notes": pa.list_(NOTE),
}
"""Arrow's types by the names that kinds of columns use."""


class Added(NamedTuple):
    """A column of `exchanges` that rows lack."""

    col: Col
    value: str
    """Expression of `row`, `exchange`, `place` (`Part` of the first byte) and `bodies`."""
    after: str = ""
    """The column before it; empty for the end."""


def _last(side: str, time: str) -> str:
    return f"None if exchange.{side} is None else exchange.{side}.frame.{time}"


ADDED: Final = (
    Added(Col("ts", _TS, "time_ns in microseconds"), "row.time_ns // 1000", "exchange_id"),
    Added(
        Col("connection_id", _S, "key of `connections`"),
        "connection_id(exchange.connection)",
        "connection",
    ),
    Added(
        Col("excess_ns", _I64, "latency without the wait"), "row.latency_beyond_wait_ns", "wait_ns"
    ),
    Added(
        Col("error_codes", _I32S, "of the response, without NONE"),
        "[error.code for error in row.errors]",
        "reason",
    ),
    *(
        Added(Col(name, _TYPES[kind], text), f"row.tls and row.tls.{value}")
        for name, (value, kind, text) in list(TLS_COLUMNS.items())[1:]
    ),
    *(
        Added(
            Col(name, _TYPES[kind], text),
            f"None if row.zookeeper is None else row.zookeeper.{value}",
        )
        for name, (value, kind, text) in ZOOKEEPER_COLUMNS.items()
    ),
    Added(Col("file_id", _I32, "key of `captures`: where the first byte is"), "place.file"),
    Added(Col("record_offset", _I64, "and its offset in the (uncompressed) file"), "place.at"),
    Added(Col("request_end_ns", _I64, "last byte of the request"), _last("request", "last_ns")),
    Added(Col("response_ns", _I64, "first byte of the response"), _last("response", "first_ns")),
    Added(Col("response_end_ns", _I64, "last byte of the response"), _last("response", "last_ns")),
    Added(Col("request_json", _S, "body, with --full"), "bodies[0]"),
    Added(Col("response_json", _S, "body, with --full"), "bodies[1]"),
)


def _exchange_columns() -> Iterator[tuple[Col, str]]:
    """Yield the columns of `exchanges`, each with the expression of its value."""
    for each in columns_of(Row):
        for name, value in each.table.items():
            yield Col(name, _TYPES[each.column.kind.arrow], each.column.text), value
            yield from ((more.col, more.value) for more in ADDED if more.after == name)
    yield from ((more.col, more.value) for more in ADDED if not more.after)


EXCHANGE_VALUES: Final = tuple(value for _, value in _exchange_columns())
"""Expressions, in the order of the columns."""
EXCHANGES: Final = Table(
    "exchanges",
    "One row per exchange; the columns are those of `kafkascope export`.",
    tuple(col for col, _ in _exchange_columns()),
)

RECORD_BATCHES: Final = Table(
    "record_batches",
    "One row per record batch that Produce, Fetch and ShareFetch moved, or of a log segment.",
    (
        Col("exchange_id", _S, "null for batches of Kafka's own files"),
        Col("connection_id", _S, "null likewise"),
        Col("ts", _TS, "time_ns in microseconds"),
        Col("time_ns", _I64, "of the exchange; in Kafka's own files the latest record's"),
        Col("source", _S, "produce, fetch, replica; log: Kafka's own files"),
        Col("topic", _S, "name; of an id without a known name 8 characters and `?`"),
        Col("topic_id", _S, "if the message contains it"),
        Col("partition", _I32, ""),
        Col("index", _I32, "of the batch within the partition's records"),
        Col("error_code", _I32, "of the partition in the response"),
        Col("base_offset", _I64, "of a produced batch, from the response"),
        Col("last_offset", _I64, "from the batch header"),
        Col("magic", _I16, ""),
        Col("codec", _S, ""),
        Col("size_bytes", _I64, ""),
        Col("record_count", _I64, ""),
        Col("producer_id", _I64, ""),
        Col("producer_epoch", _I32, ""),
        Col("base_sequence", _I32, ""),
        Col("transactional", _B, ""),
        Col("control", _B, ""),
        Col("leader_epoch", _I32, ""),
        Col("first_ts_ms", _I64, ""),
        Col("max_ts_ms", _I64, ""),
        Col("crc_ok", _B, ""),
    ),
)

CONNECTIONS: Final = Table(
    "connections",
    "One row per TCP connection, Kafka or not.",
    (
        Col("connection_id", _S, "hash of both ends and the time of the first packet"),
        Col("connection", _I64, "as Wireshark's tcp.stream"),
        Col("ts", _TS, "first packet"),
        Col("first_ns", _I64, "the same in nanoseconds"),
        Col("last_ns", _I64, "last packet"),
        Col(
            "client_address",
            _S,
            "side that sends requests; for other protocols the side that connected",
        ),
        Col("broker_address", _S, ""),
        Col("handshake", _B, "SYN or SYN-ACK was seen"),
        Col("handshake_ns", _I64, "from SYN to the ACK that completes it"),
        Col("round_trip_ns", _I64, "of the handshake, without SYNs that were lost"),
        Col("client_packets", _I64, ""),
        Col("broker_packets", _I64, ""),
        Col("client_bytes", _I64, "captured payload, retransmissions included"),
        Col("broker_bytes", _I64, ""),
        Col("retransmissions", _I64, "segments"),
        Col("duplicates", _I64, "segments that the capture holds twice"),
        Col("out_of_order", _I64, "segments"),
        Col("keep_alives", _I64, ""),
        Col("missed_client_bytes", _I64, "bytes missing from the capture"),
        Col("missed_broker_bytes", _I64, ""),
        Col("exchanges", _I64, ""),
        Col("unanswered", _I64, "open or lost"),
        Col("client_ids", _STRINGS, ""),
        Col("software", _S, ""),
        Col("user", _S, ""),
        Col("mechanism", _S, "of SASL"),
        Col("closed", _S, "how it ended: fin, rst, reuse, idle; null while it is open"),
        Col("closed_by", _S, "client or broker"),
        Col("closed_ns", _I64, ""),
        Col(
            "state",
            _S,
            "open, closed, reset, forgotten; of a failed connection attempt: refused, or "
            "unreachable (no response, a second or more before the last packet)",
        ),
        Col("packet", _I64, "Wireshark's number of the first one"),
        Col("tls", _S, "version and suite, if known; null without TLS"),
        Col("tls_error", _S, "why it cannot be decrypted, one word (docs/tls.md); null if it can"),
        Col("tls_note", _S, "reason as a sentence"),
        Col("tls_resumed", _B, "null without TLS"),
        Col("tls_sni", _S, "server name that the client requested (SNI)"),
        Col("tls_alpn", _S, "negotiated protocol (ALPN)"),
        Col("tls_client", _S, "subject of the client's certificate"),
        Col("tls_inside", _S, "protocol, if not Kafka"),
    ),
)

DIAGNOSTICS: Final = Table(
    "diagnostics",
    "Problems of the input: damage, gaps, bytes that could not be decoded, findings.",
    (
        Col("ts", _TS, "time_ns in microseconds"),
        Col("time_ns", _I64, ""),
        Col("stage", _S, "read, reassembly, dissect"),
        Col("severity", _S, "error, warning, note, chat"),
        Col("code", _S, "one word"),
        Col("message", _S, ""),
        Col("file_id", _I32, ""),
        Col("record_offset", _I64, "in the (uncompressed) file"),
        Col("connection_id", _S, ""),
        Col("exchange_id", _S, ""),
        Col("side", _S, "request, response"),
        Col("bytes", _I64, ""),
    ),
)

LATENCY: Final = Table(
    "latency_histogram",
    "Answered exchanges by hour, API, client, broker and topic, as histograms of each measure: "
    "add up `count` over any keys.",
    (
        Col("hour", _TS, "of the first byte"),
        Col(
            "measure",
            _S,
            "latency, excess, wait; request_transfer, server (without the wait), "
            "response_transfer, rtt",
        ),
        Col("broker_address", _S, ""),
        Col("api_key", _I32, ""),
        Col("api", _S, ""),
        Col("client_id", _S, ""),
        Col("client_address", _S, "without the port"),
        Col("topic", _S, "where the exchange is about one topic"),
        Col("bucket", _I32, "32 per power of two"),
        Col("low_ns", _I64, "smallest value of the bucket"),
        Col("high_ns", _I64, "largest value of the bucket"),
        Col("count", _I64, ""),
        Col("sum_ns", _I64, ""),
        Col("max_ns", _I64, ""),
        Col("failed", _I64, "of these, exchanges with an error"),
    ),
)

CAPTURES: Final = Table(
    "captures",
    "One row per input file.",
    (
        Col("file_id", _I32, ""),
        Col("path", _S, ""),
        Col("fingerprint", _S, "of the file's head"),
        Col("format", _S, "pcap, pcapng"),
        Col("linktypes", _I32S, ""),
        Col("size_bytes", _I64, "as stored"),
        Col("packets", _I64, ""),
        Col("first_frame", _I64, "Wireshark's number of its first packet"),
        Col("first_ns", _I64, "time of the first packet"),
        Col("last_ns", _I64, "time of the last packet"),
        Col("dropped", _I64, "packets that the capturing program dropped"),
        Col("status", _S, "ok, empty, damaged"),
        Col("note", _S, ""),
        Col("copy_of", _I32, "file whose clock is followed, where it holds packets of others"),
        Col("own_packets", _I64, "packets that no other file holds, of such a file"),
        Col("ahead_ns", _I64, "by how much its clock is ahead of that file's"),
    ),
)

SPLITS: Final = Table(
    "splits",
    "What one task reads: parts of files between record boundaries.",
    (
        Col("file_id", _I32, ""),
        Col("split_no", _I32, ""),
        Col("start_offset", _I64, ""),
        Col("end_offset", _I64, "-1: the end of the file"),
        Col("packets", _I64, ""),
        Col("first_frame", _I64, ""),
        Col("byte_order", _S, ""),
        Col("first_interface", _I32, "number of the section's first one"),
        Col("interfaces", pa.list_(INTERFACE), ""),
    ),
)

TOPICS: Final = Table(
    "topic_names",
    "Topic IDs and names, as seen in messages.",
    (Col("topic_id", _S, ""), Col("topic", _S, "")),
)

NODES: Final = Table(
    "nodes",
    "Brokers of the cluster, as advertised to clients.",
    (
        Col("node", _I64, ""),
        Col("address", _S, "host:port; a node may have several"),
        Col("role", _S, ""),
        Col("rack", _S, ""),
    ),
)

REBALANCES: Final = Table(
    "rebalances",
    "One row per rebalance of a group, as in `groups --rebalances`.",
    (
        Col("group", _S, ""),
        Col("ts", _TS, "when it began"),
        Col("time_ns", _I64, "the same in nanoseconds"),
        Col("generation", _I64, "or epoch of the group"),
        Col("cause", _S, "one word"),
        Col("duration_ns", _I64, "null if its end was not seen"),
        Col("members", _I64, ""),
        Col("last_member", _S, "last member to be ready"),
        Col("number", _I64, "of its first exchange"),
        Col("text", _S, "actions of its members"),
    ),
)

VERDICTS: Final = Table(
    "verdicts",
    "One row per client and Kafka release: whether the release supports what the client used, "
    "as in `clients --for`.",
    (
        Col("client_id", _S, ""),
        Col("client_address", _S, "without the port"),
        Col("software", _S, "name and version of the client library"),
        Col("user", _S, ""),
        Col("release", _S, ""),
        Col("verdict", _S, "ok, unclear, breaks; broker: one of the cluster"),
        Col("breaks_at", _S, "first release that breaks the client; null if none"),
        Col("reasons", _STRINGS, ""),
    ),
)

JOURNEYS: Final = Table(
    "journeys",
    "One row per producing application, topic and group: how long records take, as in "
    "`stats journeys`. Durations in nanoseconds.",
    (
        Col("producer", _S, "application"),
        Col("topic", _S, ""),
        Col("group", _S, "null: consumers without a group"),
        Col("readers", _STRINGS, "applications"),
        Col("records", _I64, "produced and fetched"),
        *(
            Col(f"{leg}_p{percent}", _I64, text if percent == 50 else "")
            for leg, text in (
                ("produce", "first byte of the request to last byte of the response"),
                ("deliver", "first byte of the request to the group's first Fetch response"),
                ("commit", "from that to the group's first commit beyond the record"),
            )
            for percent in (50, 95, 99)
        ),
        Col("lag", _I64, "records behind at the end"),
        Col("lag_time", _I64, "age of the oldest of them"),
    ),
)

STATISTICS: Final = Table(
    "statistics",
    "States of the accumulators behind `stats`, `clients`, `groups`, ...: one row each.",
    (Col("statistic", _S, ""), Col("version", _I32, ""), Col("state", _S, "JSON")),
)

FRAMES: Final = Table(
    "frames",
    "One row per message on the wire, with `--tables frames`: the requests and responses of "
    "`exchanges`, each with its position in the stream and in the files.",
    (
        Col("connection_id", _S, ""),
        Col("exchange_id", _S, ""),
        Col("kind", _S, "request, response, token (raw SASL), opaque"),
        Col("ts", _TS, "first byte"),
        Col("first_ns", _I64, "the same in nanoseconds"),
        Col("last_ns", _I64, "last byte"),
        Col("stream_offset", _I64, "of its size field, in its direction of the connection"),
        Col("size_bytes", _I64, "on the wire, size field included"),
        Col("missed_bytes", _I64, "of these, not in the capture or not kept"),
        Col("cut", _S, "why: gap, end, too-large"),
        Col("packets", _I32, "that it is made of"),
        Col("packet", _I64, "Wireshark's number of the first one"),
        Col("last_packet", _I64, ""),
        Col("file_id", _I32, "where its first byte is"),
        Col("record_offset", _I64, "and its offset in the (uncompressed) file"),
        Col("api_key", _I32, ""),
        Col("api_version", _I32, ""),
        Col("correlation_id", _I64, ""),
        Col("reasons", _STRINGS, "reasons for undecoded bytes, one word each"),
    ),
)

SEGMENTS: Final = Table(
    "segments",
    "One row per TCP segment, Kafka or not, with `--tables segments`: what was reassembled, "
    "without its bytes.",
    (
        Col("flow_id", _I64, "the same for both directions between two ports"),
        Col("packet", _I64, "Wireshark's number"),
        Col("ts", _TS, ""),
        Col("time_ns", _I64, "the same in nanoseconds"),
        Col("source_address", _S, "host:port"),
        Col("target_address", _S, ""),
        Col("seq", _I64, "as on the wire"),
        Col("ack", _I64, ""),
        Col("flags", _I32, "FIN 1, SYN 2, RST 4, PSH 8, ACK 16"),
        Col("payload_bytes", _I64, "on the wire"),
        Col("captured_bytes", _I64, "of these, in the capture"),
        Col("file_id", _I32, ""),
        Col("record_offset", _I64, "of the payload, in the (uncompressed) file"),
    ),
)

RECORDS: Final = Table(
    "records",
    "One row per record, with `--tables records`: the lines of `kafkascope records`.",
    (
        Col("exchange_id", _S, "null for records of Kafka's own files"),
        Col("source", _S, "produce, fetch; log: Kafka's own files"),
        Col("topic", _S, ""),
        Col("topic_id", _S, ""),
        Col("partition", _I32, ""),
        Col("offset", _I64, ""),
        Col("time", _S, ""),
        Col("key", _S, "text; JSON where it is none (`base64`, `left_out`)"),
        Col("value", _S, "JSON"),
        Col("headers", _S, "JSON"),
        Col("codec", _S, ""),
        Col("magic", _I16, ""),
        Col("producer_id", _I64, ""),
        Col("producer_epoch", _I32, ""),
        Col("sequence", _I32, ""),
        Col("transactional", _B, ""),
        Col("control", _B, ""),
        Col("key_schema", _S, "JSON; null where the key names no schema"),
        Col("key_decoded", _S, "JSON"),
        Col("key_error", _S, "JSON: why it is not decoded"),
        Col("value_schema", _S, "JSON; null where the value names no schema"),
        Col("value_decoded", _S, "JSON"),
        Col("value_error", _S, "JSON: why it is not decoded"),
    ),
)

TABLES: Final = {
    each.name: each
    for each in (
        CAPTURES,
        SPLITS,
        CONNECTIONS,
        EXCHANGES,
        RECORD_BATCHES,
        DIAGNOSTICS,
        LATENCY,
        TOPICS,
        NODES,
        REBALANCES,
        VERDICTS,
        JOURNEYS,
        STATISTICS,
        RECORDS,
        FRAMES,
        SEGMENTS,
    )
}


FACTS: Final = Table(
    "facts",
    "Internal: what crosses connections, of one task.",
    (Col("kind", _S, ""), Col("json", _S, "")),
)
UNWANTED: Final = Table(
    "_unwanted",
    "Internal: exchanges that a filter left out; they have ranks among the others.",
    (Col("number", _I64, "its place"), Col("record_offset", _I64, "")),
)
CARRY: Final = Table(
    "_carry",
    "Internal: connections that are open at the end of a batch.",
    (
        Col("flow_id", _I64, ""),
        Col("places", _I64S, "what stands for their numbers"),
        Col("ranks", _I64S, "their numbers"),
        Col("carried", pa.binary(), "see kafkascope.analyzer.pipeline.state"),
    ),
)
COLLECTED: Final = {
    each.name: each
    for each in (CONNECTIONS, EXCHANGES, RECORD_BATCHES, DIAGNOSTICS, LATENCY, RECORDS, FRAMES)
}
"""Tables that are made from exchanges and connections."""
ON_REQUEST: Final = (RECORDS.name, FRAMES.name, SEGMENTS.name)
"""Tables that are there on request only."""
