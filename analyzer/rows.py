"""Exchange -> Row: one flat, typed record; the one table definition that every output uses.

A new column is a field of `Row`, a line in `to_json`, and whatever `row_of` needs to fill it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from analyzer.contents import contents_of
from analyzer.facts import Facts, collector
from analyzer.model import Note, State, Undecoded
from analyzer.times import iso_ns
from analyzer.topics import short_id
from dissectors.codes import error_name
from dissectors.registry import APIS

if TYPE_CHECKING:
    from analyzer.fetch_sessions import FetchSession
    from analyzer.model import Exchange
    from analyzer.topics import TopicNames

MOST_SHOWN: Final = 3
"""Topics, groups or partitions that `result` names before it counts the others."""


class RowError(NamedTuple):
    """An error code of a response and what it is about."""

    code: int
    name: str
    top: bool = False
    """The response's own error, not one of a part of it."""
    topic: str | None = None
    topic_id: bytes | None = None
    partition: int | None = None
    group: str | None = None
    message: str | None = None
    """The broker's own text, where the response has one."""


@dataclass(slots=True, unsafe_hash=True)  # as `Exchange`: not frozen, though nobody changes it
class Row:
    """One exchange in a line. Lists keep the order of the wire, each value once."""

    number: int
    id: str
    time_ns: int
    """First byte of the request (of the response, when there is no request)."""
    connection: int
    client_address: str
    broker_address: str
    client_id: str | None
    software: str
    user: str
    api_key: int | None
    api: str
    api_version: int | None
    flexible: bool
    correlation_id: int | None
    request_bytes: int | None
    response_bytes: int | None
    latency_ns: int | None
    server_ns: int | None
    wait_ns: int
    """The part of the latency that the client asked for."""
    throttle_ms: int
    state: State
    reason: str
    errors: tuple[RowError, ...]
    """Without NONE."""
    topics: tuple[str, ...]
    """Names; an id whose name is not known (yet) as its first 8 characters and `?`."""
    topic_ids: tuple[bytes, ...]
    """Uuids as the messages have them."""
    partitions: tuple[int, ...]
    groups: tuple[str, ...]
    members: tuple[str, ...]
    generations: tuple[int, ...]
    producer_ids: tuple[int, ...]
    producer_epochs: tuple[int, ...]
    transactional_ids: tuple[str, ...]
    acks: int | None
    codecs: tuple[str, ...]
    records: int | None
    """Records in all batches of both sides; None when the API carries none."""
    batches: int | None
    offset: int | None
    """Base offset that the broker gave to the first partition of a Produce."""
    frames: tuple[int, ...]
    """Packets with the first byte of request and response."""
    undecoded: tuple[Undecoded, ...]
    notes: tuple[Note, ...]
    implied_topics: tuple[str, ...] = ()
    """What an incremental Fetch or ShareFetch asks for without naming it (KIP-227), as `topics`."""

    @property
    def excess_ns(self) -> int | None:
        """Latency without the wait."""
        return None if self.latency_ns is None else max(0, self.latency_ns - self.wait_ns)


_address = lru_cache(4096)(str)
"""Of an endpoint."""


