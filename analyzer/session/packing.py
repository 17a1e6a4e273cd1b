"""Exchanges and their rows to the columns of a `Session`, many at once: what headers tell, and what
bodies tell.

Column by column, because each is one list comprehension so: three times as fast as row by row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from kafkascope.analyzer.exchanges.columns import grown
from kafkascope.analyzer.model import State

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.model import Exchange
    from kafkascope.analyzer.session.session import Session

STATES: Final[tuple[State, ...]] = ("answered", "open", "lost", "no-reply", "orphan", "opaque")
NONE: Final = -1
"""In a column of numbers: there is none. Correlation ids may be -1, so they have another."""
NO_ID: Final = -(2**40)
NO_ACKS: Final = -(2**20)

HEAD_TABLES: Final = (
    ("api", "apis"),
    ("client_id", "client_ids"),
    ("software", "softwares"),
    ("user", "users"),
    ("mechanism", "mechanisms"),
    ("reason", "reasons"),
)
BODY_TABLES: Final = (
    ("topics", "topic_lists"),
    ("groups", "group_lists"),
    ("errors", "error_lists"),
    ("tops", "top_lists"),
    ("implied", "implied_lists"),
    ("topic_ids", "topic_id_lists"),
    ("partitions", "partition_lists"),
    ("members", "member_lists"),
    ("generations", "generation_lists"),
    ("producer_ids", "producer_id_lists"),
    ("producer_epochs", "producer_epoch_lists"),
    ("txns", "txn_lists"),
    ("codecs", "codec_lists"),
)
TABLE_COLUMNS: Final = (*HEAD_TABLES, *BODY_TABLES)
"""Columns of numbers, and the tables that say what these stand for."""
HEAD_COLUMNS: Final = (
    *("numbers", "times", "states", "connection", "client_side", "api_keys", "versions"),
    *("correlation_ids", "request_bytes", "response_bytes", "latencies"),
    *("request_packets", "response_packets", "_places"),
    *(column for column, _ in HEAD_TABLES),
)
"""What headers and times tell: one number a row."""
BODY_COLUMNS: Final = (
    *("acks", "batches", "waits", "throttles", "records"),
    *(column for column, _ in BODY_TABLES),
)
"""What bodies tell: one number for each row whose bodies were read, from the first on."""
ROW_COLUMNS: Final = (*HEAD_COLUMNS, *BODY_COLUMNS)
"""All columns with one number a row."""

_STATE: Final = {state: number for number, state in enumerate(STATES)}


def _append(session: Session, name: str, values: Iterable[int]) -> None:
    setattr(session, name, grown(getattr(session, name), list(values)))


def _or_none(values: Iterable[int | None]) -> list[int]:
    return [NONE if value is None else value for value in values]


def pack_heads(session: Session, told: Sequence[Exchange], rows: Sequence[Row] = ()) -> None:
    """Append what is known without bodies; `rows` say it where they are there already."""
    s = session
    asked = [None if (side := e.request) is None else side.frame for e in told]
    answers = [None if (back := e.response) is None else back.frame for e in told]
    _append(s, "numbers", [e.number for e in told])
    if rows:
        _append(s, "times", [row.time_ns for row in rows])
        _append(s, "request_bytes", _or_none([row.request_bytes for row in rows]))
        _append(s, "response_bytes", _or_none([row.response_bytes for row in rows]))
        _append(s, "latencies", _or_none([row.latency_ns for row in rows]))
    else:
        pairs = list(zip(told, asked, answers, strict=True))
        _append(s, "times", [e.time_ns if f is None else f.first_ns for e, f, _ in pairs])
        _append(s, "request_bytes", [NONE if f is None else f.size + 4 for f in asked])
        _append(s, "response_bytes", [NONE if f is None else f.size + 4 for f in answers])
        _append(
            s,
            "latencies",
            [NONE if a is None or b is None else b.last_ns - a.first_ns for _, a, b in pairs],
        )
    _append(s, "states", [_STATE[e.state] for e in told])
    _append(s, "connection", map(session.connection_number, [e.connection for e in told]))
    _append(s, "client_side", [e.client != e.connection.a for e in told])
    _append(s, "api_keys", _or_none([e.api_key for e in told]))
    _append(s, "versions", _or_none([e.api_version for e in told]))
    ids = [e.correlation_id for e in told]
    _append(s, "correlation_ids", [NO_ID if each is None else each for each in ids])
    _append(s, "api", s.apis.numbers([e.api for e in told]))
    _append(s, "client_id", s.client_ids.numbers([e.client_id for e in told]))
    _append(s, "software", s.softwares.numbers([e.software for e in told]))
    _append(s, "user", s.users.numbers([e.user for e in told]))
    _append(s, "mechanism", s.mechanisms.numbers([e.mechanism for e in told]))
    _append(s, "reason", s.reasons.numbers([e.reason for e in told]))
    _append(s, "request_packets", [NONE if f is None else f.parts[0].packet for f in asked])
    _append(s, "response_packets", [NONE if f is None else f.parts[0].packet for f in answers])
    _append(s, "_places", s._frames.extend(zip(asked, answers, strict=True)))
    s._ids += bytes.fromhex("".join([e.id for e in told]))


def pack_bodies(session: Session, rows: Sequence[Row]) -> None:
    """Append what bodies tell."""
    s = session
    _append(s, "acks", [NO_ACKS if row.acks is None else row.acks for row in rows])
    _append(s, "batches", _or_none([row.batches for row in rows]))
    _append(s, "waits", [row.wait_ns for row in rows])
    _append(s, "throttles", [row.throttle_ms for row in rows])
    _append(s, "records", _or_none([row.records for row in rows]))
    errors = [row.errors for row in rows]
    lists: dict[str, list[Any]] = {
        "topics": [row.topics for row in rows],
        "groups": [row.groups for row in rows],
        "errors": [tuple([e.code for e in each]) if each else () for each in errors],
        "tops": [tuple([e.code for e in each if e.top]) if each else () for each in errors],
        "implied": [row.implied_topics for row in rows],
        "topic_ids": [row.topic_ids for row in rows],
        "partitions": [row.partitions for row in rows],
        "members": [row.members for row in rows],
        "generations": [row.generations for row in rows],
        "producer_ids": [row.producer_ids for row in rows],
        "producer_epochs": [row.producer_epochs for row in rows],
        "txns": [row.transactional_ids for row in rows],
        "codecs": [row.codecs for row in rows],
    }
    for column, table in BODY_TABLES:
        _append(s, column, getattr(s, table).numbers(lists[column]))
