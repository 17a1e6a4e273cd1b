"""What a batch leaves to the next one: connections that are still open, with half-read frames and
unanswered requests, as JSON with the names of all fields.

A closed list of classes; nothing else is written or read, so that a carried state is data and
never code. `VERSION` changes with the fields (a test holds their names), and states of another
version are refused.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections import deque
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from kafkascope.captures.errors import CaptureError

if TYPE_CHECKING:
    from kafkascope.analyzer.conversation.context import Context

VERSION: Final = 6


class OtherState(CaptureError):
    """A state that this version cannot read."""


@cache
def classes() -> dict[str, Any]:
    """Name -> class, of all that a state consists of."""
    from kafkascope.analyzer import model
    from kafkascope.analyzer.bodies import fetch_sessions, log_ends, waits
    from kafkascope.analyzer.conversation import framing, pending, phases, resync
    from kafkascope.analyzer.conversation.conversation import Conversation
    from kafkascope.analyzer.conversation.conversations import Undecided
    from kafkascope.analyzer.pipeline.brokers import Watched
    from kafkascope.analyzer.pipeline.tables.collect import Seen
    from kafkascope.captures import model as events
    from kafkascope.captures.packets import fragments, ip, tcp
    from kafkascope.captures.streams import copies, deadlines, half, reassembly, tracks
    from kafkascope.captures.tls import handshake
    from kafkascope.dissectors.registry import RequestHeader

    found: tuple[Any, ...] = (
        *(events.Connection, events.Endpoint, events.Opened, events.Chunk, events.Gap),
        *(events.Closed, events.Piece, tcp.Segment, half.Half, half.Waiting, tracks.Track),
        *(reassembly.Reassembler, copies.Copies, deadlines.Deadlines, fragments.Fragments),
        *(fragments.Known, fragments.First, events.Packet, ip.Fragment),
        *(model.Frame, model.Part, model.Undecoded, model.Note, RequestHeader),
        *(pending.Pending, pending.InFlight, phases.Phases),
        *(fetch_sessions.FetchSessions, fetch_sessions.FetchSession, framing.FrameBuffer),
        *(log_ends.LogEnds, log_ends.LogEnd, waits.Waits),
        *(resync.Hunt, resync.RequestSense, resync.ResponseSense),
        *(handshake.Handshake, handshake.Records, events.HandshakeResult),
        *(Conversation, Undecided, Watched, Seen),
    )
    return {each.__name__: each for each in found}


def _names(value: Any) -> list[str]:
    """The fields of an object."""
    slots = [
        name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ()) if name
    ]
    return [*(name for name in slots if hasattr(value, name)), *getattr(value, "__dict__", ())]


class _Writer:
    def __init__(self, context: Context, outside: tuple[Any, ...]) -> None:
        self._context = context
        self._outside = outside
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []
        """So that no identity is used twice."""

    def put(self, value: Any) -> Any:
        """Plain values for `_Reader.get`."""
        from kafkascope.analyzer.bodies.fetch_sessions import Implied
        from kafkascope.dissectors.registry import Decoded
        from kafkascope.dissectors.values import Uuid

        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, list):
            return [self.put(each) for each in value]
        if isinstance(value, Decoded):
            return {"k": "decoded"}
        if isinstance(value, bytes | bytearray | memoryview):
            kind = "u" if isinstance(value, Uuid) else "a" if isinstance(value, bytearray) else "b"
            return {"k": kind, "v": b64encode(value).decode()}
        if isinstance(value, dict):
            return {"k": "d", "v": [[self.put(k), self.put(v)] for k, v in value.items()]}
        if isinstance(value, set | frozenset):
            return {"k": "s", "v": [self.put(each) for each in value]}
        if isinstance(value, deque):
            return {"k": "q", "v": [self.put(each) for each in value]}
        if value is self._context:
            return {"k": "context"}
        for number, each in enumerate(self._outside):
            if value == each:
                return {"k": "outside", "v": number}
        if isinstance(value, Implied):
            return {"k": "i", "v": [self.put(each) for each in value]}
        name = type(value).__name__
        if isinstance(value, tuple):
            parts = [self.put(each) for each in value]
            return {"k": "n", "c": name, "v": parts} if name != "tuple" else {"k": "t", "v": parts}
        if hasattr(value, "__self__"):
            return {"k": "m", "v": self.put(value.__self__), "c": value.__name__}
        if name not in classes():
            raise TypeError(f"{name} is no part of a state")
        if id(value) in self._seen:
            return {"k": "r", "v": self._seen[id(value)]}
        number = self._seen[id(value)] = len(self._seen)
        self._kept.append(value)
        fields = {each: self.put(getattr(value, each)) for each in _names(value)}
        return {"k": "o", "c": name, "n": number, "v": fields}


class _Reader:
    def __init__(self, context: Context, outside: tuple[Any, ...]) -> None:
        self._context = context
        self._outside = outside
        self._objects: dict[int, Any] = {}
        self._decoded: list[Any] = []

    def get(self, value: Any) -> Any:
        """What `_Writer.put` wrote."""
        from kafkascope.analyzer.bodies.fetch_sessions import Implied
        from kafkascope.dissectors.values import Uuid

        if isinstance(value, list):
            return [self.get(each) for each in value]
        if not isinstance(value, dict):
            return value
        inner: Any = value.get("v")
        match value["k"]:
            case "b":
                return b64decode(inner)
            case "a":
                return bytearray(b64decode(inner))
            case "u":
                return Uuid(b64decode(inner))
            case "d":
                return {self.get(k): self.get(v) for k, v in inner}
            case "s":
                return {self.get(each) for each in inner}
            case "q":
                return deque(self.get(each) for each in inner)
            case "t":
                return tuple(self.get(each) for each in inner)
            case "i":
                return Implied(self.get(each) for each in inner)
            case "context":
                return self._context
            case "outside":
                return self._outside[inner]
            case "m":
                return getattr(self.get(inner), value["c"])
            case "n":
                return self._class(value["c"])(*(self.get(each) for each in inner))
            case "r":
                return self._objects[inner]
            case "o":
                return self._object(value)
            case "decoded":
                return _DECODED
        raise OtherState("a state of open connections is damaged")

    def _class(self, name: str) -> Any:
        found = classes().get(name)
        if found is None:
            raise OtherState(f"a state of open connections holds {name}, which is not known here")
        return found

    def _object(self, value: dict[str, Any]) -> Any:
        kind = self._class(value["c"])
        made = self._objects[value["n"]] = kind.__new__(kind)
        for name, field in value["v"].items():
            object.__setattr__(made, name, self.get(field))
        if value["c"] == "Pending":
            self._decoded.append(made)
        return made

    def decode(self) -> None:
        """Decode the bodies of requests again."""
        from kafkascope.analyzer.bodies.dissection import dissect_request

        for each in self._decoded:
            if each.decoded is _DECODED:
                each.decoded = dissect_request(each.frame, each.header)[0]


_DECODED: Final = object()


def dump(roots: Any, context: Context, outside: tuple[Any, ...] = ()) -> bytes:
    """The state of these objects. `outside`: what they refer to and is not carried."""
    return json.dumps([VERSION, _Writer(context, outside).put(roots)]).encode()


def load(state: bytes, context: Context, outside: tuple[Any, ...] = ()) -> Any:
    """What `dump` wrote; `OtherState`."""
    version, value = json.loads(state)
    if version != VERSION:
        raise OtherState(
            f"open connections were carried in version {version} of their state, not {VERSION}: "
            "finish them with the kafkascope that began, or begin in another folder"
        )
    reader = _Reader(context, outside)
    roots = reader.get(value)
    reader.decode()
    return roots