def row_of(exchange: Exchange, names: TopicNames) -> Row:
    """The row of an exchange; topic names as far as they are known by now."""
    facts = Facts()
    request, response = exchange.request, exchange.response
    asking = answering = asked = answer = latency = server = None
    frames: tuple[int, ...] = ()
    if request is not None:
        asking, asked = request.frame, request.decoded
        frames = (asking.parts[0].packet,)
    if response is not None:
        answering, answer = response.frame, response.decoded
        frames = (*frames, answering.parts[0].packet)
        if asking is not None:
            latency = answering.last_ns - asking.first_ns
            server = answering.first_ns - asking.last_ns
    layout = None
    for decoded in (asked, answer):
        if decoded is not None:
            layout = layout or decoded.layout
            collect = collector(decoded.layout)
            if collect is not None:
                collect(decoded.body, facts)
    contents = contents_of(facts.blobs)
    ids = facts.topic_ids
    topics = tuple(facts.topics)
    if ids:
        topics = tuple(dict.fromkeys((*topics, *(names.get(i) or short_id(i) for i in ids))))
    errors: tuple[RowError, ...] = ()
    if facts.errors:
        # An answer need not repeat the group that was asked about.
        group = next(iter(facts.groups)) if len(facts.groups) == 1 else None
        errors = tuple([_error(each, names, group) for each in facts.errors])
    key, version = exchange.api_key, exchange.api_version
    first = asking or answering
    session = exchange.fetch_session
    # By position, in the order of the fields: this is done for every exchange.
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
        None if asking is None else asking.size + 4,
        None if answering is None else answering.size + 4,
        latency,
        server,
        exchange.wait_ns,
        facts.throttle_ms,
        exchange.state,
        exchange.reason,
        errors,
        topics,
        tuple(ids) if ids else (),
        tuple(facts.partitions),
        tuple(facts.groups) if facts.groups else (),
        tuple(facts.members) if facts.members else (),
        tuple(facts.generations) if facts.generations else (),
        _both(facts.producer_ids, contents.producer_ids),
        _both(facts.producer_epochs, contents.producer_epochs),
        tuple(facts.transactional_ids) if facts.transactional_ids else (),
        facts.acks,
        contents.codecs,
        contents.records,
        contents.batches,
        facts.offset if facts.offset is None or facts.offset >= 0 else None,
        frames,
        exchange.undecoded,
        exchange.notes + contents.notes if contents.notes else exchange.notes,
        () if session is None else _implied(session, topics, names),
    )


def _both(told: dict[int, None], found: tuple[int, ...]) -> tuple[int, ...]:
    """What fields say, then what batches say, each once."""
    return tuple(dict.fromkeys((*told, *found))) if told else found


def _implied(session: FetchSession, listed: tuple[str, ...], names: TopicNames) -> tuple[str, ...]:
    """Topics of a fetch session that the request itself does not list."""
    if not session.incremental or session.partitions is None:
        return ()
    found = dict.fromkeys(
        each if isinstance(each, str) else names.get(each) or short_id(each)
        for each in session.partitions.topics
    )
    return tuple(topic for topic in found if topic not in listed)


def is_flexible(key: int | None, version: int | None) -> bool:
    """Whether that version of an API has compact types and tags."""
    return key in APIS and version is not None and version in APIS[key].flexible


def _error(found: tuple[Any, ...], names: TopicNames, asked: str | None) -> RowError:
    code, top, topic, topic_id, partition, group, message = found
    if not topic and topic_id is None:
        group = group or asked
    if topic_id is not None and not any(topic_id):
        topic_id = None
    if not topic and topic_id is not None:
        topic = names.get(topic_id) or short_id(topic_id)
    return RowError(code, error_name(code), top, topic, topic_id, partition, group, message)


def renamed(row: Row, names: TopicNames) -> Row:
    """The row with names that were learned after it was made; the same row when there are none."""
    topics = late_names(row.topics, names)
    implied = late_names(row.implied_topics, names)
    if topics is row.topics and implied is row.implied_topics:
        return row
    errors = tuple(
        e if e.topic is None else e._replace(topic=names.late(e.topic)) for e in row.errors
    )
    return replace(row, topics=topics, implied_topics=implied, errors=errors)


def late_names(topics: tuple[str, ...], names: TopicNames) -> tuple[str, ...]:
    """The topics with names that were learned since; the same tuple when there are none."""
    if not any(topic[-1:] == "?" for topic in topics):
        return topics
    found = tuple(dict.fromkeys(map(names.late, topics)))
    return topics if found == topics else found


def unnamed(row: Row) -> bool:
    """Whether an id of the row has no name yet."""
    return bool(row.topic_ids) and any(topic[-1:] == "?" for topic in row.topics)


