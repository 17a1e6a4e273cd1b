"""Connections of a broker's request log: completed requests in, exchanges out.

A line has what a conversation finds in packets: both messages, the connection, the times. They go
the same ways: who the client is, names of topics, sessions of Fetch. Messages are written as frames
again, so that whoever reads frames reads these; their sizes are not those of the wire. Sans-I/O.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkascope.analyzer.bodies import facts as body_facts
from kafkascope.analyzer.bodies import fetch_sessions, nodes
from kafkascope.analyzer.bodies.facts import BodyFacts, facts_in
from kafkascope.analyzer.bodies.waits import WAITING
from kafkascope.analyzer.conversation.ordinary import ACKS_0, teaches
from kafkascope.analyzer.conversation.phases import Phases
from kafkascope.analyzer.model import (
    UNNUMBERED,
    Exchange,
    Frame,
    Later,
    Logged,
    Note,
    Part,
    Request,
    Response,
    Stages,
)
from kafkascope.analyzer.ranks import bounded
from kafkascope.analyzer.requestlog.model import NO_RESPONSES, NOT_LOGGED
from kafkascope.captures.model import Connection, Endpoint
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.keyed import api_name
from kafkascope.dissectors.registry import (
    Decoded,
    RequestHeader,
    decode_request,
    decode_response,
    layout_of,
    request_header_version,
    response_header_version,
    write_layout,
)

if TYPE_CHECKING:
    from kafkascope.analyzer.conversation.context import Context
    from kafkascope.analyzer.model import Side
    from kafkascope.analyzer.requestlog.model import Completed, LoggedBody, LogLine
    from kafkascope.dissectors.codec.reader import Body
    from kafkascope.dissectors.layout import Layout

PRODUCE: Final = 0
MOST_CONNECTIONS: Final = 20_000
"""Connections whose state is held: a log tells no close, so those that were used last stay. One
that is forgotten lacks its library and the partitions of its fetch sessions."""
MOST_PARTITIONS: Final = 10_000
"""Partitions whose offsets are remembered for a connection."""
FIRST: Final = 1
"""Correlation ids of clients begin with 0 or 1."""
MOST_FORWARDED: Final = 4_096
"""Forwarded requests that wait for the line of the broker that sent them on, which comes when that
has answered its client."""
NO_BROKER: Final = "unknown"
"""Host of a broker whose lines do not name it (0.8)."""
ANONYMOUS: Final = "ANONYMOUS"
RECORDS: Final = "records"
"""Last field of the paths that each line of Produce, Fetch and ShareFetch lacks."""


class ReadOffsets:
    """Where a connection reads: which records a Fetch returned shows in the offset of the next
    one, as their contents are not in the line."""

    def __init__(self) -> None:
        self._offsets: dict[fetch_sessions.Partition, int] = {}
        """The last offset that was asked for."""
        self._reads: dict[fetch_sessions.Partition, Logged] = {}
        """What got records from there."""

    def request(self, body: Body) -> None:
        """Take in the offsets of a Fetch."""
        if len(self._offsets) > MOST_PARTITIONS:
            self._offsets.clear()
            self._reads.clear()
        for topic in body["topics"] or ():
            name = fetch_sessions.topic_of(topic)
            for each in topic["partitions"]:
                place, offset = (name, each["partition"]), each["fetch_offset"]
                before, logged = self._offsets.get(place), self._reads.pop(place, None)
                if logged is not None and before is not None and offset > before:
                    logged.reads[place] = before, offset
                elif logged is not None:
                    del logged.reads[place]
                self._offsets[place] = offset

    def response(self, body: Body, logged: Logged) -> None:
        """Take in the partitions that may have got records."""
        sizes = logged.record_sizes
        for topic in body["responses"] or ():
            name = fetch_sessions.topic_of(topic)
            for each in topic["partitions"]:
                place = name, each["partition_index"]
                offset = self._offsets.get(place)
                if offset is not None and not each["error_code"] and sizes.get(place) != 0:
                    logged.reads[place] = offset, None
                    self._reads[place] = logged


class _State(NamedTuple):
    """What is known of one connection."""

    connection: Connection
    phases: Phases
    fetching: fetch_sessions.FetchSessions
    last: list[int]
    """The last correlation id."""
    reading: ReadOffsets
    begun: bool
    """Its first request was logged, and no login came before."""


class LoggedConnections:
    """Feed it the completed requests of all brokers."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._states: OrderedDict[tuple[object, ...], _State] = OrderedDict()
        self._forwarded: OrderedDict[tuple[object, ...], Exchange] = OrderedDict()
        """Forwarded requests that wait for their other line, by what both say."""
        self.count = 0
        """Connections so far."""
        self._rank = 0

    def __len__(self) -> int:
        return len(self._states)

    def take(self, file: int, line: LogLine, completed: Completed) -> Exchange:
        """Return the exchange of a line; `file`: index of the input."""
        state = self._state_of(file, completed)
        connection, phases = state.connection, state.phases
        key, version = completed.api_key, completed.api_version
        header = RequestHeader(
            key, version, completed.correlation_id, bounded(completed.client_id), [], 0
        )
        end_ns = completed.written_ns
        begin_ns = end_ns - completed.total_ns
        connection.last_ns = max(connection.last_ns, end_ns)
        part = Part(file, line.offset, line.size, line.number)
        asked, payload = _request(header, completed.request)
        header = header._replace(end=len(payload) if asked is None else asked.body_at)
        at = 2 * self._rank
        request = Request(
            Frame(payload, at, len(payload), begin_ns, begin_ns, (part,)),
            header,
            None if asked is None else Later(asked.layout, _decode_request),
        )
        self._learn(asked)
        if not completed.forwarded:
            phases.saw_request(header, asked)
        software = f"{completed.software_name} {completed.software_version}".strip()
        session = None
        if key in fetch_sessions.KEYS and asked is not None:
            session = state.fetching.request(key, asked.body)
        acks, gap = _acks(asked), completed.response.gap
        silent = acks == 0 or (acks is None and key == PRODUCE and gap == NOT_LOGGED)
        response = answered = None
        if not silent:
            answered, payload = _response(header, completed.response)
            response = Response(
                Frame(payload, at + 1, len(payload), end_ns, end_ns, (part,)),
                completed.correlation_id,
                None if answered is None else Later(answered.layout, _decode_response),
                asked=header,
            )
            self._learn(answered)
            if key in fetch_sessions.KEYS and asked is not None and answered is not None:
                state.fetching.response(key, asked.body, answered.body)
        logged = Logged(
            self._rank,
            completed.total_ns,
            completed.times,
            completed.listener,
            completed.forwarded,
            completed.deprecated,
            completed.record_sizes,
            (
                *(f"request.{path}" for path in completed.request.unknown),
                *(f"response.{path}" for path in completed.response.unknown),
            ),
        )
        logged.begins = state.begun
        if key == fetch_sessions.FETCH and asked is not None and answered is not None:
            state.reading.request(asked.body)
            state.reading.response(answered.body, logged)
        self._rank += 1
        exchange = Exchange(
            UNNUMBERED,
            self._context.identify(connection, 0, request.frame),
            "no-reply" if silent else "answered",
            connection,
            connection.a,
            connection.b,
            None if key < 0 else key,
            completed.api_name if key < 0 else api_name(key),
            version,
            completed.correlation_id,
            header.client_id,
            request,
            response,
            bounded(software) if software or completed.forwarded else phases.software,
            _user(completed.principal),
            reason=ACKS_0 if silent else "",
            notes=tuple(_notes(completed, silent=silent)),
            fetch_session=session,
            wait_ns=_wait(completed, answered),
            stages=Stages(server_ns=None if silent else completed.total_ns),
            logged=logged,
        )
        exchange.facts = _facts(exchange, asked, answered)
        self._pair(exchange)
        return exchange

    # --- connections

    def _state_of(self, file: int, completed: Completed) -> _State:
        broker, client, channel = completed.connection
        about = (broker or file, client, channel)
        state = self._states.get(about)
        count = completed.correlation_id
        if state is not None and not channel and count < state.last[0]:
            # Without an index, ports that came back: clients count upwards on each connection.
            state = None
        if state is None:
            ends = Endpoint(*client), Endpoint(*(broker or (NO_BROKER, 0)))
            begin_ns = completed.written_ns - completed.total_ns
            connection = Connection(self.count, *ends, begin_ns, last_ns=begin_ns)
            self._context.brokers.add(ends[1])
            self.count += 1
            fetching = fetch_sessions.FetchSessions(self._context)
            begun = count <= FIRST and not completed.security_protocol.startswith("SASL")
            about_it = connection, Phases(), fetching, [count], ReadOffsets(), begun
            state = self._states[about] = _State(*about_it)
            if len(self._states) > MOST_CONNECTIONS:
                self._states.popitem(last=False)
        else:
            self._states.move_to_end(about)
        state.last[0] = count
        return state

    def _learn(self, decoded: Decoded | None) -> None:
        if decoded is not None and teaches(decoded.layout):
            body_facts.learn(decoded.layout, decoded.body, self._context.names)
            nodes.learn(decoded.layout, decoded.body, self._context.nodes)

    # --- forwarded requests

    def _pair(self, exchange: Exchange) -> None:
        """Let a request that was forwarded, and the line of the controller about it, name each
        other: API, version, correlation id and client id are the client's in both."""
        logged = exchange.logged
        assert logged is not None
        if logged.forwarded:
            self._forwarded[_about(exchange)] = exchange
            if len(self._forwarded) > MOST_FORWARDED:
                self._forwarded.popitem(last=False)
        elif self._forwarded and logged.times.remote_ns:
            other = self._forwarded.pop(_about(exchange), None)
            if other is not None and other.logged is not None:
                logged.counterpart, other.logged.counterpart = other.id, exchange.id


