"""Connections of a broker's request log: completed requests in, exchanges out.

A line has what a conversation finds in packets: both messages, the connection, the times. They pass
the same state: phases of the client, names of topics, fetch sessions. Messages are encoded to
frames again, so that all code behind exchanges reads them as it reads packets; their sizes are not
those on the wire (decision 0053). Sans-I/O.
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
    from kafkascope.analyzer.conversation.limits import ConversationLimits
    from kafkascope.analyzer.model import Side
    from kafkascope.analyzer.requestlog.model import Completed, LoggedBody, LogLine
    from kafkascope.dissectors.codec.reader import Body
    from kafkascope.dissectors.layout import Layout

PRODUCE: Final = 0
# The largest correlation id of a client's first request: they begin with 0 or 1.
FIRST: Final = 1
NO_BROKER: Final = "unknown"
"""Host of a broker whose lines do not name it (0.8)."""
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


class _State(NamedTuple):
    """State of one connection."""

    connection: Connection
    phases: Phases
    fetching: fetch_sessions.FetchSessions
    last: list[int]
    """The last correlation id, in a list of one so that it can change."""
    reading: ReadOffsets
    begun: bool
    """Its first request was logged, and no login came before."""


class LoggedConnections:
    """Feed it the completed requests of all brokers."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._states: OrderedDict[tuple[object, ...], _State] = OrderedDict()
        self._forwarded: OrderedDict[tuple[object, ...], Exchange] = OrderedDict()
        """Forwarded requests whose other line has not come, by `_forwarding_key`."""
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
        sent, payload = _request(header, completed.request)
        header = header._replace(end=len(payload) if sent is None else sent.body_at)
        at = 2 * self._rank
        request = Request(
            Frame(payload, at, len(payload), begin_ns, begin_ns, (part,)),
            header,
            None if sent is None else Later(sent.layout, _decode_request),
        )
        self._learn(sent)
        if not completed.forwarded:
            phases.saw_request(header, sent)
        software = f"{completed.software_name} {completed.software_version}".strip()
        session = None
        if key in fetch_sessions.KEYS and sent is not None:
            session = state.fetching.request(key, sent.body)
        acks, gap = _acks(sent), completed.response.gap
        silent = acks == 0 or (acks is None and key == PRODUCE and gap == NOT_LOGGED)
        response = returned = None
        if not silent:
            returned, payload = _response(header, completed.response)
            response = Response(
                Frame(payload, at + 1, len(payload), end_ns, end_ns, (part,)),
                completed.correlation_id,
                None if returned is None else Later(returned.layout, _decode_response),
                asked=header,
            )
            self._learn(returned)
            if key in fetch_sessions.KEYS and sent is not None and returned is not None:
                state.fetching.response(key, sent.body, returned.body)
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
        if key == fetch_sessions.FETCH and sent is not None and returned is not None:
            state.reading.request(sent.body)
            state.reading.response(returned.body, logged)
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
            wait_ns=_wait(completed, returned),
            stages=Stages(server_ns=None if silent else completed.total_ns),
            logged=logged,
        )
        exchange.facts = _facts(exchange, sent, returned)
        self._pair(exchange)
        return exchange

    # --- connections

    def _state_of(self, file: int, completed: Completed) -> _State:
        broker, client, channel = completed.connection
        key = (broker or file, client, channel)
        state = self._states.get(key)
        correlation_id = completed.correlation_id
        if state is not None and not channel and correlation_id < state.last[0]:
            # Lines of old brokers lack the index of the connection. Clients count correlation ids
            # upward, so that a smaller one shows a new connection from the same port.
            state = None
        if state is None:
            ends = Endpoint(*client), Endpoint(*(broker or (NO_BROKER, 0)))
            begin_ns = completed.written_ns - completed.total_ns
            connection = Connection(self.count, *ends, begin_ns, last_ns=begin_ns)
            self._context.brokers.add(ends[1])
            self.count += 1
            fetching = fetch_sessions.FetchSessions(self._context, self._context.limits.bodies)
            begun = correlation_id <= FIRST
            begun = begun and not completed.security_protocol.startswith("SASL")
            reading = ReadOffsets(self._context.limits)
            state = _State(connection, Phases(), fetching, [correlation_id], reading, begun)
            self._states[key] = state
            if len(self._states) > self._context.limits.logged_connections:
                self._states.popitem(last=False)
        else:
            self._states.move_to_end(key)
        state.last[0] = correlation_id
        return state

    def _learn(self, decoded: Decoded | None) -> None:
        if decoded is not None and teaches(decoded.layout):
            body_facts.learn(decoded.layout, decoded.body, self._context.names)
            nodes.learn(decoded.layout, decoded.body, self._context.nodes)

    # --- forwarded requests

    def _pair(self, exchange: Exchange) -> None:
        """Link the two lines of a forwarded request: the broker's that forwarded it, and the
        controller's. API, version, correlation id, client id and principal are equal in both."""
        logged = exchange.logged
        assert logged is not None
        if logged.forwarded:
            self._forwarded[_forwarding_key(exchange)] = exchange
            if len(self._forwarded) > self._context.limits.forwarded_requests:
                self._forwarded.popitem(last=False)
        elif self._forwarded and logged.times.remote_ns:
            other = self._forwarded.pop(_forwarding_key(exchange), None)
            if other is not None and other.logged is not None:
                logged.counterpart, other.logged.counterpart = other.id, exchange.id


def _forwarding_key(exchange: Exchange) -> tuple[object, ...]:
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
    """Return the decoded request of a line, and the payload of a frame that encodes it."""
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


# Exchanges decode their bodies again from the frames when they are needed: a body takes ten times
# the memory of its bytes, and thousands of exchanges wait for their numbers.
def _decode_request(frame: Frame, header: RequestHeader) -> Decoded:
    return decode_request(frame.payload, header)


def _decode_response(frame: Frame, header: RequestHeader) -> Decoded:
    return decode_response(frame.payload, header.api_key, header.api_version)


def _acks(sent: Decoded | None) -> int | None:
    return None if sent is None else sent.body.get("acks")


def _user(principal: str) -> str:
    name = principal.removeprefix("User:")
    return "" if name == ANONYMOUS else bounded(name)


def _wait(completed: Completed, returned: Decoded | None) -> int:
    """Return the part of the latency that the client requested: the time in the broker's purgatory,
    which the line has as its remote time."""
    remote = completed.times.remote_ns
    if completed.api_key not in WAITING or not remote:
        return 0
    if returned is not None and returned.body.get("error_code"):
        return 0
    return min(remote, completed.total_ns)


def _facts(exchange: Exchange, sent: Decoded | None, returned: Decoded | None) -> BodyFacts:
    """Return the facts of the bodies; batches are unknown, because lines lack the records."""
    frames = [side.frame.payload for side in (exchange.request, exchange.response) if side]
    payloads = frames[0], frames[1] if len(frames) > 1 else b""
    return facts_in(sent, returned, payloads)._replace(blobs=None)


def _notes(completed: Completed, *, silent: bool) -> list[Note]:
    """Return a note for each part that other lines of the API have, and this one lacks."""
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
