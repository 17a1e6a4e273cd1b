"""Connections of a broker's request log: completed requests in, exchanges out.

A line has what a conversation finds in packets: both messages, the connection, the times. They pass
the same state: phases of the client, names of topics, fetch sessions. Messages are encoded to
frames again, so that all code behind exchanges reads them as it reads packets; their sizes are not
those on the wire (decision 0053). Sans-I/O.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.bodies import facts as body_facts
from kafkascope.analyzer.bodies import fetch_sessions, nodes
from kafkascope.analyzer.bodies.facts import BodyFacts, facts_of_bodies
from kafkascope.analyzer.bodies.waits import WAITING
from kafkascope.analyzer.conversation.ordinary import ACKS_0, teaches
from kafkascope.analyzer.conversation.phases import software_in
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
    Unmade,
    spot,
)
from kafkascope.analyzer.ranks import bounded
from kafkascope.analyzer.requestlog.model import NO_RESPONSES, NOT_LOGGED
from kafkascope.analyzer.requestlog.parsing import bodies_of
from kafkascope.captures.model import NAMELESS, Connection, Endpoint
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.keyed import api_name
from kafkascope.dissectors.registry import (
    API_VERSIONS,
    Decoded,
    RequestHeader,
    decode_request,
    decode_response,
    encode_request_header,
    encode_response_header,
    write_layout,
)
from kafkascope.times import MS, SECOND

if TYPE_CHECKING:
    from kafkascope.analyzer.conversation.context import Context
    from kafkascope.analyzer.conversation.limits import ConversationLimits
    from kafkascope.analyzer.model import Side, Spot
    from kafkascope.analyzer.requestlog.model import Completed, LogLine
    from kafkascope.dissectors.codec.reader import Body
    from kafkascope.dissectors.layout import Layout

PRODUCE: Final = 0
# The largest correlation id of a client's first request: they begin with 0 or 1.
FIRST: Final = 1
LATE_NS: Final = 50_000_000
"""How late a line is: its bodies are printed before it gets its time. Of 4,206 lines with a capture
99 % were within 79 ms, half within 1 ms. Patterns such as Strimzi's `%d{yyyy-MM-dd HH:mm:ss}` leave
out the fraction of the second as well."""
HELD_NS: Final = 50_000_000
"""Throttle time of a line of 0.11 that is a quota's, beyond the local time: the field is never 0,
as the time to make the response counts, too (9 ms at most, measured; 231 ms in a JVM that had just
started, all of it within the local time), and there is no response to tell it."""
APART_NS: Final = 1_000
"""Between requests of a connection, at least: 0.10 has whole milliseconds, and totals of 0."""
ANONYMOUS: Final = "ANONYMOUS"
RECORDS: Final = "records"
"""Last field of the paths that each line of Produce, Fetch and ShareFetch lacks."""


class ReadOffsets:
    """Fetch offsets of a connection. Lines of Fetch lack the records; the offset of the next Fetch
    of a partition shows how far the client got with those that the one before returned."""

    def __init__(self, limits: ConversationLimits) -> None:
        self._most = limits.read_partitions
        self._offsets: dict[fetch_sessions.Partition, int] = {}
        """The last fetch offset."""
        self._reads: dict[fetch_sessions.Partition, Logged] = {}
        """The last Fetch that may have returned records."""

    def request(self, body: Body) -> None:
        """Take the offsets of a Fetch, and set what the one before it read."""
        if len(self._offsets) > self._most:
            self._offsets.clear()
            self._reads.clear()
        for topic in body["topics"] or ():
            name = fetch_sessions.topic_of(topic)
            for fetched in topic["partitions"]:
                partition, offset = (name, fetched["partition"]), fetched["fetch_offset"]
                before, logged = self._offsets.get(partition), self._reads.pop(partition, None)
                if logged is not None and before is not None and offset > before:
                    logged.reads[partition] = before, offset
                elif logged is not None:
                    del logged.reads[partition]
                self._offsets[partition] = offset

    def response(self, body: Body, logged: Logged) -> None:
        """Take the partitions for which a Fetch may have returned records."""
        sizes = logged.record_sizes
        for topic in body["responses"] or ():
            name = fetch_sessions.topic_of(topic)
            for returned in topic["partitions"]:
                partition = name, returned["partition_index"]
                offset = self._offsets.get(partition)
                if offset is not None and not returned["error_code"] and sizes.get(partition) != 0:
                    logged.reads[partition] = offset, None
                    self._reads[partition] = logged


@dataclass(slots=True)
class LoggedLine:
    """A line on its way to an exchange, which is made when somebody needs it: thousands wait for
    their numbers, and an exchange with its messages has three times as many objects."""

    id: str
    connection: Connection
    file: int
    line: LogLine
    completed: Completed
    """Without the bodies."""
    header: RequestHeader
    software: str
    fetch_session: fetch_sessions.FetchSession | None
    facts: BodyFacts
    logged: Logged
    number: int = UNNUMBERED

    @property
    def api_key(self) -> int | None:
        return self.header.api_key if self.header.api_key >= 0 else None

    @property
    def origin(self) -> tuple[int, int]:
        return self.completed.written_ns - self.completed.total_ns, self.logged.rank

    def exchange(self) -> Exchange:
        """Make the exchange."""
        completed, header, connection = self.completed, self.header, self.connection
        sent, received, silent = completed.request, completed.response, self._is_silent()
        frame, later, place = self._side(0, sent.layout)
        request, response = Request(frame, header, later, place), None
        if not silent:
            frame, later, place = self._side(1, received.layout)
            response = Response(frame, header.correlation_id, later, place, header)
        return Exchange(
            self.number,
            self.id,
            "no-reply" if silent else "answered",
            connection,
            connection.a,
            connection.b,
            self.api_key,
            completed.api_name if header.api_key < 0 else api_name(header.api_key),
            header.api_version,
            header.correlation_id,
            header.client_id,
            request,
            response,
            self.software,
            _user(completed.principal),
            reason=ACKS_0 if silent else "",
            notes=_notes(sent.gap, sent.unknown, received.gap, received.unknown, silent=silent),
            fetch_session=self.fetch_session,
            wait_ns=self._wait_ns(),
            facts=self.facts,
            stages=Stages(server_ns=None if silent else completed.total_ns),
            logged=self.logged,
        )

    def _side(self, side: int, layout: Layout | None) -> tuple[Unmade, Later | None, Spot]:
        """Return what makes the request (0) or the response (1)."""
        time_ns = self.completed.written_ns if side else self.origin[0]
        later = None
        if layout is not None:
            later = Later(layout, partial(_decoded, side), partial(self._body, side))
        frame = Unmade(partial(self._frame, side, time_ns), self.place + side)
        return frame, later, spot((self.line.number, time_ns, time_ns, 0))

    def _body(self, side: int) -> Body | None:
        return _bodies(self.line)[side].body

    def _frame(self, side: int, time_ns: int) -> Frame:
        (key, version, number, *_), logged, line = self.header, _bodies(self.line)[side], self.line
        if side:
            payload = encode_response_header(key, version, number)
        else:
            payload = encode_request_header(self.header)
        if logged.layout is not None and logged.body is not None:
            with suppress(DissectError):
                payload += write_layout(logged.layout, logged.body)
        part = Part(self.file, line.offset, line.size, line.number)
        return Frame(payload, self.place + side, len(payload), time_ns, time_ns, (part,))

    @property
    def place(self) -> int:
        """Place of the request's frame in the stream that there is none of."""
        return 2 * self.logged.rank

    def _is_silent(self) -> bool:
        """Return whether the request asked for no response."""
        acks, gap = self.facts.acks, self.completed.response.gap
        return acks == 0 or (acks is None and self.api_key == PRODUCE and gap == NOT_LOGGED)

    def _wait_ns(self) -> int:
        """Return the part of the latency that the client requested: the time in the broker's
        purgatory, which the line has as its remote time."""
        remote = self.completed.times.remote_ns
        if (
            self.api_key not in WAITING
            or not remote
            or any(top for _, top, *_ in self.facts.errors)
        ):
            return 0
        return min(remote, self.completed.total_ns)