def _about(exchange: Exchange) -> tuple[object, ...]:
    return (
        exchange.api_key,
        exchange.api_version,
        exchange.correlation_id,
        exchange.client_id,
        exchange.user,
    )


@cache
def _header_layout(side: str, version: int) -> Layout:
    return layout_of(f"{side}Header", version)


def _request(header: RequestHeader, logged: LoggedBody) -> tuple[Decoded | None, bytes]:
    """Return a request, and the frame's payload that says the same."""
    kind = request_header_version(header.api_key, header.api_version)
    head: Body = {
        "request_api_key": header.api_key,
        "request_api_version": header.api_version,
        "correlation_id": header.correlation_id,
    }
    if kind:
        head["client_id"] = header.client_id
    return _written(_header_layout("Request", kind), head, logged)


def _response(header: RequestHeader, logged: LoggedBody) -> tuple[Decoded | None, bytes]:
    kind = response_header_version(header.api_key, header.api_version)
    head: Body = {"correlation_id": header.correlation_id}
    return _written(_header_layout("Response", kind), head, logged)


def _written(layout: Layout, head: Body, logged: LoggedBody) -> tuple[Decoded | None, bytes]:
    try:
        payload = write_layout(layout, head)
    except DissectError:
        return None, b""
    if logged.body is None or logged.layout is None:
        return None, payload
    whole, at = logged.layout, len(payload)
    try:
        payload += write_layout(whole, logged.body)
    except DissectError:
        return None, payload
    name, version = whole.message.name, whole.version
    decoded = Decoded(name, version, head, logged.body, at, len(payload), "", whole, layout)
    return decoded, payload


