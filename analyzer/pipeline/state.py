"""State of open connections for the next batch: written and read as JSON.

Reassembly, conversations and the collector return their own state (`Resumable`). Here the states
are combined and values become JSON: from a closed list of classes, so that a stored state is data
and never code. `VERSION` changes with the names of fields (a test guards them); a state of another
version is refused.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections import deque
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final

from kafkascope.analyzer import model
from kafkascope.analyzer.bodies.fetch_sessions import FetchSession, Implied
from kafkascope.analyzer.bodies.log_ends import LogEnd
from kafkascope.analyzer.pipeline.brokers import Watched
from kafkascope.analyzer.pipeline.moments import Watchful
from kafkascope.analyzer.pipeline.tables.collect import ConnectionTotals
from kafkascope.captures import model as events
from kafkascope.captures.errors import CaptureError
from kafkascope.captures.model import Connection
from kafkascope.captures.packets.tcp import Segment
from kafkascope.captures.streams.direction import Waiting
from kafkascope.captures.tls.keys.epoch import Epoch
from kafkascope.captures.tls.keys.sessions import Origin
from kafkascope.captures.tls.messages import ClientHello
from kafkascope.captures.tls.records import TlsRecord
from kafkascope.dissectors.registry import RequestHeader
from kafkascope.dissectors.values import Uuid

if TYPE_CHECKING:
    from kafkascope.analyzer.conversation.context import Context
    from kafkascope.captures.streams.connection import Comment

VERSION: Final = 21

RECORDS: Final[tuple[Any, ...]] = (
    *(events.Endpoint, events.HandshakeResult, events.Certificate, events.Tls),
    *(events.Opened, events.Chunk, events.Gap),
    *(events.Closed, events.Piece, Segment, Waiting),
    *(model.Frame, model.Part, model.Undecoded, model.Note),
    *(TlsRecord, ClientHello, Epoch, Origin),
    *(RequestHeader, FetchSession, Implied, LogEnd, ConnectionTotals),
)
"""Classes of values with fields, all of them public."""
COLLECTIONS: Final = (tuple, set, deque)
BYTES: Final = (bytes, bytearray, Uuid)
KINDS: Final = {each.__name__: each for each in (dict, *BYTES, *COLLECTIONS, *RECORDS)}


class OtherState(CaptureError):
    """A state that this version cannot read."""


class _Writer:
    """Turns values into JSON: plain ones as they are, all others as {name of the class: parts}."""

    def __init__(self) -> None:
        self.connections: dict[int, Connection] = {}
        """Connections found so far, kept apart because many values refer to the same one."""

    def put(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, list):
            return [self.put(each) for each in value]
        if isinstance(value, Connection):
            self.connections[value.number] = value
            return {"Connection": value.number}
        kind = type(value)
        if KINDS.get(kind.__name__) is not kind:
            raise TypeError(f"{kind.__name__} is no part of a state")
        if isinstance(value, BYTES):
            return {kind.__name__: b64encode(value).decode()}
        return {kind.__name__: [self.put(each) for each in _parts(value)]}


def _parts(value: Any) -> Any:
    if is_dataclass(value):
        return [getattr(value, each.name) for each in fields(value)]
    return map(list, value.items()) if isinstance(value, dict) else value


class _Reader:
    """Reads the output of `_Writer`."""

    def __init__(self, connections: list[Any]) -> None:
        every = (Connection(*map(self.get, each)) for each in connections)
        self._connections = {each.number: each for each in every}

    def get(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.get(each) for each in value]
        if not isinstance(value, dict):
            return value
        ((name, parts),) = value.items()
        if name == "Connection":
            return self._connections[parts]
        kind = KINDS.get(name)
        if kind is None:
            raise OtherState(f"a state of open connections holds {name}, which is not known here")
        if kind in BYTES:
            return kind(b64decode(parts))
        values = [self.get(each) for each in parts]
        return kind(*values) if kind in RECORDS else kind(values)


def write(value: Any) -> bytes:
    """Return a value as JSON, with the version and the connections that it refers to."""
    writer = _Writer()
    root = writer.put(value)
    connections = [writer.put(_parts(each)) for each in writer.connections.values()]
    return json.dumps([VERSION, connections, root]).encode()


def read(data: bytes) -> Any:
    """Return the value that was passed to `write`; raises `OtherState`."""
    version, *rest = json.loads(data)
    if version != VERSION:
        raise OtherState(
            f"open connections were carried in version {version} of their state, not {VERSION}: "
            "finish them with the kafkascope that began, or begin in another folder"
        )
    connections, root = rest
    return _Reader(connections).get(root)


def dump(
    reassembler: Watchful, conversations: Watched, seen: dict[Connection, ConnectionTotals]
) -> bytes:
    """Return the state of connections that are open at the end of a batch."""
    return write([reassembler.dump(), conversations.dump(), seen])


def load(
    data: bytes, context: Context, comment_of: Comment
) -> tuple[Watchful, Watched, dict[Connection, ConnectionTotals]]:
    """Return the state that `dump` wrote, to continue in this context; raises `OtherState`."""
    packets, conversations, seen = read(data)
    return Watchful(comment_of).load(packets), Watched(context).load(conversations), seen