def to_json(row: Row) -> dict[str, Any]:
    """The exchange/1 object of a row; orjson or `dissectors.jsonform.dumps` can write it."""
    latency = row.latency_ns
    return {
        "schema": "exchange/1",
        "number": row.number,
        "exchange_id": row.id,
        "time": iso_ns(row.time_ns),
        "connection": row.connection,
        "client_address": row.client_address,
        "broker_address": row.broker_address,
        "client_id": row.client_id,
        "software": row.software,
        "user": row.user,
        "api_key": row.api_key,
        "api": row.api,
        "api_version": row.api_version,
        "correlation_id": row.correlation_id,
        "request_bytes": row.request_bytes,
        "response_bytes": row.response_bytes,
        "latency_ms": None if latency is None else latency / 1_000_000,
        "latency_ns": latency,
        "server_ns": row.server_ns,
        "wait_ms": row.wait_ns / 1_000_000 if row.wait_ns % 1_000_000 else row.wait_ns // 1_000_000,
        "throttle_ms": row.throttle_ms,
        "state": row.state,
        "reason": row.reason,
        "errors": [_error_json(error) for error in row.errors],
        "topics": row.topics,
        "implied_topics": row.implied_topics,
        "topic_ids": [str(topic_id) for topic_id in row.topic_ids],
        "partitions": row.partitions,
        "groups": row.groups,
        "members": row.members,
        "generations": row.generations,
        "producer_ids": row.producer_ids,
        "producer_epochs": row.producer_epochs,
        "transactional_ids": row.transactional_ids,
        "acks": row.acks,
        "codecs": row.codecs,
        "records": row.records,
        "batches": row.batches,
        "offset": row.offset,
        "frames": row.frames,
        "undecoded": [
            {"side": u.side, "reason": u.reason, "offset": u.offset, "bytes": u.bytes}
            | ({"text": u.text} if u.text else {})
            | ({"path": u.path} if u.path else {})
            for u in row.undecoded
        ],
        "notes": [
            {"severity": n.severity, "text": n.text} | ({"side": n.side} if n.side else {})
            for n in row.notes
        ],
    }


def _error_json(error: RowError) -> dict[str, Any]:
    out: dict[str, Any] = {"code": error.code, "name": error.name}
    for name in ("topic", "partition", "group", "message"):
        value = getattr(error, name)
        if value is not None:
            out[name] = value
    return out


def result(row: Row) -> str:
    """What became of the exchange, in words for people: the last column of `ls`."""
    if row.state == "opaque":
        return f"~ {row.reason}"
    if row.state in ("orphan", "refused", "unreachable"):
        return f"? {row.reason}"
    if not row.undecoded:
        return _outcome(row)
    left = [
        f"({each.side}: {each.reason}{f', {each.bytes} bytes' if each.bytes else ''})"
        for each in row.undecoded
    ]
    return " ".join((_outcome(row), *left))


def _outcome(row: Row) -> str:
    if row.state in ("open", "lost"):
        return f"? no answer, {row.reason}"
    if row.state == "no-reply":
        return " ".join(("acks=0", *_subject(row), *_amount(row)))
    if row.errors:
        return "! " + _errors(row)
    words = ["ok", *_subject(row)]
    if row.api == "Produce" and row.offset is not None and len(row.partitions) == 1:
        words.append(f"offset {row.offset}")
    else:
        words += _amount(row)
    waited = round(row.wait_ns / 1_000_000)
    if waited:
        words.append(f"(waited {waited})")
    if row.throttle_ms:
        words.append(f"(throttled {row.throttle_ms} ms)")
    return " ".join(words)


def _subject(row: Row) -> list[str]:
    """What it is about: one partition, some topics, or a group."""
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
    """Each error once, with what it is about."""
    about: dict[str, list[str]] = {}
    for error in row.errors:
        places = about.setdefault(error.name, [])
        if error.topic:
            partition = "" if error.partition is None else f"-{error.partition}"
            places.append(f"{error.topic}{partition}")
        elif error.group:
            places.append(error.group)
    texts = [
        " ".join((name, *([_some(places)] if places else ()))) for name, places in about.items()
    ]
    return "; ".join(texts)


def _some(values: Sequence[str]) -> str:
    rest = len(values) - MOST_SHOWN
    return ", ".join(values[:MOST_SHOWN]) + (f" (+{rest})" if rest > 0 else "")
