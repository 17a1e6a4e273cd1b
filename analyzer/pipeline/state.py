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
from typing import Any, Final

from kafkascope.analyzer import model
from kafkascope.analyzer.bodies.fetch_sessions import FetchSession, Implied
from kafkascope.analyzer.bodies.log_ends import LogEnd
from kafkascope.analyzer.pipeline.tables.collect import ConnectionTotals
from kafkascope.captures import model as events
from kafkascope.captures.errors import CaptureError
from kafkascope.captures.model import Connection
from kafkascope.captures.packets.tcp import Segment
from kafkascope.captures.streams.connection import Waiting
from kafkascope.captures.tls.keys.epoch import Epoch, FullHandshake
from kafkascope.captures.tls.messages import ClientHello
from kafkascope.captures.tls.records import TlsRecord
from kafkascope.dissectors.registry import RequestHeader
from kafkascope.dissectors.values import Uuid
from kafkascope.kernel.path import Path

VERSION: Final = 30

RECORDS: Final[tuple[Any, ...]] = (
    *(events.Endpoint, events.HandshakeResult, events.Certificate, events.Tls),
    *(events.Opened, events.Chunk, events.Gap),
    *(events.Closed, events.Piece, Segment, Waiting),
    *(model.Frame, model.Part, model.Undecoded, model.Note),
    *(TlsRecord, ClientHello, Epoch, FullHandshake),
    *(RequestHeader, FetchSession, Implied, LogEnd, ConnectionTotals),
)
"""Classes of values with fields, all of them public."""
COLLECTIONS: Final = (tuple, set, deque)
BYTES: Final = (bytes, bytearray, Uuid)
KINDS: Final = {each.__name__: each for each in (dict, *BYTES, *COLLECTIONS, *RECORDS)}


class OtherState(CaptureError):
    """A state that this version cannot read."""


def _parts(value: Any) -> Any:
    if is_dataclass(value):
        return [getattr(value, each.name) for each in fields(value)]
    return map(list, value.items()) if isinstance(value, dict) else value


def write(value: Any) -> bytes:
    """Return a value as JSON, with the version and the connections that it refers to: plain values
    as they are, all others as {name of the class: parts}."""
    # Connections are kept apart because many values refer to the same one.
    connections: dict[int, Connection] = {}

    def put(value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, list):
            return [put(each) for each in value]
        if isinstance(value, Connection):
            connections[value.number] = value
            return {"Connection": value.number}
        if isinstance(value, Path):
            return {"Path": put(value.dump())}
        kind = type(value)
        if KINDS.get(kind.__name__) is not kind:
            raise TypeError(f"{kind.__name__} is no part of a state")
        if isinstance(value, BYTES):
            return {kind.__name__: b64encode(value).decode()}
        return {kind.__name__: [put(each) for each in _parts(value)]}

    root = put(value)
    return json.dumps(
        [VERSION, [put(_parts(each)) for each in connections.values()], root]
    ).encode()


def read(data: bytes) -> Any:
    """Return the value that was passed to `write`; raises `OtherState`."""
    version, *rest = json.loads(data)
    if version != VERSION:
        raise OtherState(
            f"open connections were carried in version {version} of their state, not {VERSION}: "
            "finish them with the kafkascope that began, or begin in another folder"
        )

    def get(value: Any) -> Any:
        if isinstance(value, list):
            return [get(each) for each in value]
        if not isinstance(value, dict):
            return value
        ((name, parts),) = value.items()
        if name == "Connection":
            return connections[parts]
        if name == "Path":
            return Path().load(get(parts))
        kind = KINDS.get(name)
        if kind is None:
            raise OtherState(f"a state of open connections holds {name}, which is not known here")
        if kind in BYTES:
            return kind(b64decode(parts))
        values = get(parts)
        return kind(*values) if kind in RECORDS else kind(values)

    stored, root = rest
    every = (Connection(*get(each)) for each in stored)
    connections = {each.number: each for each in every}
    return get(root)