@dataclass(slots=True)
class _State:
    """State of one connection."""

    connection: Connection
    fetching: fetch_sessions.FetchSessions
    reading: ReadOffsets
    last: int
    """The last correlation id."""
    begun: bool
    """Its first request was logged, and no login came before."""
    software: str = ""
    """That an ApiVersions request named."""
    done_ns: int = 0
    """When its last request was complete."""


class LoggedConnections:
    """Feed it the completed requests of all brokers."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._states: OrderedDict[tuple[object, ...], _State] = OrderedDict()
        self._forwarded: OrderedDict[tuple[object, ...], LoggedLine] = OrderedDict()
        """Forwarded requests whose other line has not come, by `_forwarding_key`."""
        self.count = 0
        """Connections so far."""
        self._rank = 0

    def __len__(self) -> int:
        return len(self._states)

    def take(self, file: int, line: LogLine, completed: Completed) -> LoggedLine:
        """Return what becomes the exchange of a line; `file`: index of the input."""
        state = self._state_of(file, completed)
        completed = _behind(completed, state.done_ns)
        state.done_ns = completed.written_ns
        connection, key, version = state.connection, completed.api_key, completed.api_version
        connection.last_ns = max(connection.last_ns, completed.written_ns)
        client_id = bounded(completed.client_id)
        size = _size_of_header(key, version, client_id)
        header = RequestHeader(key, version, completed.correlation_id, client_id, [], size)
        request, response = completed.request, completed.response
        logged = Logged(
            self._rank,
            completed.total_ns,
            completed.times,
            completed.listener,
            completed.forwarded,
            completed.deprecated,
            completed.record_sizes,
            _unknown(request.unknown, response.unknown),
            state.begun,
            late_ns=LATE_NS + (0 if any(mark in line.time for mark in ".,") else SECOND),
        )
        facts = facts_of_bodies((request.layout, request.body), (response.layout, response.body))
        throttle_ns = completed.times.throttle_ns or 0
        beyond_ns = throttle_ns - (completed.times.local_ns or 0)
        if response.gap == NO_RESPONSES and beyond_ns >= HELD_NS:
            facts = facts._replace(throttle_ms=throttle_ns // MS)
        session = self._follow(state, completed, logged)
        request.body = response.body = None
        software = bounded(f"{completed.software_name} {completed.software_version}".strip())
        if not software and not completed.forwarded:
            software = state.software
        id_ = self._context.identify_at(connection, 0, 2 * self._rank, file, line.offset)
        out = LoggedLine(
            *(id_, connection, file, line, completed, header, software, session, facts, logged)
        )
        self._rank += 1
        self._pair(out)
        return out

    def _follow(
        self, state: _State, completed: Completed, logged: Logged
    ) -> fetch_sessions.FetchSession | None:
        """Take in what the next lines depend on; return the session of a Fetch."""
        session, key = None, completed.api_key
        for side in (completed.request, completed.response):
            if side.body is not None and side.layout is not None and teaches(side.layout):
                body_facts.learn(side.layout, side.body, self._context.names)
                nodes.learn(side.layout, side.body, self._context.nodes)
        request, response = completed.request.body, completed.response.body
        if request is None:
            return None
        if key == API_VERSIONS and not completed.forwarded:
            state.software = software_in(request) or state.software
        if key in fetch_sessions.KEYS:
            session = state.fetching.request(key, request)
            if response is not None:
                state.fetching.response(key, request, response)
                if key == fetch_sessions.FETCH:
                    state.reading.request(request)
                    state.reading.response(response, logged)
        return session

    # --- connections

    def _state_of(self, file: int, completed: Completed) -> _State:
        broker, client, channel = completed.connection
        key = (broker or file, client, channel)
        state = self._states.get(key)
        correlation_id = completed.correlation_id
        if state is not None and not channel and correlation_id < state.last:
            # Lines of old brokers lack the index of the connection. Clients count correlation ids
            # upward, so that a smaller one shows a new connection from the same port.
            state = None
        if state is None:
            ends = Endpoint(*client), Endpoint(*broker) if broker else NAMELESS
            begin_ns = completed.written_ns - completed.total_ns
            connection = Connection(self.count, *ends, begin_ns, last_ns=begin_ns)
            self._context.brokers.add(ends[1])
            self.count += 1
            fetching = fetch_sessions.FetchSessions(self._context, self._context.limits.bodies)
            reading = ReadOffsets(self._context.limits)
            begun = correlation_id <= FIRST and not completed.security_protocol.startswith("SASL")
            state = _State(connection, fetching, reading, correlation_id, begun)
            self._states[key] = state
            if len(self._states) > self._context.limits.logged_connections:
                self._states.popitem(last=False)
        else:
            self._states.move_to_end(key)
        state.last = correlation_id
        return state

    # --- forwarded requests

    def _pair(self, line: LoggedLine) -> None:
        """Link the two lines of a forwarded request: the broker's that forwarded it, and the
        controller's. API, version, correlation id, client id and principal are equal in both."""
        logged = line.logged
        if logged.forwarded:
            self._forwarded[_forwarding_key(line)] = line
            if len(self._forwarded) > self._context.limits.forwarded_requests:
                self._forwarded.popitem(last=False)
        elif self._forwarded and logged.times.remote_ns:
            other = self._forwarded.pop(_forwarding_key(line), None)
            if other is not None:
                logged.counterpart, other.logged.counterpart = other.id, line.id