# Bodies take ten times the memory of their bytes, and thousands of exchanges wait for a number.
def _decode_request(frame: Frame, header: RequestHeader) -> Decoded:
    return decode_request(frame.payload, header)


def _decode_response(frame: Frame, header: RequestHeader) -> Decoded:
    return decode_response(frame.payload, header.api_key, header.api_version)


def _acks(asked: Decoded | None) -> int | None:
    return None if asked is None else asked.body.get("acks")


def _user(principal: str) -> str:
    name = principal.removeprefix("User:")
    return "" if name == ANONYMOUS else bounded(name)


def _wait(completed: Completed, answered: Decoded | None) -> int:
    """Return the part of the time that the client asked for: what the broker says that it waited
    in its purgatory, where requests wait on purpose."""
    remote = completed.times.remote_ns
    if completed.api_key not in WAITING or not remote:
        return 0
    if answered is not None and answered.body.get("error_code"):
        return 0
    return min(remote, completed.total_ns)


def _facts(exchange: Exchange, asked: Decoded | None, answered: Decoded | None) -> BodyFacts:
    """Return what the bodies say; that records are missing does not mean that there are none."""
    frames = [side.frame.payload for side in (exchange.request, exchange.response) if side]
    payloads = frames[0], frames[1] if len(frames) > 1 else b""
    return facts_in(asked, answered, payloads)._replace(blobs=None)


def _notes(completed: Completed, *, silent: bool) -> list[Note]:
    """Return what the line lacks that others of its kind have."""
    out = []
    gaps: tuple[tuple[Side, str, tuple[str, ...]], ...] = (
        ("request", completed.request.gap, completed.request.unknown),
        ("response", completed.response.gap, completed.response.unknown),
    )
    for side, gap, paths in gaps:
        if gap and gap != NO_RESPONSES and not (silent and side == "response"):
            out.append(Note("chat", f"no body of the {side}: {gap}", side))
        lacking = [path for path in paths if path.rpartition(".")[2] != RECORDS]
        if lacking:
            out.append(Note("chat", f"not in the line: {', '.join(sorted(lacking))}", side))
    return out