def _behind(completed: Completed, done_ns: int) -> Completed:
    """Return a completed request that begins after the one before on its connection. A broker
    reads no request before the response to the last one is sent (`Processor` mutes the channel),
    but times of lines are cut to milliseconds or seconds: without this, two Fetches of one
    millisecond change places, and the reader seems to go back."""
    written_ns = done_ns + APART_NS + completed.total_ns
    late = 0 < written_ns - completed.written_ns < SECOND
    return completed._replace(written_ns=written_ns) if late else completed


def _forwarding_key(line: LoggedLine) -> tuple[object, ...]:
    return (*line.header[:4], line.completed.principal)


_bodies: Final = lru_cache(1)(bodies_of)
"""Whoever reads one body of an exchange mostly reads both, several times, and next that of
another."""


@lru_cache(4096)
def _size_of_header(key: int, version: int, client_id: str | None) -> int:
    return len(encode_request_header(RequestHeader(key, version, 0, client_id, [], 0)))


def _decoded(side: int, frame: Frame, header: RequestHeader) -> Decoded | None:
    """Return a message; None where a text of its body is too long for its version."""
    with suppress(DissectError):
        if side:
            return decode_response(frame.payload, header.api_key, header.api_version)
        return decode_request(frame.payload, header)
    return None


def _user(principal: str) -> str:
    name = principal.removeprefix("User:")
    return "" if name == ANONYMOUS else bounded(name)


@lru_cache(1024)
def _unknown(request: tuple[str, ...], response: tuple[str, ...]) -> tuple[str, ...]:
    return (
        *(f"request.{path}" for path in request),
        *(f"response.{path}" for path in response),
    )


@lru_cache(1024)
def _notes(
    request_gap: str,
    request: tuple[str, ...],
    response_gap: str,
    response: tuple[str, ...],
    *,
    silent: bool,
) -> tuple[Note, ...]:
    """Return a note for each part that other lines of the API have, and this one lacks."""
    out = []
    gaps: tuple[tuple[Side, str, tuple[str, ...]], ...] = (
        ("request", request_gap, request),
        ("response", response_gap, response),
    )
    for side, gap, paths in gaps:
        if gap and gap != NO_RESPONSES and not (silent and side == "response"):
            out.append(Note("chat", f"no body of the {side}: {gap}", side))
        lacking = [path for path in paths if path.rpartition(".")[2] != RECORDS]
        if lacking:
            out.append(Note("chat", f"not in the line: {', '.join(sorted(lacking))}", side))
    return tuple(out)
